"""Which words can a person ask for by name? What the model is told here and now, and every prompt by its key."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from mcp_server.config.composing import composed
from mcp_server.config.filling import VARIABLES
from mcp_server.config.prompts import PromptError, Prompts
from mcp_server.model.posture import Posture, Stage
from mcp_server.model.tool_packs import Pack, Prompt, PromptArgument

SAYS = {
    "user_input": "what the user asked for",
    "tool_summary": "what the tools have answered so far",
    "last_step_outcome": "what happened in the last step",
}


@dataclass(frozen=True)
class OwnPrompts:
    words: Prompts
    root: str
    posture: Callable[[str], Awaitable[Posture]]

    def pack(self) -> Pack:
        return Pack("menugate", prompts=self.prompts())

    def prompts(self) -> tuple[Prompt, ...]:
        given = tuple(PromptArgument(name, says) for name, says in SAYS.items())
        stage = PromptArgument(
            "stage", f"a stage of a run: {', '.join(Stage)} (act where left out)", values=_beginning(tuple(Stage))
        )
        key = PromptArgument("key", "which one", required=True, values=self._keys)
        return (
            Prompt(
                name="system",
                title="What a model is told here",
                description="The words for a model that works here, as your posture and the stage of a run make them.",
                render=_nothing,
                arguments=(stage, *given),
                render_for=self._system,
            ),
            Prompt(
                name="words",
                title="One prompt by its key",
                description="One of the prompts menugate is made of, with your values put in.",
                render=_nothing,
                arguments=(key, *given),
                render_for=self._one,
            ),
        )

    def _keys(self, typed: str) -> Sequence[str]:
        return [key for key in self.words.known() if key.startswith(typed)]

    async def _system(self, principal: str, given: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
        name = given.get("stage") or str(Stage.ACT)
        if name not in list(Stage):
            raise MCPError(INVALID_PARAMS, f"there is no stage `{name[:40]}`; there are {', '.join(Stage)}")
        posture = await self.posture(principal)
        return _said(lambda: composed(self.words, posture, Stage(name), self._values(given)))

    async def _one(self, _principal: str, given: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
        return _said(lambda: self.words.say(given["key"], self._values(given)))

    def _values(self, given: Mapping[str, str]) -> dict[str, str]:
        return {name: given[name] for name in VARIABLES if name in given} | {"project_root": self.root}


def _said(make: Callable[[], str]) -> Sequence[Mapping[str, Any]]:
    try:
        text = make()
    except PromptError as wrong:
        raise MCPError(INVALID_PARAMS, str(wrong)) from None
    return [{"role": "user", "content": {"type": "text", "text": text}}]


def _beginning(names: Sequence[str]) -> Callable[[str], Sequence[str]]:
    return lambda typed: [str(name) for name in names if name.startswith(typed)]


def _nothing(_given: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
    return ()
