"""Which tools fix a bug in phases? Four: advance, go back, show the phase, and look into a failing test."""

from typing import Annotated, NotRequired, TypedDict

from mcp_server.model.posture import Profile
from mcp_server.model.schema import Is, build_schema
from mcp_server.model.tools import ACTING, HINTS, REVIEWING, WARMUP, Effect, LazyFunction, Tool

Status = Annotated[
    str, "`all_passed`, or how many failed: `2_failed`", Is(shortest=1, pattern="^(all_passed|[1-9][0-9]{0,5}_failed)$")
]


class PhaseAdvanceArguments(TypedDict):
    suspect_files: NotRequired[Annotated[list[str], "localization: where the bug may be", Is(most_items=100)]]
    hypothesis: NotRequired[Annotated[str, "localization: what may be wrong there", Is(shortest=1, longest=4000)]]
    root_cause: NotRequired[Annotated[str, "understanding: why it goes wrong", Is(shortest=1, longest=4000)]]
    modified_files: NotRequired[Annotated[list[str], "fix: what was changed", Is(most_items=100)]]
    pass_to_pass_status: NotRequired[Status]
    fail_to_pass_status: NotRequired[Status]


ADVANCE_PHASE = Tool(
    name="advance_phase",
    title="Advance to the next phase",
    description=(
        "Fix a bug in five phases, each with its own tools and number of calls: localization, understanding, fix, "
        "regression_check, target_fix_verification. The first call starts them; until they end, this mode narrows to "
        "the tools of the phase. To leave a phase, pass what it must produce: suspect_files and hypothesis, "
        "root_cause, modified_files, pass_to_pass_status, fail_to_pass_status. `all_passed` needs a test run with "
        "bash that passed, with nothing changed since. After the last phase, all tools are back."
    ),
    arguments=build_schema(PhaseAdvanceArguments),
    profile=Profile.RESTRICTED,
    effect=Effect.SESSION,
    stages=ACTING,
    run=LazyFunction("tools.phases.phases:advance"),
)


class PhaseReturnArguments(TypedDict):
    reason: Annotated[str, "What the tests showed", Is(shortest=1, longest=1000)]


RETURN_TO_FIX = Tool(
    name="return_to_fix_phase",
    title="Go back to the fix",
    description="Go back from a later phase to the fix; it and the phases after it get all their calls again.",
    arguments=build_schema(PhaseReturnArguments),
    profile=Profile.RESTRICTED,
    effect=Effect.SESSION,
    stages=ACTING,
    run=LazyFunction("tools.phases.phases:return_to_fix"),
)

SECONDS = 120


class AnalyzeArguments(TypedDict):
    test_name: Annotated[
        str, "`tests/test_a.py::test_b`, or `tests.test_a.Case.test_b` for unittest", Is(shortest=1, longest=500)
    ]
    compare_baseline: NotRequired[Annotated[bool, "Also run it at the last commit", Is(default=False)]]


ANALYZE_FAILURE = Tool(
    name="analyze_test_failure",
    title="Look into a failing test",
    description=(
        "Run one test, twice if it fails, and with compare_baseline also at the last commit, in a temporary git "
        "worktree; says whether the failure is new, existed before, is flaky, or cannot be judged. Uses pytest "
        "(`tests/test_a.py::test_b`) or unittest (`tests.test_a.Case.test_b`), with the workspace's `.venv` if there "
        "is one."
    ),
    arguments=build_schema(AnalyzeArguments),
    profile=Profile.TRUSTED,
    effect=Effect.EXEC,
    hints=HINTS[Effect.EXEC].adjust(
        "it runs one test, and no command that a model wrote", destructive=False, open_world=False
    ),
    stages=ACTING | REVIEWING,
    run=LazyFunction("tools.phases.failing_test:analyze"),
    timeout=3 * SECONDS + 120.0,
)


class PhaseStatusArguments(TypedDict):
    pass


PHASE_STATUS = Tool(
    name="get_phase_status",
    title="Show the phase",
    description="Show which phase this run is in, its tools, the calls left, what is missing, and how the tests ended.",
    arguments=build_schema(PhaseStatusArguments),
    profile=Profile.RESTRICTED,
    effect=Effect.SESSION,
    hints=HINTS[Effect.SESSION].adjust("it reads the state and changes nothing", read_only=True, idempotent=True),
    stages=WARMUP | ACTING | REVIEWING,
    run=LazyFunction("tools.phases.phases:show_status"),
)


TOOLS = (ADVANCE_PHASE, RETURN_TO_FIX, ANALYZE_FAILURE, PHASE_STATUS)
