"""How are data files and folders written, created, moved and deleted?"""

from base64 import b64decode

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.files import Files
from mcp_server.model.results import Code, Done, Ending, Problem, Refusal
from mcp_server.model.text import escape_name
from tools.files.edit import find_encoding_problem
from tools.fs.definitions import FsCreateArguments, FsDeleteArguments, FsMoveArguments, FsWriteFileArguments
from tools.fs.targets import build_approval_check, describe_deleted, describe_moved


async def write_file(ctx: Context, args: FsWriteFileArguments) -> Ending:
    return await to_thread.run_sync(_write, ctx.files, args)


def _write(files: Files, args: FsWriteFileArguments) -> Ending:
    if problem := find_encoding_problem(args["content"]):
        return problem
    try:
        data = (
            b64decode(args["content"], validate=True) if args.get("encoding") == "base64" else args["content"].encode()
        )
    except ValueError:
        return Problem(Code.INVALID_ARGUMENTS, "`content` is not base64; nothing was written.", "Check the encoding.")
    try:
        # Only its stamp: unlike `Write`, this tool may replace a file that the session has not read.
        before = files.read(args["path"], 0)
    except Refusal as refusal:
        if refusal.problem.code is not Code.NOT_FOUND:
            return refusal.problem
        entry = files.write(args["path"], data, None)
        return Done(f"Created `{escape_name(entry.path)}`: {entry.size:,} bytes.")
    entry = files.write(before.path, data, before.stamp)
    return Done(f"Overwrote `{escape_name(entry.path)}`: {entry.size:,} bytes, {before.stamp.size:,} before.")


async def create_directory(ctx: Context, args: FsCreateArguments) -> Ending:
    entry = await to_thread.run_sync(ctx.files.make_folder, args["path"])
    return Done(f"The folder `{escape_name(entry.path)}` exists.")


async def move(ctx: Context, args: FsMoveArguments) -> Ending:
    check = await to_thread.run_sync(build_approval_check, ctx, describe_moved, args["source"])
    entry = await to_thread.run_sync(ctx.files.move, args["source"], args["destination"], check)
    return Done(f"Moved `{escape_name(args['source'])}` to `{escape_name(entry.path)}`.")


async def delete(ctx: Context, args: FsDeleteArguments) -> Ending:
    path = escape_name(args["path"])
    check = await to_thread.run_sync(build_approval_check, ctx, describe_deleted, args["path"])
    if args.get("permanent"):
        await to_thread.run_sync(ctx.files.remove, args["path"], check)
        return Done(f"Deleted `{path}` for good.")
    trash_path = await to_thread.run_sync(ctx.files.trash, args["path"], check)
    return Done(f"Deleted `{path}`. The user can restore it from the trash: `{escape_name(trash_path)}`.")
