"""Is a test's failure new, was it there at the last commit, or is the test flaky?

The test runs with `bash`, through the gate, as the caller could have run it. The last commit is checked out into a
temporary folder for it; the user's files, index and branch are not touched.
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
    NO_BYTECODE,
    SingleTestOutcome,
    SingleTestRun,
    build_test_command,
    find_name_fault,
    find_python,
    parse_test_run,
    run_line,
)

MAX_OUTPUT_CHARS = 2000
VERDICTS = {
    "passes": "It passes.",
    "mended": "It passes now and failed at the last commit: the changes since fixed it.",
    "fails": "It fails. To learn whether it failed at the last commit too, set `compare_baseline`.",
    "new_failure": "It fails now and passed at the last commit: the changes since broke it.",
    "failed_before": "It fails, as it did at the last commit: the changes since did not break it.",
    "flaky": "It is flaky: of two runs of the same code, one failed and one passed.",
    "cannot_tell": "Inconclusive.",
}


async def analyze(ctx: Context, args: AnalyzeArguments) -> Ending:
    test = args["test_name"]
    if fault := find_name_fault(test):
        message = f"`test_name` {fault}."
        return Problem(Code.INVALID_ARGUMENTS, message, "Name the test as its runner does, relative to the workspace.")
    command = f"{NO_BYTECODE} {build_test_command(test, await find_python(ctx.files))}"
    runs = [await _run_test(ctx, test, command)]
    if runs[0].refusal is None and runs[0].outcome is SingleTestOutcome.FAILED:
        runs.append(await _run_test(ctx, test, command))
    if refusal := next((run.refusal for run in runs if run.refusal), None):
        return _build_refused_problem(refusal)
    baseline = None
    if args.get("compare_baseline"):
        await ctx.progress(len(runs), len(runs) + 1, "the last commit")
        baseline = await _run_at_last_commit(ctx, lambda folder: _run_test(ctx, test, command, folder))
        if baseline.refusal is not None and baseline.refusal.code is not Code.NOT_FOUND:
            return _build_refused_problem(baseline.refusal)
    return _build_answer(runs, baseline)


async def _run_test(ctx: Context, test: str, command: str, folder: str = "") -> SingleTestRun:
    return parse_test_run(test, await run_line(ctx, command, SECONDS, folder))


async def _run_at_last_commit(ctx: Context, run: Callable[[str], Awaitable[SingleTestRun]]) -> SingleTestRun:
    """Call `run` with a folder that holds the workspace as of the last commit."""
    scratch = ctx.files.make_scratch_folder()
    try:
        folder = await to_thread.run_sync(scratch.__enter__)
        try:
            return await _run_in_checkout(ctx, f"{folder}/tree", run)
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(scratch.__exit__, None, None, None)
    except Refusal as refusal:
        return SingleTestRun(SingleTestOutcome.UNCLEAR, refusal.problem.text, refusal.problem)


async def _run_in_checkout(ctx: Context, path: str, run: Callable[[str], Awaitable[SingleTestRun]]) -> SingleTestRun:
    git = await open_repository(ctx, ".")
    commit = (await git.read("rev-parse", "--verify", "--end-of-options", "HEAD^{commit}")).decode().strip()
    folder = f"{ctx.files.root.rstrip('/')}/{path}"
    # Not `git worktree`, which would register the folder in the repository: a separate index leaves no trace.
    env = {"GIT_INDEX_FILE": f"{folder}.index"}
    await git.change("read-tree", commit, env=env)
    await git.change("checkout-index", "--all", f"--prefix={folder}/", env=env)
    # The workspace may lie below the top of the repository.
    return await run(posixpath.normpath(f"{path}/{posixpath.relpath('.', git.repository.top)}"))


def _build_refused_problem(refusal: Problem) -> Problem:
    return Problem(refusal.code, f"the test was not run: {refusal.message}", refusal.way_out, refusal.data)


def decide_verdict(runs: list[SingleTestOutcome], baseline: SingleTestOutcome | None) -> str:
    if SingleTestOutcome.FAILED in runs and SingleTestOutcome.PASSED in runs:
        return "flaky"
    if runs[0] is SingleTestOutcome.PASSED:
        return "mended" if baseline is SingleTestOutcome.FAILED else "passes"
    if runs[0] is not SingleTestOutcome.FAILED:
        return "cannot_tell"
    if baseline is None:
        return "fails"
    return {SingleTestOutcome.FAILED: "failed_before", SingleTestOutcome.PASSED: "new_failure"}.get(
        baseline, "cannot_tell"
    )


def _build_answer(runs: list[SingleTestRun], baseline: SingleTestRun | None) -> Done:
    outcomes = [run.outcome for run in runs]
    verdict = decide_verdict(outcomes, baseline.outcome if baseline else None)
    lines = [VERDICTS[verdict] + (f" {_describe_uncertainty(runs[0], baseline)}" if verdict == "cannot_tell" else "")]
    lines += [f"--- now: {runs[0].outcome}", runs[0].text[-MAX_OUTPUT_CHARS:]]
    if len(runs) > 1 and runs[1].outcome is not runs[0].outcome:
        lines += [f"--- again: {runs[1].outcome}", runs[1].text[-MAX_OUTPUT_CHARS:]]
    if baseline is not None:
        lines += [f"--- at the last commit: {baseline.outcome}", baseline.text[-MAX_OUTPUT_CHARS:]]
    data = {
        "verdict": verdict,
        "runs": list(map(str, outcomes)),
        "baseline": str(baseline.outcome) if baseline else None,
    }
    return Done("\n".join(lines), data, outside="a test of this workspace")


def _describe_uncertainty(run: SingleTestRun, baseline: SingleTestRun | None) -> str:
    if run.outcome is SingleTestOutcome.MISSING:
        return "There is no such test."
    if run.outcome is SingleTestOutcome.UNCLEAR or baseline is None:
        return "The test neither passed nor failed; its output says why."
    if baseline.outcome is SingleTestOutcome.MISSING:
        return "It fails now, and the test did not exist at the last commit."
    return "It fails now, and could not be run at the last commit."
