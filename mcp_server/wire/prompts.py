"""Which prompts, resources and completions does a client get?"""

import base64
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CompleteRequestParams,
    GetPromptRequestParams,
    PaginatedRequestParams,
    ReadResourceRequestParams,
)
from msgspec import Struct

from mcp_server.config.prompts import VARIABLES, PromptError, Prompts, compose_prompts
from mcp_server.model.posture import Posture, Stage
from mcp_server.model.tool_packs import (
    Pack,
    PrincipalResource,
    Prompt,
    PromptArgument,
    PromptCaller,
    Resource,
    SlashCommand,
    Template,
)
from mcp_server.wire.revisions import COMPLETE, UNCACHED
from mcp_server.wire.translate import replace_half_surrogates

# Two prompts of our own: the text for a model at work here, and any shipped prompt by its key.

DESCRIPTIONS = {
    "user_input": "what the user asked for",
    "tool_summary": "what the tools have answered so far",
    "last_step_outcome": "what happened in the last step",
}


class OwnPrompts(Struct, frozen=True):
    words: Prompts
    root: str
    posture: Callable[[str], Awaitable[Posture]]

    def build_pack(self) -> Pack:
        return Pack("menugate", prompts=self.build_prompts())

    def build_prompts(self) -> tuple[Prompt, ...]:
        variables = tuple(PromptArgument(name, description) for name, description in DESCRIPTIONS.items())
        stage = PromptArgument(
            "stage", f"a stage of a run: {', '.join(Stage)} (default: act)", values=_make_completer(tuple(Stage))
        )
        key = PromptArgument("key", "the key of the prompt", required=True, values=self._find_keys)
        return (
            Prompt(
                name="system",
                title="Instructions for the model",
                description="The instructions a model gets in this project, for your posture and the stage of the run.",
                render=_render_nothing,
                arguments=(stage, *variables),
                render_for=self._render_system,
            ),
            Prompt(
                name="words",
                title="One prompt by its key",
                description="One of menugate's prompts, with your values filled in.",
                render=_render_nothing,
                arguments=(key, *variables),
                render_for=self._render_one,
            ),
        )

    def _find_keys(self, typed: str) -> Sequence[str]:
        return [key for key in self.words.list_keys() if key.startswith(typed)]

    async def _render_system(self, principal: str, values: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
        name = values.get("stage") or str(Stage.ACT)
        if name not in list(Stage):
            raise MCPError(INVALID_PARAMS, f"there is no stage `{name[:40]}`; the stages are {', '.join(Stage)}")
        posture = await self.posture(principal)
        return _render_message(lambda: compose_prompts(self.words, posture, Stage(name), self._build_values(values)))

    async def _render_one(self, _principal: str, values: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
        return _render_message(lambda: self.words.render_prompt(values["key"], self._build_values(values)))

    def _build_values(self, values: Mapping[str, str]) -> dict[str, str]:
        return {name: values[name] for name in VARIABLES if name in values} | {"project_root": self.root}


def _render_message(make: Callable[[], str]) -> Sequence[Mapping[str, Any]]:
    try:
        text = make()
    except PromptError as error:
        raise MCPError(INVALID_PARAMS, str(error)) from None
    return [{"role": "user", "content": {"type": "text", "text": text}}]


def _make_completer(names: Sequence[str]) -> Callable[[str], Sequence[str]]:
    return lambda typed: [str(name) for name in names if name.startswith(typed)]


def _render_nothing(_values: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
    return ()


# The handlers for prompts, resources, templates and their completions.

MAX_COMPLETIONS = 100
PLACEHOLDER = re.compile(r"\$\d+")
"""opencode sends `$1` and so on for every argument, and replaces it in the answer by what the user typed. To a command
that acts it says nothing."""
NOT_CACHED = {**UNCACHED, **COMPLETE}


class OfferHandlers(Struct, frozen=True):
    packs: tuple[Pack, ...]
    commands: tuple[SlashCommand, ...] = ()
    """They win over a pack's prompt of the same name."""
    artifacts: tuple[PrincipalResource, ...] = ()

    @property
    def prompts(self) -> Iterator[Prompt]:
        taken = {command.name for command in self.commands}
        return (prompt for pack in self.packs for prompt in pack.prompts if prompt.name not in taken)

    def get_offered_prompts(self, person: bool) -> Iterator[SlashCommand | Prompt]:
        """Return the prompts for `prompts/list`. `person`: the host is known to reserve prompts for its user. Other
        hosts may fetch all prompts or give them to their model, so they get no commands that act."""
        return chain((one for one in self.commands if person or not one.acts), self.prompts)

    @property
    def resources(self) -> Iterator[Resource]:
        return (resource for pack in self.packs for resource in pack.resources)

    @property
    def templates(self) -> Iterator[Template]:
        return (template for pack in self.packs for template in pack.templates)

    @property
    def prompt_names(self) -> frozenset[str]:
        return frozenset(prompt.name for prompt in self.get_offered_prompts(person=True))

    def list_prompts(self, params: PaginatedRequestParams | None, person: bool) -> dict[str, Any]:
        refuse_cursor(params)
        return NOT_CACHED | {"prompts": [_build_prompt_entry(one, person) for one in self.get_offered_prompts(person)]}

    def list_resources(self, params: PaginatedRequestParams | None) -> dict[str, Any]:
        refuse_cursor(params)
        entries = [{"uri": one.uri, **_build_entry(one)} for one in self.resources]
        entries += [
            {"uri": one.uri_template, **_build_entry(one)} for one in self.artifacts if "{" not in one.uri_template
        ]
        return NOT_CACHED | {"resources": entries}

    def list_templates(self, params: PaginatedRequestParams | None) -> dict[str, Any]:
        refuse_cursor(params)
        templates = (*self.templates, *(one for one in self.artifacts if "{" in one.uri_template))
        entries = [{"uriTemplate": one.uri_template, **_build_entry(one)} for one in templates]
        return NOT_CACHED | {"resourceTemplates": entries}

    async def read_resource(self, params: ReadResourceRequestParams, principal: str) -> dict[str, Any]:
        found = await self.find_resource(str(params.uri), principal)
        if found is None:
            raise build_missing_resource_error(str(params.uri))
        return found

    async def find_resource(self, uri: str, principal: str) -> dict[str, Any] | None:
        """Return what is at the address; None if nothing of ours is."""
        for artifact in self.artifacts:
            holes = match_template(artifact.uri_template, uri)
            content = await artifact.read(principal, holes) if holes is not None else None
            if content is not None:
                return _build_contents(uri, artifact.media_type, content)
        for resource in self.resources:
            if resource.uri == uri:
                return _build_contents(uri, resource.media_type, resource.read())
        for template in self.templates:
            if (holes := match_template(template.uri_template, uri)) is not None:
                return _build_contents(uri, template.media_type, template.read(holes))
        return None

    async def get_prompt(self, params: GetPromptRequestParams, speaker: PromptCaller, person: bool) -> dict[str, Any]:
        prompt = next((one for one in self.get_offered_prompts(person=True) if one.name == params.name), None)
        if prompt is None:
            raise MCPError(INVALID_PARAMS, f"there is no prompt `{params.name[:80]}`", {"name": params.name[:80]})
        arguments = dict(params.arguments or {})
        if isinstance(prompt, SlashCommand):
            arguments = {name: "" if PLACEHOLDER.fullmatch(value) else value for name, value in arguments.items()}
            if not person and is_acting(prompt, arguments):
                raise MCPError(INVALID_PARAMS, describe_not_offered(prompt), {"name": prompt.name})
        missing = [one for one in prompt.arguments if one.required and one.name not in arguments]
        if missing:
            needed = ", ".join(f"{one.name} ({one.description})" for one in missing)
            raise MCPError(
                INVALID_PARAMS, f"`{params.name}` needs {needed}", {"missing": [one.name for one in missing]}
            )
        messages = [dict(message) for message in await _render_prompt(prompt, arguments, speaker)]
        return replace_half_surrogates({"description": prompt.description, "messages": messages, **COMPLETE})

    async def complete(self, params: CompleteRequestParams, principal: str, person: bool) -> dict[str, Any]:
        ref, argument = params.ref.model_dump(by_alias=True), params.argument
        values = [
            str(value) for value in await self._find_values(ref, argument.name, argument.value, principal, person)
        ]
        shown = values[:MAX_COMPLETIONS]
        more = {"values": shown, "total": len(values), "hasMore": len(values) > len(shown)}
        return {"completion": more, **COMPLETE}

    async def _find_values(
        self, ref: Mapping[str, Any], name: str, typed: str, principal: str, person: bool
    ) -> list[str]:
        for prompt in self.get_offered_prompts(person):
            if prompt.name == ref.get("name"):
                matches = [one for one in get_shown_arguments(prompt, person) if one.name == name]
                return [value for one in matches if one.values for value in one.values(typed)]
        for template in self.templates:
            if template.uri_template == ref.get("uri"):
                return list(template.values(name, typed)) if template.values else []
        for artifact in self.artifacts:
            if artifact.uri_template == ref.get("uri") and artifact.values:
                return list(await artifact.values(principal, name, typed))
        return []


def build_missing_resource_error(uri: str) -> MCPError:
    return MCPError(INVALID_PARAMS, "there is no resource at that address", {"uri": uri})


async def _render_prompt(
    prompt: SlashCommand | Prompt, arguments: Mapping[str, str], speaker: PromptCaller
) -> Sequence[Mapping[str, Any]]:
    if isinstance(prompt, SlashCommand):
        return await prompt.run(speaker, arguments)
    if prompt.ask is not None:
        arguments = {**arguments, **await prompt.ask(speaker.client, arguments)}
    return await prompt.render_for(speaker.principal, arguments) if prompt.render_for else prompt.render(arguments)


def is_acting(command: SlashCommand, arguments: Mapping[str, str]) -> bool:
    return command.acts or any(one.acts and arguments.get(one.name, "").strip() for one in command.arguments)


def describe_not_offered(command: SlashCommand) -> str:
    return (
        f"Nothing was done: `{command.name}` is not offered to this client, because people other than its user may be "
        f"able to run its prompts. The user can type `{command.typed}` at a terminal."
    )


def get_shown_arguments(prompt: SlashCommand | Prompt, person: bool) -> list[PromptArgument]:
    return [one for one in prompt.arguments if person or not one.acts]


def refuse_cursor(params: PaginatedRequestParams | None) -> None:
    """Refuse any cursor: every list has one page."""
    if params is not None and params.cursor is not None:
        raise MCPError(INVALID_PARAMS, "unknown cursor; the list has one page")


def match_template(template: str, uri: str) -> dict[str, str] | None:
    """Return the values of the placeholders in `scheme://path/{hole}`; None if the address does not fit."""
    parts = re.split(r"\{(\w+)\}", template)
    pattern = "".join(re.escape(part) if index % 2 == 0 else f"(?P<{part}>[^/]+)" for index, part in enumerate(parts))
    match = re.fullmatch(pattern, uri)
    return match.groupdict() if match else None


def _build_prompt_entry(prompt: SlashCommand | Prompt, person: bool) -> dict[str, Any]:
    arguments = [
        {"name": one.name, "description": one.description, "required": one.required}
        for one in get_shown_arguments(prompt, person)
    ]
    return {"name": prompt.name, "title": prompt.title, "description": prompt.description, "arguments": arguments}


def _build_entry(one: Resource | Template | PrincipalResource) -> dict[str, Any]:
    return {"name": one.name, "description": one.description, "mimeType": one.media_type}


def _build_contents(uri: str, media_type: str, content: str | bytes) -> dict[str, Any]:
    value = {"blob": base64.b64encode(content).decode()} if isinstance(content, bytes) else {"text": content}
    return replace_half_surrogates(NOT_CACHED | {"contents": [{"uri": uri, "mimeType": media_type, **value}]})
