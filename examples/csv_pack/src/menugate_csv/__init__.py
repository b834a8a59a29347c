"""What does this pack offer? Two tools for CSV files, listed in the mode `data`."""

from pathlib import Path
from typing import Annotated, TypedDict

from mcp_server.packs import (
    ACTING,
    REVIEWING,
    WARMUP,
    Arguments,
    Confirmation,
    Demand,
    Effect,
    Hints,
    Is,
    LazyFunction,
    Pack,
    Profile,
    RuleSubject,
    Tool,
    build_schema,
    describe_change_risk,
    describe_read_risk,
)

PathOf = Annotated[str, "The CSV file, absolute or relative to the workspace", Is(shortest=1, longest=4096)]


class ColumnsArguments(TypedDict):
    path: PathOf


def demand_reading(args: Arguments) -> Demand:
    # The user is asked first if the path usually holds passwords or keys.
    return Demand(Effect.READ_LOCAL, Profile.RESTRICTED, describe_read_risk(args["path"]))


COLUMNS = Tool(
    name="csv_columns",
    title="Describe the columns of a CSV file",
    description=(
        "Describe a CSV file without reading it all into the conversation: how many rows it has, and for each column "
        "how many are filled, how many values differ, and some of them."
    ),
    arguments=build_schema(ColumnsArguments),
    profile=Profile.RESTRICTED,
    effect=Effect.READ_LOCAL,
    stages=WARMUP | ACTING | REVIEWING,
    run=LazyFunction("menugate_csv.tables:describe_columns"),
    demand=demand_reading,
    confirmation=Confirmation.BY_ARGUMENTS,
    subject=("path", RuleSubject.PATH),
)


class AppendArguments(TypedDict):
    path: PathOf
    row: Annotated[dict[str, str], "The new row: a text for each column, by the column's name"]


def demand_writing(args: Arguments) -> Demand:
    return Demand(Effect.WRITE_LOCAL, Profile.NORMAL, describe_change_risk(args["path"]))


APPEND = Tool(
    name="csv_append",
    title="Append a row to a CSV file",
    description=(
        "Append one row to a CSV file, quoted as it needs to be. Columns that the row leaves out stay empty, and the "
        "rows before it are not changed."
    ),
    arguments=build_schema(AppendArguments),
    profile=Profile.NORMAL,
    effect=Effect.WRITE_LOCAL,
    hints=Hints(
        read_only=False,
        destructive=False,
        idempotent=False,
        open_world=False,
        because="it adds a row, and leaves the others as they are",
    ),
    stages=ACTING,
    run=LazyFunction("menugate_csv.tables:append_row"),
    demand=demand_writing,
    confirmation=Confirmation.BY_ARGUMENTS,
    subject=("path", RuleSubject.PATH),
)

PACK = Pack("csv", tools=(COLUMNS, APPEND), menus=(str(Path(__file__).parent / "menus"),))
