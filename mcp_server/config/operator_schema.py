"""Which keys does menugate.yaml have, and what may each contain? The checks and the JSON Schema come from here."""

from mcp_server.config.hosts import ROWS
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
    TextOrField,
)
from mcp_server.model.approvals import ApprovalChannel
from mcp_server.model.menus import Listing
from mcp_server.model.policy import RuleKind
from mcp_server.model.posture import AiMode, ModelMode, OnFailure, Profile, RunControl, WorkMode
from mcp_server.model.processes import SandboxPolicy

RULE = LineField(500)
RULES = ListField(
    TextOrField(
        RULE,
        RecordField(
            {
                "rule": KeySpec(RULE, "the rule, such as `bash(git push:*)`", required=True),
                "match": KeySpec(ListField(RULE), "calls the rule must match; checked at start"),
                "not_match": KeySpec(ListField(RULE), "calls it must not match; checked at start"),
                "reason": KeySpec(LineField(240), "the reason shown to a refused caller"),
            },
            "A rule with examples and a reason.",
        ),
    ),
    max_items=10_000,
)
KINDS = {
    RuleKind.BLOCK: "never, whatever the profile or an approval says",
    RuleKind.DENY: "refused",
    RuleKind.ASK: "only with the user's approval",
    RuleKind.ALLOW: "without asking, where menugate asks by default",
}
AXES = {
    "work_mode": (WorkMode, "the kind of work: `plan`, `research` and `review` only read"),
    "run_control": (RunControl, "how often the user is asked: `manual` asks before every effect"),
    "model_mode": (ModelMode, "recorded with every call; no tool uses it yet"),
    "ai_mode": (AiMode, "`chat` asks before any write"),
}
PROFILES = EnumField(tuple(Profile))
OWN_PATH = LineField(4096, r"(?!~).*", "an absolute path, or one relative to this file's folder; `~` is not expanded")
MEGABYTE = 1 << 20
KEY, SECTION = "mcpServers", "workspaces"
SERVER_NAME = LineField(
    64,
    r"(?!menugate$)[A-Za-z0-9]+([._-][A-Za-z0-9]+)*",
    "letters and digits with single `-`, `_` or `.` between them, and not `menugate`",
)
SERVERS = MapField(SERVER_NAME, AnyField())
"""The entries have a schema of their own, which is loaded only if there are any."""
LIMIT = IntField(1, 1_000_000_000)
RULE_LISTS = RecordField(
    {kind.value: KeySpec(RULES, says) for kind, says in KINDS.items()}, "Four lists of rules; the strictest rule wins."
)
BUDGET = RecordField(
    {
        "calls": KeySpec(LIMIT, "calls in one run"),
        "minutes": KeySpec(LIMIT, "minutes from a run's first call"),
        "result_bytes": KeySpec(LIMIT, "bytes of results in one run"),
        "repeated_failures": KeySpec(LIMIT, "how often the same call may fail in a row"),
    },
    "What a run may spend; a key left out means no limit.",
)
REVIEW = RecordField(
    {
        "endpoint": KeySpec(LineField(500), "such as `https://host/v1/chat/completions`", required=True),
        "model": KeySpec(LineField(200), "the name of the model", required=True),
        "key": KeySpec(LineField(200), "`env:NAME`, the environment variable that holds the key; never the key itself"),
        "patience": KeySpec(IntField(1, 50), "seconds that `complete` waits for it (default: 20)"),
    },
    "The model that reviews finished runs.",
)
HOSTS = ListField(LineField(300))
WEB = RecordField(
    {
        "allow": KeySpec(HOSTS, "reached at every profile, also if it is not a public address"),
        "deny": KeySpec(HOSTS, "never reached, on any port"),
        "ask": KeySpec(HOSTS, "reached only with the user's approval"),
        "proxy": KeySpec(LineField(500), "your own HTTP proxy for all of it, such as `http://proxy.example:3128`"),
        "authorities": KeySpec(OWN_PATH, "a file with certificates in PEM format that are trusted as well"),
    },
    "What tools may reach, and how; `*` is every host that no other entry here names.",
)
CONFIG = RecordField(
    {
        "rules": KeySpec(RULE_LISTS, "what may be called, and with which arguments"),
        SECTION: KeySpec(
            MapField(
                LineField(4096, "/.*", "the absolute path of a workspace"),
                RecordField(
                    {
                        "rules": KeySpec(RULE_LISTS, "what may be called in this workspace"),
                        KEY: KeySpec(SERVERS, "servers for this workspace only"),
                    },
                    "Settings for one workspace.",
                ),
            ),
            "rules and servers for one workspace only, by its path",
        ),
        KEY: KeySpec(SERVERS, "other MCP servers, whose tools appear behind the menus"),
        "max_profile": KeySpec(PROFILES, "the highest permission profile allowed"),
        "profile": KeySpec(PROFILES, "the permission profile to start with"),
        **{name: KeySpec(EnumField(tuple(axis)), says) for name, (axis, says) in AXES.items()},
        "reasoning": KeySpec(BoolField(), "whether a run has reasoning stages"),
        "budget": KeySpec(BUDGET, "what a run may spend"),
        "summary": KeySpec(
            RecordField(
                {
                    "messages": KeySpec(LIMIT, "messages in one run; a call and its answer are two (default: 40)"),
                    "tokens": KeySpec(LIMIT, "estimated tokens in one run (default: 20000)"),
                    "keep": KeySpec(
                        IntField(2, 1_000), "how many of the newest messages the summary leaves out (default: 20)"
                    ),
                },
                "The size at which the beginning of a run is summarized.",
            ),
            "when a run is summarized; `menugate summary` shows the result",
        ),
        "menus": KeySpec(ListField(OWN_PATH), "folders with more mode files, relative to this file's folder"),
        "prompts": KeySpec(
            OWN_PATH, "a folder with your own prompts in place of shipped ones, relative to this file's folder"
        ),
        "hosts": KeySpec(ROWS, "hosts that menugate does not know, or is wrong about"),
        "listing": KeySpec(EnumField(("auto", *Listing)), "what `tools/list` shows, to every host"),
        "tokens": KeySpec(
            ListField(
                RecordField(
                    {
                        "principal": KeySpec(LineField(64, r"[A-Za-z0-9_.@-]+"), "who uses the token", required=True),
                        "sha256": KeySpec(LineField(64, r"[0-9a-f]{64}"), "the token's SHA-256, in hex", required=True),
                        "max_profile": KeySpec(PROFILES, "the highest profile allowed for this principal"),
                    },
                    "Another bearer token for HTTP.",
                ),
            ),
            "other people who may connect over HTTP, each with their own token",
        ),
        "health": KeySpec(
            EnumField(tuple(OnFailure)),
            "when a health check fails: set work mode `repair` (`auto`), ask you to, or only record the failure",
        ),
        "glance": KeySpec(
            EnumField(("on", "off")),
            "whether one line about each call is kept for 14 days, so that you can read the record; `off` deletes them",
        ),
        "approvals": KeySpec(
            TextOrField(
                LineField(
                    20,
                    "|".join(ApprovalChannel),
                    f"one of {', '.join(ApprovalChannel)}, or a mapping with `out_of_band`",
                ),
                RecordField(
                    {
                        "out_of_band": KeySpec(
                            ListField(LineField(80), min_items=1), "effects such as `destroy-local`, and tools"
                        )
                    },
                    "What can be approved only at a terminal; everything else may be asked through the client.",
                ),
            ),
            "`out_of_band` if you do not trust the client to ask: for every approval, or for those listed",
        ),
        "sandbox": KeySpec(
            EnumField(tuple(SandboxPolicy)),
            "commands run in a sandbox; if none works, `required` refuses them, and `preferred` and `off` require the "
            "next higher profile",
        ),
        "limits": KeySpec(
            RecordField(
                {
                    "processes": KeySpec(IntField(8, 100_000), "how many processes one command may start"),
                    "memory_mb": KeySpec(IntField(64, 1_000_000), "megabytes of memory per process"),
                    "file_mb": KeySpec(IntField(1, 1_000_000), "megabytes per file"),
                },
                "How much a command may use.",
            ),
            "how much a command may use",
        ),
        "review": KeySpec(REVIEW, "a model that reviews finished runs; menugate sends it the record of each"),
        "network": KeySpec(
            RecordField(
                {"allow": KeySpec(HOSTS, "such as `github.com:443`, `*.example.org`, `10.1.0.0/16`")},
                "The allowed destinations, instead of the usual sources of packages and repositories.",
            ),
            "what commands may reach on the network at profile `trusted`",
        ),
        "web": KeySpec(WEB, "what tools may reach on the web"),
    },
    "The settings that only the operator may change.",
)
