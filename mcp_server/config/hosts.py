"""Which listing does a host get? The table is looked up by the name that the host gives itself."""

from collections.abc import Sequence
from pathlib import Path

from mcp_server.config.faults import FaultCollector, SourceLocation
from mcp_server.config.reader import Fields, Leaf, read_yaml_file
from mcp_server.config.shapes import (
    BoolField,
    EnumField,
    IntField,
    KeySpec,
    LineField,
    ListField,
    RecordField,
    fit,
    get_flag,
    get_leaf,
    get_number,
    get_records,
    get_text,
)
from mcp_server.model.menus import Commands, Host, Listing

HOST = RecordField(
    {
        "client": KeySpec(
            LineField(80, r"[^*]*[^*\s]\*?", "a client's name, or the start of one followed by `*`"),
            "the name the client gives in `clientInfo`, or the start of it followed by `*`; case does not matter",
            required=True,
        ),
        "listing": KeySpec(EnumField(tuple(Listing)), "what its `tools/list` shows", required=True),
        "relists": KeySpec(
            BoolField(),
            "whether it fetches the list as soon as it is notified of a change; if so, a result waits for that",
            required=True,
        ),
        "commands": KeySpec(
            EnumField(tuple(Commands)),
            "`person` if there is evidence that only its user can run prompts: only such a host is offered the "
            "commands that act, such as `mode` and `pause`",
        ),
        "notices": KeySpec(
            BoolField(),
            "whether to notify it when a list changes; `false` if that does harm (default: true)",
        ),
        "major": KeySpec(
            IntField(0, 9999),
            "the newest major version that the evidence covers: in a newer one, a command that allows more is "
            "confirmed at a terminal (default: every version)",
        ),
        "evidence": KeySpec(LineField(240), "how you know this"),
    },
    "A host program.",
)
ROWS = ListField(HOST)
HOSTS = RecordField(
    {"hosts": KeySpec(ROWS, "one entry per host", required=True)},
    "Facts about hosts. A full name wins over the start of a name, and a longer start over a shorter one.",
)


def load_hosts(path: Path, findings: FaultCollector) -> tuple[Host, ...]:
    node = read_yaml_file(path, findings)
    table = fit(node, HOSTS, findings) if node is not None else None
    return build_hosts(get_records(table, "hosts"), findings) if isinstance(table, Fields) else ()


def build_hosts(entries: Sequence[Fields], findings: FaultCollector) -> tuple[Host, ...]:
    """Build the hosts, one per client name."""
    first: dict[str, SourceLocation] = {}
    hosts: list[Host] = []
    for entry in entries:
        client, listing, relists = get_leaf(entry, "client"), get_leaf(entry, "listing"), get_leaf(entry, "relists")
        if client is None or listing is None or relists is None or not _is_new(client, first, findings):
            continue
        relisting, notices = get_flag(entry, "relists", False), get_flag(entry, "notices", True)
        commands, evidence = Commands(get_text(entry, "commands") or Commands.NOBODY), get_text(entry, "evidence")
        if commands is Commands.PERSON and not evidence:
            findings.add(client.place, f"`commands: {commands}` of `{client.text}` needs `evidence`: how you know")
            continue
        major = get_number(entry, "major")
        hosts.append(Host(client.text, Listing(listing.text), relisting, evidence, commands, notices, major))
    return tuple(hosts)


def _is_new(client: Leaf, first: dict[str, SourceLocation], findings: FaultCollector) -> bool:
    name = client.text.casefold()
    if name in first:
        findings.add(client.place, f"there is already an entry for `{client.text}`, on line {first[name].line}")
        return False
    first[name] = client.place
    return True
