"""What has to be true before a todo is done? Four kinds of criterion, and how each is checked.

Nothing is checked here by its own hands: what a criterion looks at or runs is a call through the gate at that moment,
so that a todo can look at and run what its caller could, and no more.
"""

import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from mcp_server.model.context import Context
from mcp_server.model.results import Code, Done, Problem
from mcp_server.model.todos import Criterion, CriterionVerdict, Result
from tools.single_test import build_test_command, find_name_fault, find_python, get_exit_code, parse_test_run, run_line
from tools.todos.definitions import SECONDS

SHOWN = 400


KEYS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "command_exit_zero": (frozenset(("command",)), frozenset(("seconds",))),
    "file_exists": (frozenset(("path",)), frozenset()),
    "file_contains": (frozenset(("path",)), frozenset(("text", "pattern"))),
    "test_passes": (frozenset(("test",)), frozenset(("seconds",))),
}
"""What each type needs, and what it may have besides."""


def find_criteria_problem(criteria: Sequence[Mapping[str, Any]]) -> Problem | None:
    """What is wrong with criteria that fit the schema."""
    for number, one in enumerate(criteria, 1):
        needed, more = KEYS[one["type"]]
        given = frozenset(one["params"])
        fault = ""
        if missing := needed - given:
            fault = f"needs `{min(missing)}`"
        elif extra := given - needed - more:
            fault = f"takes no `{min(extra)}`"
        elif one["type"] == "file_contains" and len(given & {"text", "pattern"}) != 1:
            fault = "needs either `text` or `pattern`"
        elif "test" in given:
            fault = find_name_fault(one["params"]["test"])
        if fault:
            message = f"criterion {number}, `{one['type']}`, {fault}."
            return Problem(Code.INVALID_ARGUMENTS, message, "Nothing was kept. Correct it and call again.")
    return None


async def check_criterion(ctx: Context, criterion: Criterion) -> Result:
    verdict, said, refused = await CHECKS[criterion.type](ctx, criterion.params)
    if refused is None:
        return Result(criterion.type, verdict, said[: 3 * SHOWN])
    layer = str((refused.data or {}).get("layer", ""))
    return Result(criterion.type, verdict, refused.message[:SHOWN], str(refused.code), layer)


Answer = tuple[CriterionVerdict, str, Problem | None]


def _build_unclear_answer(problem: Problem) -> Answer:
    return CriterionVerdict.UNCLEAR, problem.message, problem


async def _check_command(ctx: Context, params: Mapping[str, Any]) -> Answer:
    return await _run_check(ctx, params["command"], params)


async def _check_test(ctx: Context, params: Mapping[str, Any]) -> Answer:
    return await _run_check(ctx, build_test_command(params["test"], await find_python(ctx.files)), params)


async def _run_check(ctx: Context, command: str, params: Mapping[str, Any]) -> Answer:
    seconds = params.get("seconds", SECONDS)
    ending = await run_line(ctx, command, seconds)
    code = get_exit_code(ending)
    if code is None:
        late = (CriterionVerdict.UNCLEAR, f"`{command}` did not end within {seconds} s and was stopped", None)
        return _build_unclear_answer(ending) if isinstance(ending, Problem) else late
    if code == 0:
        return CriterionVerdict.PASSED, f"`{command}` exited with 0", None
    printed = parse_test_run("", ending).text.strip()
    return CriterionVerdict.FAILED, f"`{command}` exited with {code}: {printed[-SHOWN:]}", None


async def _check_exists(ctx: Context, params: Mapping[str, Any]) -> Answer:
    ending = await ctx.call_tool("fs_file_info", {"path": params["path"]})
    if isinstance(ending, Done):
        return CriterionVerdict.PASSED, f"`{params['path']}` is there", None
    if isinstance(ending, Problem) and ending.code is Code.NOT_FOUND:
        return CriterionVerdict.FAILED, f"there is no `{params['path']}`", None
    return (
        _build_unclear_answer(ending)
        if isinstance(ending, Problem)
        else (CriterionVerdict.UNCLEAR, "it waits for the user", None)
    )


async def _check_contains(ctx: Context, params: Mapping[str, Any]) -> Answer:
    path, pattern = params["path"], params.get("pattern") or escape_pattern(params["text"])
    verdict, said, refused = await _check_exists(ctx, params)
    if verdict is not CriterionVerdict.PASSED:
        return verdict, said, refused
    call = {"pattern": pattern, "path": path, "output_mode": "content", "multiline": "\n" in params.get("text", "")}
    ending = await ctx.call_tool("grep", call)
    if not isinstance(ending, Done):
        return (
            _build_unclear_answer(ending)
            if isinstance(ending, Problem)
            else (CriterionVerdict.UNCLEAR, "it waits for the user", None)
        )
    if ending.meta.get("total"):
        return CriterionVerdict.PASSED, f"`{path}` contains it", None
    if not ending.meta.get("complete", True):
        return CriterionVerdict.UNCLEAR, f"`{path}` could not be searched to its end", None
    return CriterionVerdict.FAILED, f"`{path}` does not contain it", None


CHECKS: dict[str, Callable[[Context, Mapping[str, Any]], Awaitable[Answer]]] = {
    "command_exit_zero": _check_command,
    "file_exists": _check_exists,
    "file_contains": _check_contains,
    "test_passes": _check_test,
}


def escape_pattern(text: str) -> str:
    """A regular expression that matches this text and nothing else, in every dialect that `grep` may speak."""
    return "".join(f"\\{sign}" if sign in r"\.+*?()|[]{}^$#&-~" else sign for sign in text)


def describe_criterion(criterion: Criterion) -> str:
    """A criterion in a few words."""
    params = criterion.params
    what = params.get("command") or params.get("test") or params.get("path", "")
    inside = params.get("text") or params.get("pattern")
    return f"{criterion.type} {shlex.quote(what)[:120]}" + (f" {inside[:60]!r}" if inside else "")
