"""How does `Write` replace the content of a whole file?"""

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.files import Files, Snapshot
from mcp_server.model.results import Code, Done, Ending, Problem, Refusal
from tools.files.definitions import WriteArguments
from tools.files.diff import describe_change
from tools.files.edit import (
    create_file,
    find_edit_problem,
    find_encoding_problem,
    find_omissions,
    find_usual_line_end,
    overwrite_file,
)
from tools.files.lines import BOM, MOST_BYTES, decode_text, describe_non_text, encode_text


async def write(ctx: Context, args: WriteArguments) -> Ending:
    return await to_thread.run_sync(_write, ctx.files, args)


def _write(files: Files, args: WriteArguments) -> Ending:
    path, content = args["file_path"], args["content"]
    if problem := find_encoding_problem(content):
        return problem
    try:
        snapshot = files.read(path, MOST_BYTES)
    except Refusal as refusal:
        if refusal.problem.code is not Code.NOT_FOUND:
            return refusal.problem
        return _find_omission_problem(content, "") or create_file(files, path, encode_text(content))
    if problem := find_edit_problem(files, snapshot, text=False):
        return problem
    return _replace_content(files, snapshot, content)


def _replace_content(files: Files, snapshot: Snapshot, content: str) -> Ending:
    before = "" if describe_non_text(snapshot.data) else decode_text(snapshot.data)
    if problem := _find_omission_problem(content, before):
        return problem
    preserved: list[str] = []
    if "\n" in content and "\r" not in content and find_usual_line_end(before) == "\r\n":
        content = content.replace("\n", "\r\n")
        preserved.append("its CRLF line ends")
    if before.startswith(BOM) and not content.startswith(BOM):
        content = BOM + content
        preserved.append("its byte order mark")
    data = encode_text(content)
    if data == snapshot.data:
        return Done(f"`{snapshot.path}` already has exactly this content; nothing was written.")
    overwrite_file(files, snapshot, data)
    answer = describe_change(snapshot.path, "Updated", before.removeprefix(BOM), content.removeprefix(BOM))
    return Done(answer + (f"\n[The file kept {' and '.join(preserved)}.]" if preserved else ""))


def _find_omission_problem(content: str, before: str) -> Problem | None:
    lines = find_omissions(content, before)
    if not lines:
        return None
    return Problem(
        Code.INVALID_ARGUMENTS,
        f"Line {', '.join(map(str, lines[:5]))} of `content` stands for text that was left out; nothing was written.",
        "Write the whole content, or use `Edit` to change a part, or to add such a line if you mean it.",
    )
