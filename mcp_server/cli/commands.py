"""Which commands exist, in which module, and what is each for? Read without importing any of them."""

from collections.abc import Mapping
from typing import NamedTuple


class CommandEntry(NamedTuple):
    module: str
    """The module beside this one that adds the command and runs it."""
    purpose: str
    """One line, for the overview and for the top of the command's own help."""


GROUPS: Mapping[str, Mapping[str, CommandEntry]] = {
    "See": {
        "status": CommandEntry("status", "show the posture, what is running and what needs your attention"),
        "menus": CommandEntry("menus", "list the modes, their tools and their cost in tokens"),
        "explain": CommandEntry("explain", "say whether a call may run, and why, without running it"),
        "rules": CommandEntry("rules", "list the rules in force, or test them on their examples"),
        "approvals": CommandEntry("approvals", "list the calls that need your approval"),
        "messages": CommandEntry("messages", "read the messages that tools and models left for you"),
        "todos": CommandEntry("todos", "list the agents' todos, and accept or reject finished ones"),
    },
    "Decide": {
        "approve": CommandEntry("approvals", "approve a call"),
        "deny": CommandEntry("approvals", "deny a call"),
        "pause": CommandEntry("pauses", "pause runs; they keep their state"),
        "next": CommandEntry("pauses", "resume paused runs; in `assisted`, for one unit of work"),
        "stop": CommandEntry("pauses", "end runs and everything they started"),
        "mode": CommandEntry("posture", "show or set the work mode"),
        "control": CommandEntry("posture", "show or set how far a run goes on its own"),
        "profile": CommandEntry("posture", "show or set what may run without asking you"),
        "model": CommandEntry("posture", "show or set the model mode, which is only recorded for now"),
        "ai-mode": CommandEntry("posture", "show or set whether agents act or only talk"),
        "reasoning": CommandEntry("posture", "show or set whether runs go through stages of reasoning"),
        "autonomous": CommandEntry("posture", "short for `control autonomous`"),
        "steer": CommandEntry("steer", "change one axis now or later; cancel or confirm a change"),
        "trust": CommandEntry("trust", "apply this folder's own allow rules and prompts"),
        "untrust": CommandEntry("trust", "stop trusting this folder's allow rules and prompts"),
    },
    "Set up": {
        "serve": CommandEntry("serve", "serve a folder to MCP hosts, over stdio or HTTP"),
        "check": CommandEntry("check", "check menus, rules and prompts for mistakes"),
        "upstreams": CommandEntry("upstreams", "add, test, approve and remove the MCP servers behind menugate"),
        "secret": CommandEntry("secrets", "store secrets for servers and web sites, list or remove them"),
        "call": CommandEntry("call", "call a tool yourself, with the same checks as for a client"),
        "completion": CommandEntry("completion", "print a completion script for your shell"),
    },
    "Look back": {
        "audit": CommandEntry("audit", "read the record of every decision, and verify or export it"),
        "summary": CommandEntry("summaries", "summarize a run from its record"),
        "report": CommandEntry("reports", "show the findings about a finished run"),
        "memory": CommandEntry("memory", "list and change what is remembered between runs"),
    },
    "Maintain": {
        "doctor": CommandEntry("doctor", "check that everything is in order, and fix what it can"),
        "index": CommandEntry("index", "build or search the index of this project"),
        "help": CommandEntry("help", "explain a command or a topic"),
        "version": CommandEntry("version", "show the version and where it is installed"),
    },
}
COMMANDS: Mapping[str, CommandEntry] = {name: entry for group in GROUPS.values() for name, entry in group.items()}
"""All commands, in the order of the overview."""
