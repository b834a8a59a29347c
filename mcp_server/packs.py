"""What may a tool pack import? These names, which menugate promises to keep for third-party packs.

A pack is a distribution with an entry point in the group `menugate.tools` that leads to a `Pack`. docs/packs.md shows
how to write one; docs/packs-reference.md has every name here with its fields and methods.

**What stays.** A name here, a field, a method and its parameters keep their meaning. One is removed or changed only
after a release in which the old form still works, with a warning when it is used; both releases say so in CHANGELOG.md,
marked **Breaking**, with what to write instead.

**What may grow.** A new field has a default, and a new parameter comes last. Lists such as `Code`, `Effect` and `Stage`
may get new members in any release, so have a branch for those that you don't know.

**What is not promised.** Everything else in `mcp_server` and `tools` moves without notice, and so does what is reached
through a value here without being named here, such as `Context.navigator`.

Nothing but `mcp_server.model` is imported, so that a pack adds a few milliseconds to a start and no library.
"""

# What a tool is given when it runs, and the doors through which it reaches the machine. Each door checks the call's
# grant again; nothing else may open a file, start a program or use the network.
from mcp_server.model.context import Client, Context, Person, Progress, SessionObjects
from mcp_server.model.documents import Document, DocumentCause, Documents, Overtaken, Records, Tally
from mcp_server.model.files import DirectoryEntry, Files, Search, SearchResult, Snapshot, Stamp
from mcp_server.model.index import Freshness, Index, IndexHit, IndexHits, IndexRequest, Symbol, Symbols
from mcp_server.model.memory import Memory, MemoryEntry, MemoryMatches, Tier
from mcp_server.model.network import Network, NetworkStream, Request, Response

# How far a call goes: the profile that it needs, the stages that it may run in, and the risks to ask about.
from mcp_server.model.posture import Profile, Stage
from mcp_server.model.processes import ChildProcess, Command, CommandResult, OutputOverflow, Processes
from mcp_server.model.protected import describe_change_risk, describe_move_risk, describe_read_risk

# How a call ends. A tool returns `Done` or `Problem`; a door raises `Refusal`, which a tool may catch.
from mcp_server.model.results import Code, Done, Ending, Picture, Problem, Raw, Refusal

# What a tool takes: a TypedDict, made into a schema.
from mcp_server.model.schema import Is, build_schema
from mcp_server.model.sessions import Session
from mcp_server.model.text import quote_text

# What a pack brings.
from mcp_server.model.tool_packs import Message, Pack, Prompt, PromptArgument, Resource, Template

# What a tool is.
from mcp_server.model.tools import (
    ACTING,
    EVERY_STAGE,
    REVIEWING,
    WARMUP,
    Arguments,
    CallPart,
    Confirmation,
    Demand,
    Effect,
    Hints,
    LazyFunction,
    Loss,
    LossDoubt,
    LossKind,
    RuleSubject,
    Run,
    RunFiles,
    Schema,
    Tool,
)

__all__ = [
    "ACTING",
    "EVERY_STAGE",
    "REVIEWING",
    "WARMUP",
    "Arguments",
    "CallPart",
    "ChildProcess",
    "Client",
    "Code",
    "Command",
    "CommandResult",
    "Confirmation",
    "Context",
    "Demand",
    "DirectoryEntry",
    "Document",
    "DocumentCause",
    "Documents",
    "Done",
    "Effect",
    "Ending",
    "Files",
    "Freshness",
    "Hints",
    "Index",
    "IndexHit",
    "IndexHits",
    "IndexRequest",
    "Is",
    "LazyFunction",
    "Loss",
    "LossDoubt",
    "LossKind",
    "Memory",
    "MemoryEntry",
    "MemoryMatches",
    "Message",
    "Network",
    "NetworkStream",
    "OutputOverflow",
    "Overtaken",
    "Pack",
    "Person",
    "Picture",
    "Problem",
    "Processes",
    "Profile",
    "Progress",
    "Prompt",
    "PromptArgument",
    "Raw",
    "Records",
    "Refusal",
    "Request",
    "Resource",
    "Response",
    "RuleSubject",
    "Run",
    "RunFiles",
    "Schema",
    "Search",
    "SearchResult",
    "Session",
    "SessionObjects",
    "Snapshot",
    "Stage",
    "Stamp",
    "Symbol",
    "Symbols",
    "Tally",
    "Template",
    "Tier",
    "Tool",
    "build_schema",
    "describe_change_risk",
    "describe_move_risk",
    "describe_read_risk",
    "quote_text",
]
