"""How is menugate.yaml written? Every key with what it may hold, which is also its JSON Schema."""

from mcp_server.config.hosts import ROWS
from mcp_server.config.shapes import (
    BoolField,
    EnumField,
    IntField,
    KeySpec,
    LineField,
    ListField,
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
                "match": KeySpec(ListField(RULE), "calls the rule has to speak about; checked at start"),
                "not_match": KeySpec(ListField(RULE), "calls it must not speak about; checked at start"),
                "reason": KeySpec(LineField(240), "what a refused caller is told"),
            },
            "A rule with examples and a reason.",
        ),
    ),
    most=10_000,
)
KINDS = {
    RuleKind.BLOCK: "never, whatever the profile or an approval says",
    RuleKind.DENY: "refused",
    RuleKind.ASK: "only after the person said yes",
    RuleKind.ALLOW: "without a question where one would be asked",
}
AXES = {
    "work_mode": (WorkMode, "the kind of work: `plan`, `research` and `review` only read"),
    "run_control": (RunControl, "how often the person is asked: `manual` asks for every effect"),
    "model_mode": (ModelMode, "only recorded with every call, until a tool uses it"),
    "ai_mode": (AiMode, "`chat` asks before any write"),
}
PROFILES = EnumField(tuple(Profile))
MEGABYTE = 1 << 20
LIMIT = IntField(1, 1_000_000_000)
RULE_LISTS = RecordField(
    {kind.value: KeySpec(RULES, says) for kind, says in KINDS.items()}, "Four lists; the strongest wins."
)
BUDGET = RecordField(
    {
        "calls": KeySpec(LIMIT, "calls in one run"),
        "minutes": KeySpec(LIMIT, "minutes from a run's first call"),
        "result_bytes": KeySpec(LIMIT, "bytes of results in one run"),
        "repeated_failures": KeySpec(LIMIT, "how often the same call may fail in a row"),
    },
    "What a run may spend; no limit where a key is left out.",
)
REVIEW = RecordField(
    {
        "endpoint": KeySpec(LineField(500), "such as `https://host/v1/chat/completions`", required=True),
        "model": KeySpec(LineField(200), "the model's name there", required=True),
        "key": KeySpec(LineField(200), "`env:NAME`, the environment variable that holds the key; never the key itself"),
        "patience": KeySpec(IntField(1, 50), "seconds that `complete` waits for it (20 where left out)"),
    },
    "Who is asked about a run that is over.",
)
CONFIG = RecordField(
    {
        "rules": KeySpec(RULE_LISTS, "what may be called, and with which arguments"),
        "max_profile": KeySpec(PROFILES, "the highest permission profile anybody may choose"),
        "profile": KeySpec(PROFILES, "the permission profile to start with"),
        **{name: KeySpec(EnumField(tuple(axis)), says) for name, (axis, says) in AXES.items()},
        "reasoning": KeySpec(BoolField(), "whether a run has the stages of reasoning"),
        "budget": KeySpec(BUDGET, "what a run may spend"),
        "summary": KeySpec(
            RecordField(
                {
                    "messages": KeySpec(
                        LIMIT, "messages in one run; a call and its answer are two (40 where left out)"
                    ),
                    "tokens": KeySpec(LIMIT, "tokens in one run, as estimated (20000 where left out)"),
                    "keep": KeySpec(IntField(2, 1_000), "so many of the newest messages stay out (20 where left out)"),
                },
                "After which growth the beginning of a run is put together.",
            ),
            "when a run is summed up; `menugate summary` shows it",
        ),
        "menus": KeySpec(
            ListField(
                LineField(4096, r"(?!~).*", "a whole path or one beginning at this file's folder; `~` is not read here")
            ),
            "folders with further mode files, beginning at this file's folder",
        ),
        "prompts": KeySpec(
            LineField(4096, r"(?!~).*", "a whole path or one beginning at this file's folder; `~` is not read here"),
            "a folder with words of your own in place of shipped ones, beginning at this file's folder",
        ),
        "hosts": KeySpec(ROWS, "hosts menugate does not know, or knows wrongly"),
        "listing": KeySpec(EnumField(("auto", *Listing)), "what `tools/list` shows, to every host"),
        "tokens": KeySpec(
            ListField(
                RecordField(
                    {
                        "principal": KeySpec(
                            LineField(64, r"[A-Za-z0-9_.@-]+"), "whom the token stands for", required=True
                        ),
                        "sha256": KeySpec(LineField(64, r"[0-9a-f]{64}"), "the token's SHA-256, in hex", required=True),
                        "max_profile": KeySpec(PROFILES, "the profile this principal cannot go beyond"),
                    },
                    "A further bearer token for HTTP.",
                ),
            ),
            "further people who may come in over HTTP, each with a token of their own",
        ),
        "health": KeySpec(
            EnumField(tuple(OnFailure)),
            "what a failed health check does: turn the work mode to `repair` (`auto`), ask for that, or only record it",
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
                            ListField(LineField(80), least=1), "effects such as `destroy-local`, and tools"
                        )
                    },
                    "What only the person at a terminal can answer; everything else may be asked through the client.",
                ),
            ),
            "`out_of_band` where the client is not trusted to ask, for every question or for some",
        ),
        "sandbox": KeySpec(
            EnumField(tuple(SandboxPolicy)),
            "commands run shut in; where no sandbox holds, `required` refuses them, and otherwise they need one "
            "profile more",
        ),
        "limits": KeySpec(
            RecordField(
                {
                    "processes": KeySpec(IntField(8, 100_000), "how many processes one command may start"),
                    "memory_mb": KeySpec(IntField(64, 1_000_000), "megabytes of memory for one process"),
                    "file_mb": KeySpec(IntField(1, 1_000_000), "megabytes of one file"),
                },
                "How much a command may use.",
            ),
            "how much a command may use",
        ),
        "review": KeySpec(REVIEW, "a model that looks over runs that are over; it is sent the record of each"),
        "network": KeySpec(
            RecordField(
                {
                    "allow": KeySpec(
                        ListField(LineField(300)), "such as `github.com:443`, `*.example.org`, `10.1.0.0/16`"
                    )
                },
                "The places there are, instead of the usual sources of packages and repositories.",
            ),
            "what commands may reach of the network at profile `trusted`",
        ),
    },
    "What the operator of menugate decides.",
)
