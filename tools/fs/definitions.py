"""Which tools treat files and folders as data? Those whose names begin with `fs_`."""

from typing import Annotated, Literal, NotRequired, TypedDict

from mcp_server.model import protected
from mcp_server.model.posture import Profile
from mcp_server.model.schema import Is, build_schema
from mcp_server.model.text import escape_name
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

PAGE = 100_000
"""Bytes of text in one answer, and of base64."""

LISTED = 200
PathOf = Annotated[str, "The path, absolute or relative to the workspace", Is(shortest=1, longest=4096)]
EVERYWHERE = WARMUP | ACTING | REVIEWING


class FsReadFileArguments(TypedDict):
    path: PathOf
    encoding: NotRequired[Annotated[Literal["utf-8", "base64"], "How to return the bytes", Is(default="utf-8")]]
    head: NotRequired[Annotated[int, "Only this many lines from the beginning (bytes with base64)", Is(at_least=1)]]
    tail: NotRequired[Annotated[int, "Only this many lines from the end (bytes with base64)", Is(at_least=1)]]
    offset: NotRequired[Annotated[int, "Byte to start at, from 0", Is(default=0, at_least=0)]]


def demand_reading(args: Arguments) -> Demand:
    return Demand(Effect.READ_LOCAL, Profile.RESTRICTED, protected.describe_read_risk(args["path"]))


READ_FILE = Tool(
    name="fs_read_file",
    title="Read a data file",
    description=(
        "Read a file's content as data: text without line numbers, or any binary file as base64. head and tail return "
        "the first or last lines (bytes with base64), offset starts at a byte; up to 100,000 bytes are returned at "
        "once, and for a longer file the answer names the call for the next part. To edit source code use Read."
    ),
    arguments=build_schema(FsReadFileArguments),
    profile=Profile.RESTRICTED,
    effect=Effect.READ_LOCAL,
    stages=EVERYWHERE,
    run=LazyFunction("tools.fs.read:read_file"),
    rehearsed=True,
    demand=demand_reading,
    confirmation=Confirmation.BY_ARGUMENTS,
    subject=("path", RuleSubject.PATH),
    max_result_chars=PAGE + 2_000,
    large=True,
)


class FsWriteFileArguments(TypedDict):
    path: PathOf
    content: Annotated[str, "The whole content, as text or as base64"]
    encoding: NotRequired[Annotated[Literal["utf-8", "base64"], "What `content` is", Is(default="utf-8")]]


def demand_writing(args: Arguments) -> Demand:
    return Demand(Effect.WRITE_LOCAL, Profile.NORMAL, protected.describe_change_risk(args["path"]))


WRITE_FILE = Tool(
    name="fs_write_file",
    title="Write a data file",
    description=(
        "Write a data file: create it or overwrite it with the whole content, as text or as base64 for binary data. "
        "Missing folders are created; an existing file is replaced in one step, keeps its mode, and need not have been "
        "read before. To change source code use Edit."
    ),
    arguments=build_schema(FsWriteFileArguments),
    profile=Profile.NORMAL,
    effect=Effect.WRITE_LOCAL,
    hints=HINTS[Effect.WRITE_LOCAL].adjust("the same content again leaves the same file", idempotent=True),
    stages=ACTING,
    run=LazyFunction("tools.fs.write:write_file"),
    rehearsed=True,
    demand=demand_writing,
    confirmation=Confirmation.BY_ARGUMENTS,
    subject=("path", RuleSubject.PATH),
)


class FsListArguments(TypedDict):
    path: NotRequired[Annotated[str, "The folder, absolute or relative to the workspace", Is(default=".", shortest=1)]]
    depth: NotRequired[Annotated[int, "How many levels down to list", Is(default=1, at_least=1, at_most=20)]]
    limit: NotRequired[Annotated[int, "How many entries to show", Is(default=LISTED, at_least=1, at_most=1000)]]
    offset: NotRequired[Annotated[int, "How many entries to skip", Is(default=0, at_least=0)]]


LIST_DIRECTORY = Tool(
    name="fs_list_directory",
    title="List a folder",
    description=(
        "List the files and folders in a directory (ls, tree), sorted by path, with sizes. Folders end in a slash; "
        "links are named but not followed. depth lists deeper levels; limit and offset page through long lists."
    ),
    arguments=build_schema(FsListArguments),
    profile=Profile.RESTRICTED,
    effect=Effect.READ_LOCAL,
    stages=EVERYWHERE,
    run=LazyFunction("tools.fs.read:list_directory"),
    rehearsed=True,
    subject=("path", RuleSubject.PATH),
    max_result_chars=PAGE,
    large=True,
)


class FsCreateArguments(TypedDict):
    path: PathOf


