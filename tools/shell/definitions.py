"""What is offered for running commands? `bash`, and the four tools around it."""

from typing import TYPE_CHECKING, Annotated, Any, NotRequired, TypedDict

from mcp_server.model.posture import Profile
from mcp_server.model.schema import Is, build_schema
from mcp_server.model.tools import (
    ACTING,
    HINTS,
    REVIEWING,
    WARMUP,
    Arguments,
    Confirmation,
    Effect,
    LazyFunction,
    RuleSubject,
    Run,
    Tool,
)

if TYPE_CHECKING:
    from mcp_server.model.shell import ReadLine

LONGEST = 600.0
UNKNOWN = "this command is not one that only reads, builds or tests, as far as can be told from its words"
Id = Annotated[str, "A shell that stays, by the id `bash` answered or a name of your own", Is(shortest=1, longest=200)]


READ_LINE: "ReadLine" = LazyFunction("tools.shell.lines:read_line")
"""Loads the grammar with the first line, and not before."""


class BashArguments(TypedDict):
    command: Annotated[str, "The line to run, by bash", Is(shortest=1, longest=100_000)]
    exec_dir: NotRequired[Annotated[str, "Folder to run it in", Is(shortest=1, default=".", longest=4096)]]
    bash_id: NotRequired[Id]
    shell_id: NotRequired[Annotated[str, "The same as `bash_id`", Is(shortest=1, longest=200)]]
    timeout: NotRequired[
        Annotated[
            float,
            "Milliseconds (below 1000: seconds); 120000 if left out",
            Is(at_least=0, at_most=7.2e6),
        ]
    ]
    description: NotRequired[Annotated[str, "What it does, in a few words", Is(shortest=1, longest=500)]]
    run_in_background: NotRequired[Annotated[bool, "Answer at once, and let it go on", Is(default=False)]]


def build_shell_label(name: str) -> str:
    """A name the caller gave a shell, as the session keeps it."""
    return f"shell {name}"


def has_lasting_shell(args: Arguments) -> bool:
    return any(args.get(one) for one in ("run_in_background", "bash_id", "shell_id"))


BASH = Tool(
    name="bash",
    title="Run a command",
    description=(
        "Run a line of bash in the workspace, shut in as the person's profile says: by default no network, no home, "
        "and git's configuration cannot be changed. Lines that only read, build or test run at once; the person may "
        "be asked about others. Shows what is printed, and the exit code where it is not 0; the rest of a long output "
        "is kept in a file. Each line starts afresh in `exec_dir`, unless `bash_id` names a shell that stays: give any "
        "name, and folder and variables last. `run_in_background` is for servers and watchers, in a terminal; look "
        "with `bash_output`, type with `write_to_shell`, wait with `wait`. What outlasts `timeout` goes on in the "
        'background. What a line leaves running behind it ends with it. Example: {"command": "pytest -q", '
        '"timeout": 300000}'
    ),
    arguments=build_schema(BashArguments),
    profile=Profile.NORMAL,
    effect=Effect.EXEC,
    stages=ACTING,
    run=LazyFunction("tools.shell.bash:run_command"),
    demand=LazyFunction("tools.shell.classify:demand_running"),
    confirmation=Confirmation.BY_ARGUMENTS,
    shut_in=True,
    subject=("command", RuleSubject.COMMAND),
    paths=("exec_dir",),
    stands_on=LazyFunction("tools.shell.current_folder:read_line_facts"),
    stays=has_lasting_shell,
    incidental=("description", "timeout"),
    timeout=LONGEST + 30,
    large=True,
)

MOST_WAIT = 300.0
ShellId = Annotated[str, "The shell, by the id `bash` answered or your name for it", Is(shortest=1, longest=200)]
Same = Annotated[str, "The same as `bash_id`", Is(shortest=1, longest=200)]


class BashOutputArguments(TypedDict):
    bash_id: NotRequired[ShellId]
    shell_id: NotRequired[Same]
    filter: NotRequired[
        Annotated[str, "Only lines in which this regular expression is found", Is(shortest=1, longest=1000)]
    ]
    offset: NotRequired[
        Annotated[int, "Show from this character on, below zero from the end; what is new if left out", Is()]
    ]


