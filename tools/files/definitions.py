"""Which tools work on source files? `Read`, `Edit` and `Write`."""

from typing import Annotated, NotRequired, TypedDict

from mcp_server.model import protected
from mcp_server.model.posture import Profile
from mcp_server.model.schema import Is, build_schema
from mcp_server.model.tools import (
    ACTING,
    HINTS,
    REVIEWING,
    WARMUP,
    Arguments,
    Confirmation,
    Demand,
    Effect,
    LazyFunction,
    RuleSubject,
    Tool,
)

LINES = 2000
LARGE_PAGE_CHARS = 400_000


class ReadArguments(TypedDict):
    file_path: Annotated[str, "The file, absolute or relative to the workspace", Is(shortest=1, longest=4096)]
    offset: NotRequired[Annotated[int, "First line to show, counted from 1", Is(default=1, at_least=1)]]
    limit: NotRequired[Annotated[int, "How many lines to show", Is(default=LINES, at_least=1, at_most=100_000)]]
    allow_large: NotRequired[
        Annotated[bool, "Show up to 400,000 characters at once instead of 100,000", Is(default=False)]
    ]


def demand_reading(args: Arguments) -> Demand:
    return Demand(Effect.READ_LOCAL, Profile.RESTRICTED, protected.describe_read_risk(args["file_path"]))


READ = Tool(
    name="Read",
    title="Read a file",
    description=(
        "Read a file: show the source code or text of a file with line numbers (cat), an image, or a Jupyter notebook. "
        "Lines come as number, tab, text; at most 2000 lines of 2000 characters and 100,000 characters a call, and for "
        "a longer file the answer names the call that shows the next part. Read a file before Edit or Write changes "
        "it. The number and the tab are not part of the text. To list a folder use glob or fs_list_directory."
    ),
    arguments=build_schema(ReadArguments),
    profile=Profile.RESTRICTED,
    effect=Effect.READ_LOCAL,
    stages=WARMUP | ACTING | REVIEWING,
    run=LazyFunction("tools.files.read:read"),
    rehearsed=True,
    demand=demand_reading,
    confirmation=Confirmation.BY_ARGUMENTS,
    subject=("file_path", RuleSubject.PATH),
    max_result_chars=LARGE_PAGE_CHARS + 4_000,
    large=True,
)


class EditArguments(TypedDict):
    file_path: Annotated[str, "The file, absolute or relative to the workspace", Is(shortest=1, longest=4096)]
    old_string: Annotated[str, "The text to replace, exactly as it is in the file; empty to create a new file"]
    new_string: Annotated[str, "The text to put there instead"]
    replace_all: NotRequired[Annotated[bool, "Replace every occurrence instead of one", Is(default=False)]]


def demand_changing(args: Arguments) -> Demand:
    return Demand(Effect.WRITE_LOCAL, Profile.NORMAL, protected.describe_change_risk(args["file_path"]))


EDIT = Tool(
    name="Edit",
    title="Edit a file",
    description=(
        "Edit a file: replace an exact string in source code or text (str_replace), once or, with replace_all, "
        "everywhere. Read the file with Read first; it must not have changed since. old_string must match the file "
        "exactly, including spaces and line breaks but without line numbers, and only once unless replace_all is set. "
        "Line endings, byte order mark, mode and everything else stay as they are. An empty old_string creates a new "
        "file, with its folders. Returns a diff and the changed lines."
    ),
    arguments=build_schema(EditArguments),
    profile=Profile.NORMAL,
    effect=Effect.WRITE_LOCAL,
    stages=ACTING,
    run=LazyFunction("tools.files.edit:edit"),
    rehearsed=True,
    demand=demand_changing,
    confirmation=Confirmation.BY_ARGUMENTS,
    subject=("file_path", RuleSubject.PATH),
)


class WriteArguments(TypedDict):
    file_path: Annotated[str, "The file, absolute or relative to the workspace", Is(shortest=1, longest=4096)]
    content: Annotated[str, "The whole new content"]


WRITE = Tool(
    name="Write",
    title="Write a file",
    description=(
        "Write a file: create a new file or overwrite an existing one with its whole content. Missing folders are "
        "created. Read an existing file with Read first; it must not have changed since, and keeps its mode, byte "
        "order mark and CRLF line endings. Content with placeholders for omitted text, such as "
        "'// ... rest unchanged', is refused: to change a part of a file use Edit. Returns a diff."
    ),
    arguments=build_schema(WriteArguments),
    profile=Profile.NORMAL,
    effect=Effect.WRITE_LOCAL,
    hints=HINTS[Effect.WRITE_LOCAL].adjust("the same content again leaves the same file", idempotent=True),
    stages=ACTING,
    run=LazyFunction("tools.files.write:write"),
    rehearsed=True,
    demand=demand_changing,
    confirmation=Confirmation.BY_ARGUMENTS,
    subject=("file_path", RuleSubject.PATH),
)


TOOLS = (READ, EDIT, WRITE)