CREATE_DIRECTORY = Tool(
    name="fs_create_directory",
    title="Create a folder",
    description="Create a directory (mkdir -p) with the folders above it. An existing one is left as it is.",
    arguments=build_schema(FsCreateArguments),
    profile=Profile.NORMAL,
    effect=Effect.WRITE_LOCAL,
    hints=HINTS[Effect.WRITE_LOCAL].adjust("an existing folder is left as it is", destructive=False, idempotent=True),
    stages=ACTING,
    run=LazyFunction("tools.fs.write:create_directory"),
    rehearsed=True,
    demand=demand_writing,
    confirmation=Confirmation.BY_ARGUMENTS,
    subject=("path", RuleSubject.PATH),
)


class FsDeleteArguments(TypedDict):
    path: PathOf
    permanent: NotRequired[
        Annotated[
            bool, "Delete for good instead of moving to the trash; needs the profile `unrestricted`", Is(default=False)
        ]
    ]


def demand_deleting(args: Arguments) -> Demand:
    path, permanent = args["path"], args.get("permanent", False)
    shown = escape_name(path)
    why = f"It deletes `{shown}` for good." if permanent else f"It moves `{shown}` to the trash."
    if more := protected.describe_change_risk(path):
        why += f" {more}"
    return Demand(Effect.DESTROY_LOCAL, Profile.UNRESTRICTED if permanent else Profile.TRUSTED, why)


DELETE = Tool(
    name="fs_delete",
    title="Delete a file or an empty folder",
    description=(
        "Delete a file, a link or an empty folder (rm, rmdir). It goes to a trash, where the user can restore it, "
        "unless permanent is set. A folder that is not empty is refused. The user is asked first."
    ),
    arguments=build_schema(FsDeleteArguments),
    profile=Profile.TRUSTED,
    effect=Effect.DESTROY_LOCAL,
    stages=ACTING,
    run=LazyFunction("tools.fs.write:delete"),
    rehearsed=True,
    demand=demand_deleting,
    confirmation=Confirmation.ALWAYS,
    stands_on=LazyFunction("tools.fs.targets:read_deletion_facts"),
    subject=("path", RuleSubject.PATH),
    tree="path",
)


READERS = ("Read", "fs_read_file")
WRITERS = ("Write", "Edit", "fs_write_file")


class FsMoveArguments(TypedDict):
    source: Annotated[str, "What to move, absolute or relative to the workspace", Is(shortest=1, longest=4096)]
    destination: Annotated[str, "Its new path; nothing may exist there yet", Is(shortest=1, longest=4096)]


def demand_moving(args: Arguments) -> Demand:
    why = protected.describe_move_risk(args["source"], args["destination"])
    return Demand(Effect.WRITE_LOCAL, Profile.NORMAL, why)


MOVE = Tool(
    name="fs_move",
    title="Move or rename",
    description=(
        "Move or rename a file, folder or link (mv) inside the workspace. The destination is the new path itself, and "
        "nothing may exist there yet: nothing is ever overwritten. Missing folders above it are created."
    ),
    arguments=build_schema(FsMoveArguments),
    profile=Profile.NORMAL,
    effect=Effect.WRITE_LOCAL,
    stages=ACTING,
    run=LazyFunction("tools.fs.write:move"),
    rehearsed=True,
    demand=demand_moving,
    confirmation=Confirmation.BY_ARGUMENTS,
    stands_on=LazyFunction("tools.fs.targets:read_move_facts"),
    subject=("source", RuleSubject.PATH),
    paths=("source", "destination"),
    tree="source",
    tree_to="destination",
    counts_as={"source": (*READERS, *WRITERS), "destination": WRITERS},
)


class FsInfoArguments(TypedDict):
    path: PathOf


FILE_INFO = Tool(
    name="fs_file_info",
    title="Look at a file's properties",
    description=(
        "Get a file's or folder's metadata (stat): kind (file, directory, link, other), size in bytes, time of the "
        "last change in UTC, and mode. For a link, it describes the link itself, not its target."
    ),
    arguments=build_schema(FsInfoArguments),
    result={
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "kind": {"type": "string", "enum": ["file", "directory", "link", "other"]},
            "size": {"type": "integer"},
            "modified": {"type": "string"},
            "mode": {"type": "string"},
        },
        "required": ["path", "kind", "size", "modified", "mode"],
    },
    profile=Profile.RESTRICTED,
    effect=Effect.READ_LOCAL,
    stages=EVERYWHERE,
    run=LazyFunction("tools.fs.read:get_file_info"),
    rehearsed=True,
    subject=("path", RuleSubject.PATH),
)


TOOLS = (READ_FILE, WRITE_FILE, LIST_DIRECTORY, CREATE_DIRECTORY, DELETE, MOVE, FILE_INFO)
