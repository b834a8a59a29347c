"""Which listing does a host get that gives this name?"""

from collections.abc import Sequence
from pathlib import Path

from mcp_server.config.faults import FaultCollector, SourceLocation
from mcp_server.config.reader import Fields, Leaf, read_yaml_file
from mcp_server.config.shapes import (
    BoolField,
    EnumField,
    KeySpec,
    LineField,
    ListField,
    RecordField,
    fit,
    get_flag,
    get_leaf,
    get_records,
    get_text,
)
from mcp_server.model.menus import Commands, Host, Listing

HOST = RecordField(
    {
        "client": KeySpec(
            LineField(80, r"[^*]*[^*\s]\*?", "a client's name, or the beginning of one and a `*`"),
            "the name the client gives itself in `clientInfo`, or its beginning and a `*`; capitals make no difference",
            required=True,
        ),
        "listing": KeySpec(EnumField(tuple(Listing)), "what its `tools/list` shows", required=True),
        "relists": KeySpec(
            BoolField(),
            "whether it lists again as soon as it hears of a change, and is worth holding a result back for",
            required=True,
        ),
        "commands": KeySpec(
            EnumField(tuple(Commands)),
            "`person` where it is known, with evidence, that it keeps prompts for its user: it alone is offered the "
            "commands that act, such as `mode` and `pause`",
        ),
        "notices": KeySpec(
            BoolField(),
            "whether it may be told unasked that a list changed; `false` where that does harm (default: true)",
        ),
        "evidence": KeySpec(LineField(240), "how that is known"),
    },
    "A host program.",
)
ROWS = ListField(HOST)
HOSTS = RecordField(
    {"hosts": KeySpec(ROWS, "one entry per host", required=True)},
    "What is known about hosts. The whole name wins over a beginning, the longer beginning over the shorter.",
)


def load_hosts(path: Path, findings: FaultCollector) -> tuple[Host, ...]:
    node = read_yaml_file(path, findings)
    table = fit(node, HOSTS, findings) if node is not None else None
    return build_hosts(get_records(table, "hosts"), findings) if isinstance(table, Fields) else ()


def build_hosts(entries: Sequence[Fields], findings: FaultCollector) -> tuple[Host, ...]:
    """The hosts these entries describe, each client once."""
    first: dict[str, SourceLocation] = {}
    found: list[Host] = []
    for entry in entries:
        client, listing, relists = get_leaf(entry, "client"), get_leaf(entry, "listing"), get_leaf(entry, "relists")
        if client is None or listing is None or relists is None or not _is_new(client, first, findings):
            continue
        relisting, notices = get_flag(entry, "relists", False), get_flag(entry, "notices", True)
        commands, evidence = Commands(get_text(entry, "commands") or Commands.NOBODY), get_text(entry, "evidence")
        if commands is Commands.PERSON and not evidence:
            findings.add(client.place, f"`commands: {commands}` needs `evidence`: how it is known of `{client.text}`")
            continue
        found.append(Host(client.text, Listing(listing.text), relisting, evidence, commands, notices))
    return tuple(found)


def _is_new(client: Leaf, first: dict[str, SourceLocation], findings: FaultCollector) -> bool:
    name = client.text.casefold()
    if name in first:
        findings.add(client.place, f"there is a row for `{client.text}` already, in line {first[name].line}")
        return False
    first[name] = client.place
    return True
