"""What must be true before a todo is done? Four kinds of criterion, and how each is checked.

Every check is a tool call through the gate, made at that moment, so a criterion can read and run what its caller could,
and no more.
"""

import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from mcp_server.model.context import Context
from mcp_server.model.results import Code, Done, Ending, Problem
from mcp_server.model.todos import Criterion, CriterionVerdict, Result
from tools.single_test import build_test_command, find_name_fault, find_python, get_exit_code, parse_test_run, run_line
from tools.todos.definitions import SECONDS

MAX_OUTPUT_CHARS = 400

KEYS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "command_exit_zero": (frozenset(("command",)), frozenset(("seconds",))),
    "file_exists": (frozenset(("path",)), frozenset()),
    "file_contains": (frozenset(("path",)), frozenset(("text", "pattern"))),
    "test_passes": (frozenset(("test",)), frozenset(("seconds",))),
}
"""The required and the optional parameters of each type."""


def find_criteria_problem(criteria: Sequence[Mapping[str, Any]]) -> Problem | None:
    """Find what the schema cannot express: parameters that a type lacks, does not take, or cannot use."""
    for number, criterion in enumerate(criteria, 1):
        required, optional = KEYS[criterion["type"]]
        names = frozenset(criterion["params"])
        fault = ""
        if missing := required - names:
            fault = f"needs `{min(missing)}`"
        elif extra := names - required - optional:
            fault = f"takes no `{min(extra)}`"
        elif criterion["type"] == "file_contains" and len(names & {"text", "pattern"}) != 1:
            fault = "needs either `text` or `pattern`"
        elif "test" in names:
            fault = find_name_fault(criterion["params"]["test"])
        if fault:
            message = f"criterion {number}, `{criterion['type']}`, {fault}."
            return Problem(Code.INVALID_ARGUMENTS, message, "Nothing was stored. Correct it and call again.")
    return None


async def check_criterion(ctx: Context, criterion: Criterion) -> Result:
    verdict, message, refusal = await CHECKS[criterion.type](ctx, criterion.params)
    if refusal is None:
        return Result(criterion.type, verdict, message[: 3 * MAX_OUTPUT_CHARS])
    layer = str((refusal.data or {}).get("layer", ""))
    return Result(criterion.type, verdict, refusal.message[:MAX_OUTPUT_CHARS], str(refusal.code), layer)


Check = tuple[CriterionVerdict, str, Problem | None]
"""A verdict, a message, and the problem if a tool refused."""


def _build_unclear_check(ending: Ending) -> Check:
    if isinstance(ending, Problem):
        return CriterionVerdict.UNCLEAR, ending.message, ending
    return CriterionVerdict.UNCLEAR, "waiting for the user", None


async def _check_command(ctx: Context, params: Mapping[str, Any]) -> Check:
    return await _run_check(ctx, params["command"], params)


async def _check_test(ctx: Context, params: Mapping[str, Any]) -> Check:
    return await _run_check(ctx, build_test_command(params["test"], await find_python(ctx.files)), params)


async def _run_check(ctx: Context, command: str, params: Mapping[str, Any]) -> Check:
    seconds = params.get("seconds", SECONDS)
    ending = await run_line(ctx, command, seconds)
    code = get_exit_code(ending)
    if code is None:
        if isinstance(ending, Problem):
            return _build_unclear_check(ending)
        return CriterionVerdict.UNCLEAR, f"`{command}` did not end within {seconds} s and was stopped", None
    if code == 0:
        return CriterionVerdict.PASSED, f"`{command}` exited with 0", None
    output = parse_test_run("", ending).text.strip()
    return CriterionVerdict.FAILED, f"`{command}` exited with {code}: {output[-MAX_OUTPUT_CHARS:]}", None


async def _check_exists(ctx: Context, params: Mapping[str, Any]) -> Check:
    ending = await ctx.call_tool("fs_file_info", {"path": params["path"]})
    if isinstance(ending, Done):
        return CriterionVerdict.PASSED, f"`{params['path']}` exists", None
    if isinstance(ending, Problem) and ending.code is Code.NOT_FOUND:
        return CriterionVerdict.FAILED, f"there is no `{params['path']}`", None
    return _build_unclear_check(ending)


async def _check_contains(ctx: Context, params: Mapping[str, Any]) -> Check:
    path, pattern = params["path"], params.get("pattern") or escape_pattern(params["text"])
    existence = await _check_exists(ctx, params)
    if existence[0] is not CriterionVerdict.PASSED:
        return existence
    call = {"pattern": pattern, "path": path, "output_mode": "content", "multiline": "\n" in params.get("text", "")}
    ending = await ctx.call_tool("grep", call)
    if not isinstance(ending, Done):
        return _build_unclear_check(ending)
    if ending.meta.get("total"):
        return CriterionVerdict.PASSED, f"`{path}` contains it", None
    if not ending.meta.get("complete", True):
        return CriterionVerdict.UNCLEAR, f"`{path}` could not be searched to the end", None
    return CriterionVerdict.FAILED, f"`{path}` does not contain it", None


CHECKS: dict[str, Callable[[Context, Mapping[str, Any]], Awaitable[Check]]] = {
    "command_exit_zero": _check_command,
    "file_exists": _check_exists,
    "file_contains": _check_contains,
    "test_passes": _check_test,
}


def escape_pattern(text: str) -> str:
    """Build a regular expression that matches this text and nothing else in every engine that `grep` may use."""
    return "".join(f"\\{char}" if char in r"\.+*?()|[]{}^$#&-~" else char for char in text)


def describe_criterion(criterion: Criterion) -> str:
    params = criterion.params
    target = params.get("command") or params.get("test") or params.get("path", "")
    content = params.get("text") or params.get("pattern")
    return f"{criterion.type} {shlex.quote(target)[:120]}" + (f" {content[:60]!r}" if content else "")
