"""Why does this test fail? Is the failure new, was it there before, or does it come and go?

The test is run by `bash`, through the gate, as the caller could have run it. What was before is looked up in a worktree
of its own, made from the last commit and taken away again; the user's files, index and branch are not touched.
"""

import posixpath
from collections.abc import Awaitable, Callable

import anyio
from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.results import Code, Done, Ending, Problem, Refusal
from tools.git.program import open_repository
from tools.phases.definitions import SECONDS, AnalyzeArguments
from tools.single_test import (
    FRESH,
    SingleTestOutcome,
    SingleTestRun,
    build_test_command,
    find_name_fault,
    find_python,
    parse_test_run,
    run_line,
)

# What was the project like at the last commit? A worktree apart, for as long as somebody looks at it.


async def run_at_last_commit(ctx: Context, seen: Callable[[str], Awaitable[SingleTestRun]]) -> SingleTestRun:
    """What is seen in the folder that stands for the workspace at the last commit; why nothing can be, where so."""
    scratch = ctx.files.make_scratch_folder()
    try:
        folder = await to_thread.run_sync(scratch.__enter__)
        try:
            return await _run_in_worktree(ctx, f"{folder}/tree", seen)
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(scratch.__exit__, None, None, None)
    except Refusal as refused:
        return SingleTestRun(SingleTestOutcome.UNCLEAR, refused.problem.text, refused.problem)


async def _run_in_worktree(ctx: Context, path: str, seen: Callable[[str], Awaitable[SingleTestRun]]) -> SingleTestRun:
    git = await open_repository(ctx, ".")
    commit = (await git.read("rev-parse", "--verify", "--end-of-options", "HEAD^{commit}")).decode().strip()
    folder = f"{ctx.files.root.rstrip('/')}/{path}"
    # An index of its own: nothing of this is noted in the repository, and nothing has to be taken out of it again.
    apart = {"GIT_INDEX_FILE": f"{folder}.index"}
    await git.change("read-tree", commit, env=apart)
    await git.change("checkout-index", "--all", f"--prefix={folder}/", env=apart)
    # The workspace may be a folder somewhere inside of the repository.
    return await seen(posixpath.normpath(f"{path}/{posixpath.relpath('.', git.repository.top)}"))


SHOWN = 2000
SAID = {
    "passes": "It passes.",
    "mended": "It passes, and failed at the last commit: what was changed since mended it.",
    "fails": "It fails. With `compare_baseline` it is looked up whether it did so before.",
    "new_failure": "It fails, and passed at the last commit: what was changed since broke it.",
    "failed_before": "It fails, and failed at the last commit too: what was changed since did not break it.",
    "flaky": "It is flaky: of two runs of the same code one failed and one passed.",
    "cannot_tell": "It cannot be told.",
}


async def analyze(ctx: Context, args: AnalyzeArguments) -> Ending:
    test = args["test_name"]
    if fault := find_name_fault(test):
        message = f"`test_name` {fault}."
        return Problem(Code.INVALID_ARGUMENTS, message, "Name the test as its runner does, relative to the workspace.")
    command = f"{FRESH} {build_test_command(test, await find_python(ctx.files))}"
    runs = [await _run_test(ctx, test, command)]
    if runs[0].refused is None and runs[0].look is SingleTestOutcome.FAILED:
        runs.append(await _run_test(ctx, test, command))
    if refused := next((one.refused for one in runs if one.refused), None):
        return _build_refused_problem(refused)
    before = None
    if args.get("compare_baseline"):
        await ctx.progress(len(runs), len(runs) + 1, "the last commit")
        before = await run_at_last_commit(ctx, lambda folder: _run_test(ctx, test, command, folder))
        if before.refused is not None and before.refused.code is not Code.NOT_FOUND:
            return _build_refused_problem(before.refused)
    return _build_answer(runs, before)


async def _run_test(ctx: Context, test: str, command: str, folder: str = "") -> SingleTestRun:
    return parse_test_run(test, await run_line(ctx, command, SECONDS, folder))


def _build_refused_problem(refused: Problem) -> Problem:
    return Problem(refused.code, f"the test was not run: {refused.message}", refused.way_out, refused.data)


def decide_verdict(runs: list[SingleTestOutcome], before: SingleTestOutcome | None) -> str:
    if SingleTestOutcome.FAILED in runs and SingleTestOutcome.PASSED in runs:
        return "flaky"
    now = runs[0]
    if now is SingleTestOutcome.PASSED:
        return "mended" if before is SingleTestOutcome.FAILED else "passes"
    if now is not SingleTestOutcome.FAILED:
        return "cannot_tell"
    if before is None:
        return "fails"
    return {SingleTestOutcome.FAILED: "failed_before", SingleTestOutcome.PASSED: "new_failure"}.get(
        before, "cannot_tell"
    )


def _build_answer(runs: list[SingleTestRun], before: SingleTestRun | None) -> Done:
    found = decide_verdict([one.look for one in runs], before.look if before else None)
    lines = [SAID[found] + (f" {_describe_uncertainty(runs[0], before)}" if found == "cannot_tell" else "")]
    lines += [f"--- now: {runs[0].look}", runs[0].text[-SHOWN:]]
    if len(runs) > 1 and runs[1].look is not runs[0].look:
        lines += [f"--- again: {runs[1].look}", runs[1].text[-SHOWN:]]
    if before is not None:
        lines += [f"--- at the last commit: {before.look}", before.text[-SHOWN:]]
    data = {"verdict": found, "runs": [str(one.look) for one in runs], "baseline": str(before.look) if before else None}
    return Done("\n".join(lines), data, outside="a test of this workspace")


def _describe_uncertainty(now: SingleTestRun, before: SingleTestRun | None) -> str:
    if now.look is SingleTestOutcome.MISSING:
        return "There is no such test."
    if now.look is SingleTestOutcome.UNCLEAR or before is None:
        return "The test did not come to an end that says anything."
    if before.look is SingleTestOutcome.MISSING:
        return "It fails now, and there was no such test at the last commit."
    return "It fails now, and could not be run as of the last commit."
