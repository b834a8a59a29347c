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
Id = Annotated[str, "An open shell: the id that `bash` returned, or a name of your own", Is(shortest=1, longest=200)]


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
    run_in_background: NotRequired[Annotated[bool, "Return at once, and keep it running", Is(default=False)]]


def build_shell_label(name: str) -> str:
    """A name the caller gave a shell, as the session keeps it."""
    return f"shell {name}"


def has_lasting_shell(args: Arguments) -> bool:
    return any(args.get(one) for one in ("run_in_background", "bash_id", "shell_id"))


BASH = Tool(
    name="bash",
    title="Run a command",
    description=(
        "Run a line of bash in the workspace, sandboxed as the user's profile says: by default no network, no home, "
        "and git's configuration cannot be changed. Lines that only read, build or test run at once; the user may be "
        "asked about others. Shows the output, and the exit code unless it is 0; the rest of a long output is kept in "
        "a file. Each line starts in a new shell in `exec_dir`, unless `bash_id` keeps one open: pass any name, and "
        "its folder and variables are kept. `run_in_background` is for servers and watchers, in a terminal; read their "
        "output with `bash_output`, type with `write_to_shell`, wait with `wait`. A line that outlasts `timeout` "
        "continues in the background. Processes that a line leaves running end with it. "
        'Example: {"command": "pytest -q", '
        '"timeout": 300000}'
    ),
    arguments=build_schema(BashArguments),
    profile=Profile.NORMAL,
    effect=Effect.EXEC,
    stages=ACTING,
    run=LazyFunction("tools.shell.bash:run_command"),
    demand=LazyFunction("tools.shell.demands:demand_running"),
    demand_there=LazyFunction("tools.shell.kept_shell:demand_in_shell"),
    confirmation=Confirmation.BY_ARGUMENTS,
    shut_in=True,
    subject=("command", RuleSubject.COMMAND),
    paths=("exec_dir",),
    stands_on=LazyFunction("tools.shell.current_folder:read_line_facts"),
    runs_files=LazyFunction("tools.shell.run_files:list_run_files"),
    parts=LazyFunction("tools.shell.line_parts:list_line_parts"),
    stays=has_lasting_shell,
    incidental=("description", "timeout"),
    timeout=LONGEST + 30,
    large=True,
)

MOST_WAIT = 300.0
ShellId = Annotated[str, "The shell: the id that `bash` returned, or your name for it", Is(shortest=1, longest=200)]
Same = Annotated[str, "The same as `bash_id`", Is(shortest=1, longest=200)]


class BashOutputArguments(TypedDict):
    bash_id: NotRequired[ShellId]
    shell_id: NotRequired[Same]
    filter: NotRequired[Annotated[str, "Only lines that match this regular expression", Is(shortest=1, longest=1000)]]
    offset: NotRequired[
        Annotated[int, "Character to start at, counted from the end if negative; only new output if left out", Is()]
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
    seconds: Annotated[float, "The longest to wait, up to 300", Is(at_least=0, at_most=MOST_WAIT)]
    bash_id: NotRequired[Annotated[str, "Stop waiting when this shell has ended", Is(shortest=1, longest=200)]]
    shell_id: NotRequired[Same]
    until: NotRequired[
        Annotated[
            str,
            "Stop waiting when this regular expression matches its output",
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
        "`offset` shows it again from a character on; `filter` shows only lines that match a regular expression. "
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
        "Type into a shell that runs in the background, and show its response: answer a program's question, "
        'interrupt it with `\\u0003`, or run a line. Example: {"shell_id": "bash_...", "content": "y", '
        '"press_enter": true}'
    ),
    BashWriteArguments,
    LazyFunction("tools.shell.background:write_to_shell"),
    profile=Profile.NORMAL,
    effect=Effect.EXEC,
    stages=ACTING,
    demand=LazyFunction("tools.shell.demands:demand_typing"),
    confirmation=Confirmation.BY_ARGUMENTS,
    stands_on=LazyFunction("tools.shell.current_folder:read_keys_facts"),
    runs_files=LazyFunction("tools.shell.run_files:list_typed_files"),
    shut_in=True,
)

KILL = _build_tool(
    "kill_shell",
    "End a shell",
    'End a shell of this session and all it started, and show its last output. Example: {"shell_id": "bash_..."}',
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
        "Wait for some seconds, up to 300, or until a shell has ended (`bash_id`) or a regular expression matches its "
        'output (`until`). Example: {"seconds": 60, "bash_id": "bash_...", '
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
