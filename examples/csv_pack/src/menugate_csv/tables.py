"""What is in a CSV file, and how does a row get into it? The work; it is loaded with the first call."""

import csv
import io
from dataclasses import dataclass

from anyio import to_thread

from mcp_server.packs import Code, Context, Done, Ending, Files, Problem, Refusal, Snapshot, quote_text
from menugate_csv import AppendArguments, ColumnsArguments

MAX_BYTES = 32 << 20
EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Table:
    file: Snapshot
    columns: list[str]
    rows: list[list[str]]
    delimiter: str
    line_end: str


async def describe_columns(ctx: Context, args: ColumnsArguments) -> Ending:
    # `ctx.files` blocks, so it is used in a thread.
    return await to_thread.run_sync(_describe_columns, ctx.files, args)


async def append_row(ctx: Context, args: AppendArguments) -> Ending:
    return await to_thread.run_sync(_append_row, ctx.files, args)


def _describe_columns(files: Files, args: ColumnsArguments) -> Ending:
    table = _read_table(files, args["path"])
    lines = [f"{len(table.rows):,} rows, {len(table.columns)} columns in {quote_text(table.file.path)}"]
    for number, name in enumerate(table.columns):
        filled = [row[number] for row in table.rows if len(row) > number and row[number]]
        values = list(dict.fromkeys(filled))
        examples = f", such as {', '.join(map(quote_text, values[:EXAMPLES]))}" if values else ""
        lines.append(f"{quote_text(name)}: {len(filled):,} filled, {len(values):,} different{examples}")
    return Done("\n".join(lines))


def _append_row(files: Files, args: AppendArguments) -> Ending:
    table = _read_table(files, args["path"])
    row = args["row"]
    if unknown := [name for name in row if name not in table.columns]:
        known = ", ".join(map(quote_text, table.columns))
        return Problem(
            Code.INVALID_ARGUMENTS, f"There is no column {quote_text(unknown[0])}.", f"The columns are {known}."
        )
    text = io.StringIO()
    writer = csv.writer(text, delimiter=table.delimiter, lineterminator=table.line_end)
    writer.writerow([str(row.get(name, "")) for name in table.columns])
    before = table.file.data
    between = b"" if before.endswith((b"\n", b"\r")) else table.line_end.encode()
    # The stamp says what was read: if the file has changed since, nothing is written and the call ends with STALE.
    files.write(table.file.path, before + between + text.getvalue().encode(), table.file.stamp)
    return Done(f"Appended row {len(table.rows) + 1:,} to {quote_text(table.file.path)}.")


def _read_table(files: Files, path: str) -> Table:
    # A `Refusal` ends the call with its problem. `files` raises it, too: NOT_FOUND, PATH_REFUSED and so on.
    file = files.read(path, MAX_BYTES)
    if not file.whole:
        raise Refusal(Problem(Code.TOO_LARGE, f"{quote_text(path)} has more than {MAX_BYTES >> 20} MB."))
    try:
        text = file.data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Refusal(Problem(Code.NOT_TEXT, f"{quote_text(path)} is not text in UTF-8.")) from None
    head = text.partition("\n")[0]
    delimiter = max(",;\t", key=head.count)
    try:
        columns, *rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except (csv.Error, ValueError) as fault:
        reason = fault if isinstance(fault, csv.Error) else "it is empty"
        raise Refusal(Problem(Code.TOOL_FAILED, f"{quote_text(path)} is not a CSV file: {reason}.")) from None
    return Table(file, columns, rows, delimiter, "\r\n" if head.endswith("\r") else "\n")
