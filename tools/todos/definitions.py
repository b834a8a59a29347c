"""Which tools keep track of the work? The five whose names begin with `Todo`."""

from typing import Annotated, Literal, NotRequired, TypedDict

from mcp_server.model.posture import Profile
from mcp_server.model.schema import Is, build_schema
from mcp_server.model.tools import ACTING, HINTS, REVIEWING, WARMUP, Arguments, Demand, Effect, LazyFunction, Tool

MOST_CRITERIA = 20
SECONDS = 30
MOST_SECONDS = 600
MOST_EVIDENCE = 10
VERIFY_SECONDS = 1800.0
RUNS = ("command_exit_zero", "test_passes")
Id = Annotated[str, "The todo's id", Is(shortest=1, longest=64)]


class Params(TypedDict):
    command: NotRequired[Annotated[str, "command_exit_zero: a shell command", Is(shortest=1, longest=2000)]]
    path: NotRequired[Annotated[str, "file_exists, file_contains: the file", Is(shortest=1, longest=1000)]]
    text: NotRequired[Annotated[str, "file_contains: exactly this text", Is(shortest=1, longest=2000)]]
    pattern: NotRequired[Annotated[str, "file_contains: or a regular expression", Is(shortest=1, longest=1000)]]
    test: NotRequired[Annotated[str, "test_passes: `tests/test_a.py::test_b`", Is(shortest=1, longest=500)]]
    seconds: NotRequired[Annotated[int, "How long it may run", Is(default=SECONDS, at_least=1, at_most=MOST_SECONDS)]]


class CriterionArgument(TypedDict):
    type: Annotated[
        Literal["command_exit_zero", "file_exists", "file_contains", "test_passes"],
        "What to check: a command's exit code, a file, its content, a test",
    ]
    params: Annotated[Params, "Only the parameters of its type"]


class TodoCreateArguments(TypedDict):
    content: Annotated[str, "What to do", Is(shortest=1, longest=4000)]
    acceptance_criteria: NotRequired[
        Annotated[list[CriterionArgument], "What must be true before it is done", Is(most_items=MOST_CRITERIA)]
    ]


def demand_creating(args: Arguments) -> Demand:
    """Criteria that run something need at least what running it needs; the gate decides again when they run."""
    runs = any(one["type"] in RUNS for one in args.get("acceptance_criteria", ()))
    return Demand(Effect.SESSION, Profile.NORMAL if runs else Profile.RESTRICTED)


TODO_CREATE = Tool(
    name="TodoCreate",
    title="Add a todo",
    description=(
        "Add a todo with the criteria that show when it is done. A todo goes from pending to in_progress "
        "(TodoStart), claimed (TodoClaim) and verified (TodoVerify): claimed is not done. Criteria: "
        "command_exit_zero{command, seconds?}, file_exists{path}, file_contains{path, text or pattern}, "
        "test_passes{test, seconds?}. TodoVerify checks them, with the permissions in force then. Example: "
        '{"content": "Fix the parser", "acceptance_criteria": '
        '[{"type": "test_passes", "params": {"test": "tests/test_parser.py::test_empty"}}]}'
    ),
    arguments=build_schema(TodoCreateArguments),
    profile=Profile.RESTRICTED,
    effect=Effect.SESSION,
    stages=WARMUP | ACTING,
    run=LazyFunction("tools.todos.todos:create"),
    demand=demand_creating,
)


class TodoReadArguments(TypedDict):
    id: NotRequired[Annotated[str, "Show this todo, with its claims and checks", Is(shortest=1, longest=64)]]
    status: NotRequired[Annotated[Literal["pending", "in_progress", "claimed", "verified"], "Only todos in this state"]]
    offset: NotRequired[Annotated[int, "How many to skip", Is(default=0, at_least=0)]]


TODO_READ = Tool(
    name="TodoRead",
    title="Show the todos",
    description=(
        "Show the todos of this session and their states: [ ] pending, [*] in progress, [?] claimed, [x] verified, "
        "100 at a time; with `id` one of them in full, with its claims and checks."
    ),
    arguments=build_schema(TodoReadArguments),
    profile=Profile.RESTRICTED,
    effect=Effect.SESSION,
    hints=HINTS[Effect.SESSION].adjust("it reads the state and changes nothing", read_only=True, idempotent=True),
    stages=WARMUP | ACTING | REVIEWING,
    run=LazyFunction("tools.todos.todos:read"),
)


class TodoStartArguments(TypedDict):
    id: Id


TODO_START = Tool(
    name="TodoStart",
    title="Start a todo",
    description="Start a pending todo, which is then in progress.",
    arguments=build_schema(TodoStartArguments),
    profile=Profile.RESTRICTED,
    effect=Effect.SESSION,
    hints=HINTS[Effect.SESSION].adjust("a todo in progress stays in progress", idempotent=True),
    stages=ACTING,
    run=LazyFunction("tools.todos.todos:begin"),
)


class EvidenceArgument(TypedDict):
    type: Annotated[Literal["command_output", "test_result", "file", "diff", "link", "note"], "The kind of evidence"]
    data: Annotated[str, "The evidence itself, or where to find it", Is(shortest=1, longest=4000)]


class TodoClaimArguments(TypedDict):
    id: Id
    explanation: Annotated[str, "What was done, at least 20 characters", Is(longest=4000)]
    evidence: NotRequired[
        Annotated[
            list[EvidenceArgument], "The evidence; each further claim needs new evidence", Is(most_items=MOST_EVIDENCE)
        ]
    ]
    auto_verify: NotRequired[Annotated[bool, "Check its criteria at once", Is(default=False)]]


def demand_claiming(args: Arguments) -> Demand:
    return Demand(Effect.SESSION, Profile.NORMAL if args.get("auto_verify") else Profile.RESTRICTED)


TODO_CLAIM = Tool(
    name="TodoClaim",
    title="Claim that a todo is done",
    description=(
        "Claim that a todo in progress is done: say what was done, with evidence. It is verified by its criteria "
        "(TodoVerify, or auto_verify at once) or by the user, never by the claim. After a failed check, or if the user "
        "rejects it, it can be claimed again with new evidence."
    ),
    arguments=build_schema(TodoClaimArguments),
    profile=Profile.RESTRICTED,
    effect=Effect.SESSION,
    stages=ACTING,
    run=LazyFunction("tools.todos.todos:claim_todo"),
    demand=demand_claiming,
    timeout=VERIFY_SECONDS,
)


class TodoVerifyArguments(TypedDict):
    id: Id


TODO_VERIFY = Tool(
    name="TodoVerify",
    title="Check whether a todo is done",
    description=(
        "Check the criteria of a claimed todo. Each is a separate call through the gate, with the permissions in "
        "force now; a check that is refused does not count as passed. If all pass, the todo is verified; otherwise it "
        "stays claimed. A todo without criteria waits for the user."
    ),
    arguments=build_schema(TodoVerifyArguments),
    profile=Profile.NORMAL,
    effect=Effect.SESSION,
    hints=HINTS[Effect.SESSION].adjust(
        "it repeats the same checks, with commands that may reach anything", idempotent=True, open_world=True
    ),
    stages=ACTING | REVIEWING,
    run=LazyFunction("tools.todos.todos:verify"),
    timeout=VERIFY_SECONDS,
)


TOOLS = (TODO_CREATE, TODO_READ, TODO_START, TODO_CLAIM, TODO_VERIFY)
