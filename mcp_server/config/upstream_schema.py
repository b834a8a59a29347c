"""Which keys does a server under `mcpServers` have, and what may each contain?

The first ones are those that hosts have, so that an entry can be copied from a host's file. The others are our own.
"""

from collections.abc import Mapping

from mcp_server.config.shapes import (
    AnyField,
    BoolField,
    EnumField,
    IntField,
    KeySpec,
    LineField,
    ListField,
    MapField,
    RecordField,
    ScalarField,
    TextOrField,
)
from mcp_server.model.posture import Profile
from mcp_server.model.tools import Effect
from mcp_server.model.upstreams import CatalogueChanges, HttpTransport, ProtocolEra, Serve

TRANSPORTS: Mapping[str, HttpTransport | None] = {
    "stdio": None,
    "http": HttpTransport.STREAMABLE,
    "streamable-http": HttpTransport.STREAMABLE,
    "streamableHttp": HttpTransport.STREAMABLE,
    "sse": HttpTransport.SSE,
}
"""The values of `type`, as hosts write them."""
OVERRIDES = tuple(effect for effect in Effect if effect not in (Effect.NONE, Effect.SESSION))
"""The effects that somebody else's tool can have; the other two are about menugate's own state."""
FOREIGN: Mapping[str, str] = {
    "httpUrl": "write `url`, with `type: http`",
    "serverUrl": "write `url`",
    "transport": "write `type`",
    "autoApprove": "write a rule under `rules.allow` instead, such as `server:tool`",
    "alwaysAllow": "write a rule under `rules.allow` instead, such as `server:tool`",
    "trust": "write a rule under `rules.allow` instead, such as `server:*`",
    "includeTools": "name the tools in a mode's `tools`",
    "excludeTools": "write a rule under `rules.deny` instead, such as `server:tool`",
    "disabledTools": "write a rule under `rules.deny` instead, such as `server:tool`",
    "enabled": "write `disabled`, with the opposite value",
    "envFile": "name the variables in `env`; menugate reads no such file",
    "bearer_token_env_var": 'write `headers: {Authorization: "Bearer ${NAME}"}`',
    "startup_timeout_sec": "write `start_timeout`",
    "tool_timeout_sec": "write `timeout`",
}
"""Keys of hosts, and what to write here instead."""

VALUE = ScalarField(32_768)
VARIABLE = LineField(200, r"[A-Za-z_][A-Za-z0-9_]*", "a variable's name")
HEADER = LineField(200, r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", "a header's name")
TOOL = LineField(200)
PLACE = LineField(200)
SECONDS = IntField(1, 86_400)
SHAPE = RecordField(
    {
        "name": KeySpec(
            LineField(25, r"[a-z0-9]+(_[a-z0-9]+)*", "lower-case letters, digits and single `_`"),
            "another name for the tool, after the server's",
        ),
        "description": KeySpec(LineField(1000), "another description"),
        "hide": KeySpec(ListField(PLACE), "arguments that clients neither see nor set"),
        "fix": KeySpec(
            MapField(PLACE, AnyField()), "arguments with a fixed value, which clients neither see nor change"
        ),
        "effect": KeySpec(EnumField(tuple(OVERRIDES)), "what the tool does, whatever its annotations say"),
        "profile": KeySpec(EnumField(tuple(Profile)), "the lowest profile at which it may run"),
        "timeout": KeySpec(SECONDS, "seconds that one call may take"),
    },
    "How one tool looks and counts.",
)
RESULT = RecordField(
    {
        "keep": KeySpec(ListField(PLACE), "the only parts to keep of a JSON result, such as `items.*.id`"),
        "drop": KeySpec(ListField(PLACE), "parts to leave out of a JSON result"),
        "max_chars": KeySpec(IntField(100, 1_000_000), "characters that are shown; the rest goes to a file"),
    },
    "How the server's results are shortened.",
)
SANDBOX = RecordField(
    {
        "write": KeySpec(
            ListField(LineField(4096)),
            "folders in which the server may write, absolute or in the workspace (default: its own)",
        ),
        "network": KeySpec(
            TextOrField(LineField(10, "none", "`none`, or a list of hosts"), ListField(LineField(300))),
            "`none`, or a list of hosts that it may reach (default: none)",
        ),
        "home": KeySpec(BoolField(), "true: it may read your home folder (default: false)"),
    },
    "What a server that menugate starts may reach; it runs in a sandbox.",
)
ENTRY = RecordField(
    {
        "type": KeySpec(EnumField(tuple(TRANSPORTS)), "how to reach the server (default: stdio, or http with a `url`)"),
        "command": KeySpec(VALUE, "the program to start"),
        "args": KeySpec(ListField(VALUE, unique=False), "its arguments"),
        "env": KeySpec(MapField(VARIABLE, VALUE), "its environment, besides a minimal one"),
        "cwd": KeySpec(VALUE, "the folder to start it in, absolute or relative to the workspace (default: that)"),
        "url": KeySpec(VALUE, "the address of a server that is already running"),
        "headers": KeySpec(MapField(HEADER, VALUE), "headers of every request to it"),
        "disabled": KeySpec(BoolField(), "true: keep the entry, but never start or connect the server"),
        "timeout": KeySpec(SECONDS, "seconds that one call may take (default: 60)"),
        "start_timeout": KeySpec(SECONDS, "seconds until it must have started (default: 30)"),
        "idle": KeySpec(SECONDS, "seconds without a call until it is stopped (default: 600)"),
        "serve": KeySpec(
            EnumField(tuple(Serve)),
            "who shares one running server (default: session for known stateful servers, else principal)",
        ),
        "changes": KeySpec(
            EnumField(tuple(CatalogueChanges)), "what happens to tools that are new or changed (default: ask)"
        ),
        "era": KeySpec(EnumField(tuple(ProtocolEra)), "which handshake to try (default: auto)"),
        "prefix": KeySpec(BoolField(), "false: its tools keep their names"),
        "roots": KeySpec(BoolField(), "true: the server is told where the workspace is"),
        "tools": KeySpec(MapField(TOOL, SHAPE), "how single tools look and count, by the server's name for each"),
        "result": KeySpec(RESULT, "what is kept of its results"),
        "sandbox": KeySpec(SANDBOX, "run it in a sandbox, and what it may reach there"),
    },
    "An MCP server behind menugate.",
)
