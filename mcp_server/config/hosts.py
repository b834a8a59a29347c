"""Which listing does a host get that gives this name?"""

from collections.abc import Sequence
from pathlib import Path

from mcp_server.config.faults import Findings, Place
from mcp_server.config.reader import Fields, Leaf, read
from mcp_server.config.shapes import Choice, Flag, Key, ListOf, Record, Words, fit, flag, leaf, records, text
from mcp_server.model.menus import Commands, Host, Listing

HOST = Record(
    {
        "client": Key(
            Words(80, r"[^*]*[^*\s]\*?", "a client's name, or the beginning of one and a `*`"),
            "the name the client gives itself in `clientInfo`, or its beginning and a `*`; capitals make no difference",
            required=True,
        ),
        "listing": Key(Choice(tuple(Listing)), "what its `tools/list` shows", required=True),
        "relists": Key(
            Flag(),
            "whether it lists again as soon as it hears of a change, and is worth holding a result back for",
            required=True,
        ),
        "commands": Key(
            Choice(tuple(Commands)),
            "`person` where it is known, with evidence, that it keeps prompts for its user: it alone is offered the "
            "commands that act, such as `mode` and `pause`",
        ),
        "notices": Key(
            Flag(),
            "whether it may be told unasked that a list changed; `false` where that does harm (default: true)",
        ),
        "evidence": Key(Words(240), "how that is known"),
    },
    "A host program.",
)
ROWS = ListOf(HOST)
HOSTS = Record(
    {"hosts": Key(ROWS, "one entry per host", required=True)},
    "What is known about hosts. The whole name wins over a beginning, the longer beginning over the shorter.",
)


def hosts_in(path: Path, findings: Findings) -> tuple[Host, ...]:
    node = read(path, findings)
    table = fit(node, HOSTS, findings) if node is not None else None
    return rows(records(table, "hosts"), findings) if isinstance(table, Fields) else ()


def rows(entries: Sequence[Fields], findings: Findings) -> tuple[Host, ...]:
    """The hosts these entries describe, each client once."""
    first: dict[str, Place] = {}
    found: list[Host] = []
    for entry in entries:
        client, listing, relists = leaf(entry, "client"), leaf(entry, "listing"), leaf(entry, "relists")
        if client is None or listing is None or relists is None or not _is_new(client, first, findings):
            continue
        relisting, notices = flag(entry, "relists", False), flag(entry, "notices", True)
        commands, evidence = Commands(text(entry, "commands") or Commands.NOBODY), text(entry, "evidence")
        if commands is Commands.PERSON and not evidence:
            findings.add(client.place, f"`commands: {commands}` needs `evidence`: how it is known of `{client.text}`")
            continue
        found.append(Host(client.text, Listing(listing.text), relisting, evidence, commands, notices))
    return tuple(found)


def _is_new(client: Leaf, first: dict[str, Place], findings: Findings) -> bool:
    name = client.text.casefold()
    if name in first:
        findings.add(client.place, f"there is a row for `{client.text}` already, in line {first[name].line}")
        return False
    first[name] = client.place
    return True
