"""What does another model think of a finished run? The operator's endpoint is asked, and its answer is not trusted.

The request holds the run as recorded, bounded and without secrets. The reply is untrusted text: it counts only in the
requested shape, and the report shows it as a model's words, next to what was checked.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from mcp_server.calls.reviews import Check, CheckResult, FinishedRun, limit_lines
from mcp_server.config.prompts import PromptError
from mcp_server.guards.network.build import build_single_place_network
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
MOST_CALLS = 200
MOST_RECORD = 24_000
MOST_ANSWER = 4_000
MOST_REASON = 200
MOST_LINE = 400
MOST_REPLY = 256 * 1024
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
    """The reply is unusable. The message says what is wrong with it and repeats none of it."""


def build_model_check(
    reviewing: Reviewing, destinations: Destinations, store: Store, redactor: Redactor, render: Callable[[str], str]
) -> Check:
    """The check that asks the operator's model about a finished run."""

    async def ask_model(run: FinishedRun) -> CheckResult:
        network = build_single_place_network(reviewing.place, destinations)
        key = read_variable(reviewing.key)
        return await ModelAdviser(reviewing, key, network, store, redactor, render).review_run(run)

    return ask_model


@dataclass(frozen=True)
class ModelAdviser:
    wish: Reviewing
    key: str
    """Empty if the endpoint needs no key, or if the variable that should hold the key is unset."""
    network: Network
    """Reaches this endpoint and nothing else."""
    store: Store
    redactor: Redactor
    say: Callable[[str], str]

    async def review_run(self, run: FinishedRun) -> CheckResult:
        if why := self._find_obstacle(run):
            return self._report_failure(why)
        try:
            body = self._build_request_body(await self._describe_run(run))
        except PromptError as wrong:
            return self._report_failure(str(wrong))
        asked = AdviserOpinion(self.wish.model, self.wish.place, len(body))
        try:
            return CheckResult(opinion=self._parse_opinion(await self._send_request(body), asked))
        except BadReply as wrong:
            return self._report_failure(str(wrong), asked)
        except Refusal as refused:
            return self._report_failure(refused.problem.message, asked)

    def _report_failure(self, why: str, asked: AdviserOpinion | None = None) -> CheckResult:
        return CheckResult(unchecked=(f"{NAME}: {self._clean_line(why)}",), opinion=asked)

    def _find_obstacle(self, run: FinishedRun) -> str:
        """Return why the model is not asked at all. At `restricted` the person allows nothing but reading without being
        asked, and whoever narrows the profile narrows what the operator set up, too."""
        if run.profile is Profile.RESTRICTED:
            return "not asked, because at profile `restricted` nothing is sent out"
        if self.wish.key and not self.key:
            return f"not asked, because the environment variable `{self.wish.key}` holds no key"
        if not (self.key.isascii() and self.key.isprintable()):
            return f"not asked, because what the environment variable `{self.wish.key}` holds cannot be a key"
        return ""

    async def _describe_run(self, run: FinishedRun) -> str:
        """Describe the run from the record: no arguments, no results."""
        told = await self.store.read(partial(build_run_summary, run=run.session.run))
        parts = [
            f"The run was ended as: {run.status}",
            "\n".join(("Its calls, the newest last:", *describe_calls(run))),
            *([f"What was noted of it:\n{told.text}"] if told else []),
            f"The answer that was delivered:\n{self.redactor.redact_and_cut(run.answer, MOST_ANSWER)}",
        ]
        return mark_untrusted(self.redactor.redact_and_cut("\n\n".join(parts), MOST_RECORD), "the record of a run")

    def _build_request_body(self, record: str) -> bytes:
        """Send only what every such endpoint accepts: in further parameters they differ."""
        said = [{"role": "system", "content": self.say(PROMPT)}, {"role": "user", "content": record}]
        return json.dumps({"model": self.wish.model, "messages": said, "stream": False}).encode()

    async def _send_request(self, body: bytes) -> Response:
        key = (("Authorization", f"Bearer {self.key}"),) if self.key else ()
        headers = (("Content-Type", "application/json"), ("Accept", "application/json"), *key)
        return await self.network.fetch(
            Request(self.wish.endpoint, "POST", headers, body, seconds=self.wish.patience, most_bytes=MOST_REPLY)
        )

    def _parse_opinion(self, response: Response, asked: AdviserOpinion) -> AdviserOpinion:
        found = parse_reply(response)
        issues, missing, suggested = (self._clean_lines(found[name]) for name in LISTS)
        said = self._clean_line(found.get("summary", ""))
        return AdviserOpinion(asked.model, asked.place, asked.sent, True, said, issues, missing, suggested)

    def _clean_lines(self, texts: Sequence[str]) -> tuple[str, ...]:
        return limit_lines([line for text in texts if (line := self._clean_line(text))])

    def _clean_line(self, text: str) -> str:
        """Reduce to one line, without secrets and without characters that a terminal or a model would obey unseen."""
        return cut_middle(" ".join(self.redactor.redact(sanitize(text)).split()), MOST_LINE).replace("\n", " ")


