"""What does another model say about a finished run? Asks the operator's endpoint, and does not trust the answer.

The request contains the run as recorded, shortened and without secrets. The reply is untrusted text: it must have the
requested shape, and the report shows it as a model's words, next to what was checked.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.calls.reviews import Check, CheckResult, FinishedRun, limit_lines
from mcp_server.config.prompts import PromptError
from mcp_server.guards.network.network import build_single_place_network
from mcp_server.guards.redaction import Redactor
from mcp_server.guards.sanitizer import mark_untrusted, sanitize
from mcp_server.guards.spill import cut_middle
from mcp_server.model.destinations import Destinations
from mcp_server.model.network import Network, Request, Response
from mcp_server.model.policy import Reviewing
from mcp_server.model.posture import Profile
from mcp_server.model.reports import LISTS, AdviserOpinion
from mcp_server.model.results import Refusal
from mcp_server.policy.arguments import find_json_fault
from mcp_server.settings import read_variable
from mcp_server.state.store import Store
from mcp_server.state.summaries import build_run_summary

PROMPT = "qa/reviewer"
NAME = "a model's review"
MAX_CALLS = 200
MAX_RECORD_CHARS = 24_000
MAX_ANSWER_CHARS = 4_000
MAX_REASON_CHARS = 200
MAX_LINE_CHARS = 400
MAX_REPLY_BYTES = 256 * 1024
OK = 200
TEXTS = {"type": "array", "items": {"type": "string"}}
SHAPE: Mapping[str, Any] = {
    "type": "object",
    "properties": {"summary": {"type": "string"}, **dict.fromkeys(LISTS, TEXTS)},
    "required": list(LISTS),
}
THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
FENCE = re.compile(r"\A```(?:json)?[ \t]*\n(.*)\n```\Z", re.DOTALL)


class BadReply(Exception):
    """The reply is unusable; the message says why without quoting it."""


def build_model_check(
    reviewing: Reviewing, destinations: Destinations, store: Store, redactor: Redactor, render: Callable[[str], str]
) -> Check:
    """The check that asks the operator's model about a finished run."""

    async def ask_model(run: FinishedRun) -> CheckResult:
        network = build_single_place_network(reviewing.place, destinations)
        key = read_variable(reviewing.key)
        try:
            return await ModelAdviser(reviewing, key, network, store, redactor, render).review_run(run)
        finally:
            await network.close()

    return ask_model


class ModelAdviser(Struct, frozen=True):
    reviewing: Reviewing
    key: str
    """Empty if the endpoint needs no key, or if the variable that should hold the key is unset."""
    network: Network
    """Reaches this endpoint and nothing else."""
    store: Store
    redactor: Redactor
    render_prompt: Callable[[str], str]

    async def review_run(self, run: FinishedRun) -> CheckResult:
        if why := self._find_obstacle(run):
            return self._report_failure(why)
        try:
            body = self._build_request_body(await self._describe_run(run))
        except PromptError as error:
            return self._report_failure(str(error))
        unanswered = AdviserOpinion(self.reviewing.model, self.reviewing.place, len(body))
        try:
            return CheckResult(opinion=self._parse_opinion(await self._send_request(body), unanswered))
        except BadReply as error:
            return self._report_failure(str(error), unanswered)
        except Refusal as refused:
            return self._report_failure(refused.problem.message, unanswered)

    def _report_failure(self, why: str, opinion: AdviserOpinion | None = None) -> CheckResult:
        return CheckResult(unchecked=(f"{NAME}: {self._clean_line(why)}",), opinion=opinion)

    def _find_obstacle(self, run: FinishedRun) -> str:
        """Return why the model is not asked at all. The profile `restricted` allows only reading, and narrows what the
        operator set up here, too."""
        if run.profile is Profile.RESTRICTED:
            return "not asked, because nothing is sent out at profile `restricted`"
        if self.reviewing.key and not self.key:
            return f"not asked, because the environment variable `{self.reviewing.key}` holds no key"
        if not (self.key.isascii() and self.key.isprintable()):
            return f"not asked, because the environment variable `{self.reviewing.key}` does not hold a valid key"
        return ""

    async def _describe_run(self, run: FinishedRun) -> str:
        """Describe the run from the record: no arguments, no results."""
        summary = await self.store.read(partial(build_run_summary, run=run.session.run))
        parts = [
            f"The run ended as: {run.status}",
            "\n".join(("Its calls, newest last:", *describe_calls(run))),
            *([f"Its summary:\n{summary.text}"] if summary else []),
            f"Its final answer:\n{self.redactor.redact_and_cut(run.answer, MAX_ANSWER_CHARS)}",
        ]
        return mark_untrusted(self.redactor.redact_and_cut("\n\n".join(parts), MAX_RECORD_CHARS), "the record of a run")

    def _build_request_body(self, record: str) -> bytes:
        """Use only parameters that every such endpoint accepts."""
        messages = [{"role": "system", "content": self.render_prompt(PROMPT)}, {"role": "user", "content": record}]
        return json.dumps({"model": self.reviewing.model, "messages": messages, "stream": False}).encode()

    async def _send_request(self, body: bytes) -> Response:
        key = (("Authorization", f"Bearer {self.key}"),) if self.key else ()
        headers = (("Content-Type", "application/json"), ("Accept", "application/json"), *key)
        return await self.network.fetch(
            Request(
                self.reviewing.endpoint,
                "POST",
                headers,
                body,
                seconds=self.reviewing.patience,
                most_bytes=MAX_REPLY_BYTES,
            )
        )

    def _parse_opinion(self, response: Response, unanswered: AdviserOpinion) -> AdviserOpinion:
        reply = parse_reply(response)
        issues, missing, suggested = (self._clean_lines(reply[name]) for name in LISTS)
        return replace(
            unanswered,
            answered=True,
            summary=self._clean_line(reply.get("summary", "")),
            issues=issues,
            missing_steps=missing,
            suggested_next_actions=suggested,
        )

    def _clean_lines(self, texts: Sequence[str]) -> tuple[str, ...]:
        return limit_lines([line for text in texts if (line := self._clean_line(text))])

    def _clean_line(self, text: str) -> str:
        """Reduce to one line, without secrets or invisible characters that a terminal or a model would obey."""
        return cut_middle(" ".join(self.redactor.redact(sanitize(text)).split()), MAX_LINE_CHARS).replace("\n", " ")


