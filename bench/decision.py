"""How long does one decision take among a thousand rules?

Two mixes of a thousand rules: spread over many tools, as people write them (the limit applies to these), and all of
them about the called tool with none that matches (the worst case, for information).
"""

from collections.abc import Sequence
from statistics import median
from time import perf_counter_ns

from mcp_server.model.menus import META_TOOLS, Menus, Mode
from mcp_server.model.policy import Call, Policy, RuleKind, Rules, RuleText
from mcp_server.model.posture import Posture, Profile, WorkMode
from mcp_server.model.results import Done, Ending
from mcp_server.model.sessions import Session
from mcp_server.model.tools import EVERY_STAGE, Effect, RuleSubject, Tool
from mcp_server.policy.arguments import build_argument_check
from mcp_server.policy.decision import decide
from mcp_server.policy.rules import compile_rules
from tools.catalog import READ_LINE

RULES = 1_000
TOOLS = 500
CALL = Call("tool_7", {"path": "src/deep/er/file.py", "limit": 3})


async def _run(_ctx: object, _arguments: object) -> Ending:
    return Done("")


def _tool(name: str) -> Tool:
    properties = {"path": {"type": "string"}, "limit": {"type": "integer"}}
    schema = {"type": "object", "properties": properties, "required": ["path"], "additionalProperties": False}
    return Tool(
        name,
        name,
        name,
        schema,
        Profile.NORMAL,
        Effect.WRITE_LOCAL,
        EVERY_STAGE,
        _run,
        subject=("path", RuleSubject.PATH),
    )


def _policy(texts: Sequence[RuleText]) -> Policy:
    names = [f"tool_{number}" for number in range(TOOLS)]
    tools = {name: _tool(name) for name in (*META_TOOLS, *names)}
    mode = Mode("all", "All", "", "", "", "", "", tuple(names))
    rules = compile_rules(texts, tools, READ_LINE, roots=("/work",))
    if not isinstance(rules, Rules):
        raise ValueError(rules[0].message)
    return Policy(
        tools,
        Menus((mode,)),
        {stage: frozenset(Effect) for stage in EVERY_STAGE},
        rules,
        unfit=build_argument_check(tools),
        read_line=READ_LINE,
        work_modes={mode: frozenset(Effect) for mode in WorkMode},
    )


def build_spread_policy() -> Policy:
    """Build a thousand rules over five hundred tools: specifiers, predicates, names with wildcards."""
    shapes = ("{0}(secrets/**)", "{0}(limit gt 60)", "{0}(path glob '*.pem')", "{0}(path regex '^/etc/')")
    texts: list[RuleText] = []
    for number in range(RULES - 4):
        kind = list(RuleKind)[number % 4]
        text = shapes[number // 4 % 4].format(f"tool_{number % TOOLS}")
        texts.append(RuleText(kind, text, f"bench:{number}"))
    for number in range(4):
        texts.append(RuleText(RuleKind.DENY, f"tool_*(never{number}/**)", f"bench:wild{number}"))
    return _policy(texts)


def build_crowded_policy() -> Policy:
    """Build a thousand deny rules about one tool."""
    return _policy(
        [RuleText(RuleKind.DENY, f"tool_7(secrets{number}/**)", f"bench:{number}") for number in range(RULES)]
    )


def measure_microseconds(policy: Policy, rounds: int = 2_000) -> float:
    """Measure the median time of a decision that passes every layer."""
    tool, session, posture = policy.tools[CALL.tool], Session("s", "p", "all"), Posture()
    durations: list[int] = []
    for _ in range(rounds):
        start = perf_counter_ns()
        decision = decide(tool, CALL, session, posture, policy)
        durations.append(perf_counter_ns() - start)
        if not decision.is_allowed:
            raise ValueError(decision.reason)
    return median(durations[rounds // 10 :]) / 1_000


def measure() -> dict[str, float]:
    return {
        "spread": measure_microseconds(build_spread_policy()),
        "crowded": measure_microseconds(build_crowded_policy(), rounds=200),
    }


def main() -> None:
    for name, duration in measure().items():
        print(f"one decision among {RULES:,} rules, {name}: {duration:.1f} µs")


if __name__ == "__main__":
    main()