def describe_calls(run: FinishedRun) -> Iterator[str]:
    outcomes = {row.fields.get("intent"): row.fields for row in run.rows if row.kind == "outcome"}
    lines: list[str] = []
    for row in run.rows:
        what = f"{row.fields.get('tool')} ({row.fields.get('effect')})"
        if row.kind == "intent":
            lines.append(f"{what}: {describe_outcome(outcomes.get(row.seq))}")
        elif row.kind == "question":
            lines.append(f"{what}: the person was asked first")
        elif row.kind == "refusal":
            reason = str(row.fields.get("reason", ""))[:MOST_REASON]
            lines.append(f"{what}: did not run, {row.fields.get('code')}: {reason}")
    if len(lines) > MOST_CALLS:
        yield f"({len(lines) - MOST_CALLS} earlier ones are left out)"
    yield from (f"- {line}" for line in lines[-MOST_CALLS:] or ("none",))


def describe_outcome(outcome: Mapping[str, Any] | None) -> str:
    if outcome is None:
        return "nothing is known of how it ended"
    parts = [outcome.get("ending"), outcome.get("code"), outcome.get("tested") and f"tests {outcome['tested']}"]
    return ", ".join(str(part) for part in parts if part)


def parse_reply(response: Response) -> Mapping[str, Any]:
    """Return the requested object. Raises `BadReply` with the reason if there is none."""
    if response.status != OK:
        raise BadReply(f"the endpoint answered with status {response.status}")
    if response.cut:
        raise BadReply(f"the endpoint's answer is longer than {MOST_REPLY // 1024} KB")
    return validate_shape(
        parse_json(extract_message_text(parse_json(response.body, "the endpoint's answer")), "what the model said")
    )


def extract_message_text(found: object) -> str:
    """Take the model's message out of the endpoint's envelope."""
    value: object = found
    for step in ("choices", 0, "message", "content"):
        if isinstance(step, int):
            value = cast(Sequence[object], value)[step] if isinstance(value, list) and value else None
        else:
            value = cast(Mapping[str, object], value).get(step) if isinstance(value, dict) else None
    if not isinstance(value, str) or not value.strip():
        raise BadReply("the endpoint's answer holds no message of a model")
    text = THOUGHT.sub("", value).strip()
    fenced = FENCE.match(text)
    return fenced[1] if fenced else text


def parse_json(text: str | bytes, what: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise BadReply(f"{what} is not JSON") from None


def validate_shape(found: object) -> Mapping[str, Any]:
    from jsonschema_rs import Draft202012Validator

    if not isinstance(found, dict) or find_json_fault(given := cast(dict[str, Any], found)):
        raise BadReply("what the model said is no JSON object")
    wrong = next(iter(Draft202012Validator(dict(SHAPE), offline=True).iter_errors(given)), None)
    if wrong is not None:
        names = ", ".join(f"`{name}`" for name in LISTS)
        raise BadReply(f"what the model said has not the shape it was asked for: lists of texts, named {names}")
    return given
