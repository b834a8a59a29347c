"""How are data files and folders made, moved and taken away?"""

from base64 import b64decode

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.files import Files
from mcp_server.model.results import Code, Done, Ending, Problem, Refusal
from tools.files.edit import halves
from tools.files.lines import visible
from tools.fs.definitions import FsCreateArguments, FsDeleteArguments, FsMoveArguments, FsWriteFileArguments
from tools.fs.targets import deleted, moved, still


async def write_file(ctx: Context, args: FsWriteFileArguments) -> Ending:
    return await to_thread.run_sync(_write, ctx.files, args)


def _write(files: Files, args: FsWriteFileArguments) -> Ending:
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


async def create_directory(ctx: Context, args: FsCreateArguments) -> Ending:
    entry = await to_thread.run_sync(ctx.files.make_folder, args["path"])
    return Done(f"The folder `{visible(entry.path)}` is there.")


async def move(ctx: Context, args: FsMoveArguments) -> Ending:
    approved = await to_thread.run_sync(still, ctx, moved, args["source"])
    entry = await to_thread.run_sync(ctx.files.move, args["source"], args["destination"], approved)
    return Done(f"Moved `{visible(args['source'])}` to `{visible(entry.path)}`.")


async def delete(ctx: Context, args: FsDeleteArguments) -> Ending:
    path = visible(args["path"])
    approved = await to_thread.run_sync(still, ctx, deleted, args["path"])
    if args.get("permanent"):
        await to_thread.run_sync(ctx.files.remove, args["path"], approved)
        return Done(f"Deleted `{path}` for good.")
    place = await to_thread.run_sync(ctx.files.trash, args["path"], approved)
    return Done(f"Deleted `{path}`. The person can have it back from the trash: `{visible(place)}`.")
