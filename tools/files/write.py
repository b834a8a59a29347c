"""How does a whole file get new content?"""

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.files import Files, Snapshot
from mcp_server.model.results import Code, Done, Ending, Problem, Refusal
from tools.files.definitions import WriteArguments
from tools.files.diff import told
from tools.files.edit import create, halves, line_end, omissions, store, unfit
from tools.files.lines import BOM, MOST_BYTES, decoded, encoded, not_text


async def write(ctx: Context, args: WriteArguments) -> Ending:
    return await to_thread.run_sync(_write, ctx.files, args)


def _write(files: Files, args: WriteArguments) -> Ending:
    path, content = args["file_path"], args["content"]
    if problem := halves(content):
        return problem
    try:
        snapshot = files.read(path, MOST_BYTES)
    except Refusal as refusal:
        if refusal.problem.code is not Code.NOT_FOUND:
            return refusal.problem
        return _left_out(content, "") or create(files, path, encoded(content))
    if problem := unfit(files, snapshot, text=False):
        return problem
    return _replace(files, snapshot, content)


def _replace(files: Files, snapshot: Snapshot, content: str) -> Ending:
    before = "" if not_text(snapshot.data) else decoded(snapshot.data)
    if problem := _left_out(content, before):
        return problem
    kept: list[str] = []
    if "\n" in content and "\r" not in content and line_end(before) == "\r\n":
        content = content.replace("\n", "\r\n")
        kept.append("its CRLF line ends")
    if before.startswith(BOM) and not content.startswith(BOM):
        content = BOM + content
        kept.append("its byte order mark")
    data = encoded(content)
    if data == snapshot.data:
        return Done(f"`{snapshot.path}` has exactly this content already; nothing was written.")
    store(files, snapshot, data)
    answer = told(snapshot.path, "Updated", before.removeprefix(BOM), content.removeprefix(BOM))
    return Done(answer + (f"\n[The file kept {' and '.join(kept)}.]" if kept else ""))


def _left_out(content: str, before: str) -> Problem | None:
    lines = omissions(content, before)
    if not lines:
        return None
    return Problem(
        Code.INVALID_ARGUMENTS,
        f"Line {', '.join(map(str, lines[:5]))} of `content` stands for text that was left out; nothing was written.",
        "Write the whole content, or change a part with `Edit`, which also adds such a line where it is meant.",
    )
