"""How does a run go through its phases? Advance with the required outputs, go back to the fix, show the status."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from mcp_server.model.context import Context
from mcp_server.model.documents import Document, DocumentCause, Overtaken
from mcp_server.model.phases import (
    ALL_PASSED,
    KIND,
    OUTPUTS,
    RETRIED,
    STEPS,
    Log,
    Phase,
    Step,
    find_step,
    get_next_step,
)
from mcp_server.model.results import Code, Done, Ending, Problem
from tools.phases.definitions import PhaseAdvanceArguments, PhaseReturnArguments, PhaseStatusArguments

STATUSES = {"pass_to_pass_status": Phase.REGRESSION_CHECK, "fail_to_pass_status": Phase.TARGET_FIX_VERIFICATION}


async def advance(ctx: Context, args: PhaseAdvanceArguments) -> Ending:
    phase = ctx.session.phase
    outputs: dict[str, Any] = {name: args[name] for name in OUTPUTS if args.get(name)}
    if phase is None:
        return await _begin(ctx, outputs)
    step = find_step(phase)
    if step is None:
        return _build_unknown_phase_problem(phase)
    document = await _load_log(ctx)
    log = Log.from_body(document.body).add_outputs(outputs)
    if problem := _find_proof_problem(log, step):
        return problem
    next_step = get_next_step(phase)
    missing = log.list_missing_outputs(step)
    event = "said" if missing else "advanced" if next_step else "finished"
    mark = str(next_step.phase if next_step and not missing else phase)
    if problem := await _store_log(ctx, replace(document, body=log.body, mark=mark), event):
        return problem
    if missing:
        return _build_missing_problem(step, missing)
    if problem := await ctx.navigator.change_phase(phase, next_step.phase if next_step else None, "advance_phase"):
        return problem
    if next_step is None:
        return _build_final_answer(log)
    return Done(f"{_format_warning(log, step)}{_describe_phase(next_step, log)}", _build_phase_data(next_step, log))


async def _begin(ctx: Context, outputs: Mapping[str, Any]) -> Ending:
    first, log = STEPS[0], Log().add_outputs(outputs)
    document = await _load_log(ctx)
    if problem := await _store_log(ctx, replace(document, body=log.body, mark=str(first.phase)), "began"):
        return problem
    if problem := await ctx.navigator.change_phase(None, first.phase, "advance_phase"):
        return problem
    names = ", ".join(step.phase for step in STEPS)
    return Done(
        f"This run now goes through phases: {names}.\n{_describe_phase(first, log)}",
        _build_phase_data(first, log),
    )


def _find_proof_problem(log: Log, step: Step) -> Problem | None:
    """Accept `all_passed` only if the last test run passed and nothing changed since."""
    for name, phase in STATUSES.items():
        if phase is not step.phase or log.outputs.get(name) in (None, ""):
            continue
        if log.outputs[name] == ALL_PASSED and not log.proof.is_valid:
            return Problem(
                Code.NO_EVIDENCE, f"`{name}` is `{ALL_PASSED}`, but {_describe_missing_proof(log)}.", RUN_TESTS
            )
        if log.outputs[name] != ALL_PASSED and get_next_step(phase) is None:
            return Problem(
                Code.WRONG_STATE,
                f"`{name}` is `{log.outputs[name]}`, so the bug is not fixed yet.",
                "Go back to the fix with `return_to_fix_phase`, or end the run as it is with `complete`.",
            )
    return None


RUN_TESTS = (
    "Run the tests with `bash`, as one plain command such as `python3 -m pytest`, and change nothing afterwards. If "
    "some fail, say how many (`2_failed`), or go back with `return_to_fix_phase`."
)


def _describe_missing_proof(log: Log) -> str:
    if not log.proof.ran:
        return "no test run is on record"
    return "something was changed since the last test run" if log.proof.changed else "the last test run failed"


def _build_missing_problem(step: Step, missing: tuple[str, ...]) -> Problem:
    names = " and ".join(f"`{name}`" for name in missing)
    return Problem(
        Code.WRONG_STATE,
        f"the phase `{step.phase}` is not over: {names} {'is' if len(missing) == 1 else 'are'} missing.",
        "Call `advance_phase` with what is missing; what you already passed is kept.",
        {"phase": str(step.phase), "missing": list(missing)},
    )


def _format_warning(log: Log, step: Step) -> str:
    status = log.outputs.get("pass_to_pass_status")
    if step.phase is not Phase.REGRESSION_CHECK or status == ALL_PASSED:
        return ""
    return f"Tests that passed before may fail now: `{status}`. `return_to_fix_phase` goes back to the fix.\n"


def _build_final_answer(log: Log) -> Done:
    text = "All phases are over, and every tool of this mode is available again. Finish what is left, then `complete`."
    return Done(text, {"phase": None, "outputs": dict(log.outputs), "tests": log.body["tests"]})


async def return_to_fix(ctx: Context, args: PhaseReturnArguments) -> Ending:
    phase, step = ctx.session.phase, find_step(ctx.session.phase)
    if phase is None or (step is not None and step not in RETRIED[1:]):
        return _build_return_problem(phase)
    if not args["reason"].strip():
        return Problem(Code.INVALID_ARGUMENTS, "`reason` is empty.", "Say what the tests showed.")
    document = await _load_log(ctx)
    log = Log.from_body(document.body).return_to_fix(args["reason"])
    if problem := await _store_log(ctx, replace(document, body=log.body, mark=Phase.FIX), "went back"):
        return problem
    if problem := await ctx.navigator.change_phase(phase, Phase.FIX, "return_to_fix_phase"):
        return problem
    return Done(
        f"Back at the fix; it and the phases after it start over.\n{_describe_phase(RETRIED[0], log)}",
        _build_phase_data(RETRIED[0], log),
    )


def _build_return_problem(phase: str | None) -> Problem:
    if phase is None:
        return Problem(Code.WRONG_STATE, "this run is not in a phase.", "Begin the first with `advance_phase`.")
    if phase == Phase.FIX:
        return Problem(Code.WRONG_STATE, "this run is already at the fix.", "Continue from it with `advance_phase`.")
    return Problem(Code.WRONG_STATE, f"the fix comes after `{phase}`.", "Continue to it with `advance_phase`.")


def _build_unknown_phase_problem(phase: str) -> Problem:
    way_out = "Go to the fix with `return_to_fix_phase`, or end the run and its phases with `complete`."
    return Problem(Code.WRONG_STATE, f"this run is in the phase `{phase[:40]}`, which menugate does not know.", way_out)


async def show_status(ctx: Context, _args: PhaseStatusArguments) -> Ending:
    phase, step = ctx.session.phase, find_step(ctx.session.phase)
    if phase is None:
        text = "This run is not in a phase, so every tool is available. `advance_phase` begins the first."
        return Done(text, {"phase": None})
    if step is None:
        return _build_unknown_phase_problem(phase)
    log = Log.from_body((await _load_log(ctx)).body)
    return Done(f"{_describe_phase(step, log)}\n{_describe_tests(log)}", _build_phase_data(step, log))


def _describe_tests(log: Log) -> str:
    if not log.proof.ran:
        return "No test run is on record."
    outcome = "passed" if log.proof.passed else "failed"
    changes = "something changed since, or may have" if log.proof.changed else "nothing changed since"
    return f"The last of {log.proof.ran} test runs {outcome}; {changes}."


def _describe_phase(step: Step, log: Log) -> str:
    number = STEPS.index(step) + 1
    missing = log.list_missing_outputs(step)
    needs = f"It still needs {', '.join(f'`{name}`' for name in missing)}" if missing else "Nothing is missing"
    return (
        f"Phase {step.phase} ({number} of {len(STEPS)}), {log.count_calls_left(step)} of {step.budget} calls left, "
        f"with {', '.join(sorted(step.tools))}. {needs}; `advance_phase` continues."
    )


def _build_phase_data(step: Step, log: Log) -> dict[str, Any]:
    return {
        "phase": str(step.phase),
        "calls_left": log.count_calls_left(step),
        "budget": step.budget,
        "tools": sorted(step.tools),
        "missing": list(log.list_missing_outputs(step)),
        **log.body,
    }


async def _load_log(ctx: Context) -> Document:
    document = await ctx.records.session.get(KIND, ctx.session.run)
    return document or Document(KIND, ctx.session.run, Log().body)


async def _store_log(ctx: Context, document: Document, event: str) -> Problem | None:
    if isinstance(await ctx.records.session.put(document, DocumentCause(event)), Overtaken):
        return Problem(Code.BUSY, "another call in this run got there first.", "Check `get_phase_status`.")
    return None