def describe_calls(run: FinishedRun) -> Iterator[str]:
    outcomes = {row.fields.get("intent"): row.fields for row in run.rows if row.kind == "outcome"}
    lines: list[str] = []
    for row in run.rows:
        what = f"{row.fields.get('tool')} ({row.fields.get('effect')})"
        if row.kind == "intent":
            lines.append(f"{what}: {describe_outcome(outcomes.get(row.seq))}")
        elif row.kind == "question":
            lines.append(f"{what}: the user was asked first")
        elif row.kind == "refusal":
            reason = str(row.fields.get("reason", ""))[:MAX_REASON_CHARS]
            lines.append(f"{what}: did not run, {row.fields.get('code')}: {reason}")
    if len(lines) > MAX_CALLS:
        yield f"({len(lines) - MAX_CALLS} earlier ones left out)"
    yield from (f"- {line}" for line in lines[-MAX_CALLS:] or ("none",))


def describe_outcome(outcome: Mapping[str, Any] | None) -> str:
    if outcome is None:
        return "outcome unknown"
    parts = [outcome.get("ending"), outcome.get("code"), outcome.get("tested") and f"tests {outcome['tested']}"]
    return ", ".join(str(part) for part in parts if part)


def parse_reply(response: Response) -> Mapping[str, Any]:
    """Return the requested object, or raise `BadReply` with the reason."""
    if response.status != OK:
        raise BadReply(f"the endpoint answered with status {response.status}")
    if response.cut:
        raise BadReply(f"the endpoint's answer is longer than {MAX_REPLY_BYTES // 1024} KB")
    return validate_shape(
        parse_json(extract_message_text(parse_json(response.body, "the endpoint's answer")), "the model's reply")
    )


def extract_message_text(value: object) -> str:
    """Take the model's message out of the endpoint's envelope."""
    for step in ("choices", 0, "message", "content"):
        if isinstance(step, int):
            value = cast(Sequence[object], value)[step] if isinstance(value, list) and value else None
        else:
            value = cast(Mapping[str, object], value).get(step) if isinstance(value, dict) else None
    if not isinstance(value, str) or not value.strip():
        raise BadReply("the endpoint's answer contains no message from a model")
    text = THOUGHT.sub("", value).strip()
    fenced = FENCE.match(text)
    return fenced[1] if fenced else text


def parse_json(text: str | bytes, what: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise BadReply(f"{what} is not JSON") from None


def validate_shape(value: object) -> Mapping[str, Any]:
    from jsonschema_rs import Draft202012Validator

    if not isinstance(value, dict) or find_json_fault(reply := cast(dict[str, Any], value)):
        raise BadReply("the model's reply is not a JSON object")
    if not Draft202012Validator(dict(SHAPE), offline=True).is_valid(reply):
        names = ", ".join(f"`{name}`" for name in LISTS)
        raise BadReply(f"the model's reply does not have the requested shape: lists of strings, named {names}")
    return reply