class BashWriteArguments(TypedDict):
    shell_id: NotRequired[ShellId]
    bash_id: NotRequired[Annotated[str, "The same as `shell_id`", Is(shortest=1, longest=200)]]
    content: NotRequired[Annotated[str, "What to type; `\\u0003` is Ctrl-C", Is(longest=100_000)]]
    press_enter: NotRequired[Annotated[bool, "Press Enter after it", Is(default=False)]]


class BashKillArguments(TypedDict):
    shell_id: NotRequired[ShellId]
    bash_id: NotRequired[Annotated[str, "The same as `shell_id`", Is(shortest=1, longest=200)]]


class BashWaitArguments(TypedDict):
    seconds: Annotated[float, "How long at the most, up to 300", Is(at_least=0, at_most=MOST_WAIT)]
    bash_id: NotRequired[Annotated[str, "Stop waiting when this shell has ended", Is(shortest=1, longest=200)]]
    shell_id: NotRequired[Same]
    until: NotRequired[
        Annotated[
            str,
            "Stop waiting when this regular expression is found in what it prints",
            Is(shortest=1, longest=1000),
        ]
    ]


def _build_tool(name: str, title: str, description: str, arguments: type, run: Run, **more: Any) -> Tool:
    return Tool(name=name, title=title, description=description, arguments=build_schema(arguments), run=run, **more)


OUTPUT = _build_tool(
    "bash_output",
    "Look at a shell",
    (
        "Show what a shell of this session has printed since you last looked, whether it runs, and how it ended. "
        "`offset` shows it again from a character on; `filter` shows the lines a regular expression is found in. "
        'Example: {"bash_id": "bash_...", "filter": "error|warning"}'
    ),
    BashOutputArguments,
    LazyFunction("tools.shell.background:show_shell_output"),
    profile=Profile.RESTRICTED,
    effect=Effect.READ_LOCAL,
    hints=HINTS[Effect.READ_LOCAL].adjust("each look moves its cursor on", idempotent=False),
    stages=WARMUP | ACTING | REVIEWING,
    large=True,
)

WRITE = _build_tool(
    "write_to_shell",
    "Type into a shell",
    (
        "Type into a shell that runs in the background, and show what it says to that. Answers a program's question, "
        'interrupts it with `\\u0003`, or runs a line. Example: {"shell_id": "bash_...", "content": "y", '
        '"press_enter": true}'
    ),
    BashWriteArguments,
    LazyFunction("tools.shell.background:write_to_shell"),
    profile=Profile.NORMAL,
    effect=Effect.EXEC,
    stages=ACTING,
    demand=LazyFunction("tools.shell.classify:demand_typing"),
    confirmation=Confirmation.BY_ARGUMENTS,
    stands_on=LazyFunction("tools.shell.current_folder:read_keys_facts"),
    shut_in=True,
)

KILL = _build_tool(
    "kill_shell",
    "End a shell",
    'End a shell of this session with all it started, and show its last output. Example: {"shell_id": "bash_..."}',
    BashKillArguments,
    LazyFunction("tools.shell.background:kill_shell"),
    profile=Profile.NORMAL,
    effect=Effect.SESSION,
    hints=HINTS[Effect.SESSION].adjust(
        "it ends programs, and a shell that has ended stays ended", destructive=True, idempotent=True
    ),
    stages=ACTING,
)

WAIT = _build_tool(
    "wait",
    "Wait",
    (
        "Wait some seconds, up to 300: until a shell has ended (`bash_id`), or until a regular expression is found in "
        'what it prints (`until`), and no longer. Example: {"seconds": 60, "bash_id": "bash_...", '
        '"until": "listening on"}'
    ),
    BashWaitArguments,
    LazyFunction("tools.shell.background:wait"),
    profile=Profile.RESTRICTED,
    effect=Effect.NONE,
    stages=WARMUP | ACTING,
    timeout=MOST_WAIT + 30,
)


TOOLS = (BASH, OUTPUT, WRITE, KILL, WAIT)
