"""How are data files and folders made, moved and taken away?"""

from base64 import b64decode
from typing import Annotated, Literal, NotRequired, TypedDict

from anyio import to_thread

from mcp_server.model.ending import Code, Done, Ending, Problem, Refusal
from mcp_server.model.ports.context import Context
from mcp_server.model.ports.files import Files
from mcp_server.model.posture import Profile
from mcp_server.model.schema import Is, schema_of
from mcp_server.model.tool import ACTING, Arguments, Demand, Effect, Hints, Subject, Tool
from tools.files import consent
from tools.files.edit import halves
from tools.files.lines import visible

PathOf = Annotated[str, "The path, absolute or relative to the workspace", Is(shortest=1, longest=4096)]


class WriteFileArguments(TypedDict):
    path: PathOf
    content: Annotated[str, "The whole content, as text or as base64"]
    encoding: NotRequired[Annotated[Literal["utf-8", "base64"], "What `content` is", Is(default="utf-8")]]


async def write_file(ctx: Context, args: WriteFileArguments) -> Ending:
    return await to_thread.run_sync(_write, ctx.files, args)


def _write(files: Files, args: WriteFileArguments) -> Ending:
    if problem := halves(args["content"]):
        return problem
    try:
        data = (
            b64decode(args["content"], validate=True) if args.get("encoding") == "base64" else args["content"].encode()
        )
    except ValueError:
        return Problem(Code.INVALID_ARGUMENTS, "`content` is not base64; nothing was written.", "Check the encoding.")
    try:
        # Its size and time say enough: this tool replaces what is there without having to have seen it.
        before = files.read(args["path"], 0)
    except Refusal as refusal:
        if refusal.problem.code is not Code.NOT_FOUND:
            return refusal.problem
        entry = files.write(args["path"], data, None)
        return Done(f"Created `{visible(entry.path)}`: {entry.size:,} bytes.")
    entry = files.write(before.path, data, before.stamp)
    return Done(f"Overwrote `{visible(entry.path)}`: {entry.size:,} bytes, {before.stamp.size:,} before.")


def demand_writing(args: Arguments) -> Demand:
    return Demand(Effect.WRITE_LOCAL, Profile.NORMAL, consent.to_change(args["path"]))


WRITE_FILE = Tool(
    name="fs_write_file",
    title="Write a data file",
    description=(
        "Write a data file: create it or overwrite it with the whole content, as text or as base64 for binary data. "
        "Missing folders are made; an existing file is replaced in one step, keeps its mode, and need not have been "
        "read. To change source code use Edit."
    ),
    arguments=schema_of(WriteFileArguments),
    profile=Profile.NORMAL,
    effect=Effect.WRITE_LOCAL,
    hints=Hints(read_only=False, destructive=True, idempotent=True, open_world=False),
    stages=ACTING,
    run=write_file,
    demand=demand_writing,
    subject=("path", Subject.PATH),
)


class CreateArguments(TypedDict):
    path: PathOf


async def create_directory(ctx: Context, args: CreateArguments) -> Ending:
    entry = await to_thread.run_sync(ctx.files.make_folder, args["path"])
    return Done(f"The folder `{visible(entry.path)}` is there.")


CREATE_DIRECTORY = Tool(
    name="fs_create_directory",
    title="Make a folder",
    description="Create a directory (mkdir -p) with the folders above it. One that is there already is left as it is.",
    arguments=schema_of(CreateArguments),
    profile=Profile.NORMAL,
    effect=Effect.WRITE_LOCAL,
    hints=Hints(read_only=False, destructive=False, idempotent=True, open_world=False),
    stages=ACTING,
    run=create_directory,
    demand=demand_writing,
    subject=("path", Subject.PATH),
)


class MoveArguments(TypedDict):
    source: Annotated[str, "What to move, absolute or relative to the workspace", Is(shortest=1, longest=4096)]
    destination: Annotated[str, "Its new path, where nothing may be yet", Is(shortest=1, longest=4096)]


async def move(ctx: Context, args: MoveArguments) -> Ending:
    entry = await to_thread.run_sync(ctx.files.move, args["source"], args["destination"])
    return Done(f"Moved `{visible(args['source'])}` to `{visible(entry.path)}`.")


def demand_moving(args: Arguments) -> Demand:
    why = consent.to_change(args["source"], args["destination"])
    return Demand(Effect.WRITE_LOCAL, Profile.NORMAL, why)


MOVE = Tool(
    name="fs_move",
    title="Move or rename",
    description=(
        "Move or rename a file, folder or link (mv) inside the workspace. The destination is the new path itself, and "
        "nothing may be there yet: nothing is ever overwritten. Missing folders above it are made."
    ),
    arguments=schema_of(MoveArguments),
    profile=Profile.NORMAL,
    effect=Effect.WRITE_LOCAL,
    hints=Hints(read_only=False, destructive=True, idempotent=False, open_world=False),
    stages=ACTING,
    run=move,
    demand=demand_moving,
    subject=("source", Subject.PATH),
    paths=("source", "destination"),
)


class DeleteArguments(TypedDict):
    path: PathOf
    permanent: NotRequired[
        Annotated[bool, "Delete for good and not into the trash; only for an unrestricted profile", Is(default=False)]
    ]


async def delete(ctx: Context, args: DeleteArguments) -> Ending:
    path = visible(args["path"])
    if args.get("permanent"):
        await to_thread.run_sync(ctx.files.remove, args["path"])
        return Done(f"Deleted `{path}` for good.")
    place = await to_thread.run_sync(ctx.files.trash, args["path"])
    return Done(f"Deleted `{path}`. The person can have it back from the trash: `{visible(place)}`.")


def demand_deleting(args: Arguments) -> Demand:
    path, permanent = args["path"], args.get("permanent", False)
    why = f"`{path}` is deleted {'for good' if permanent else 'into the trash'}."
    if more := consent.to_change(path):
        why += f" {more}"
    return Demand(Effect.DESTROY_LOCAL, Profile.UNRESTRICTED if permanent else Profile.TRUSTED, why)


DELETE = Tool(
    name="fs_delete",
    title="Delete a file or an empty folder",
    description=(
        "Delete a file, a link or an empty folder (rm, rmdir). It goes to a trash from which the person can have it "
        "back, unless permanent is set. A folder that is not empty is refused. The person is asked first."
    ),
    arguments=schema_of(DeleteArguments),
    profile=Profile.TRUSTED,
    effect=Effect.DESTROY_LOCAL,
    hints=Hints(read_only=False, destructive=True, idempotent=True, open_world=False),
    stages=ACTING,
    run=delete,
    demand=demand_deleting,
    subject=("path", Subject.PATH),
)
