"""What does the workspace's own menugate.yaml say? Rules, a ceiling, a budget, and the prompts in the folder beside it.

It comes with the workspace, so anyone may have written it. Until the user trusts it, it can only restrict: its `allow`
rules and its prompts are ignored. Trust is given to a digest of every byte that was read here, and only those bytes
count.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from mcp_server.config.faults import FaultCollector, SourceLocation
from mcp_server.config.operator import read_budget, read_rules
from mcp_server.config.operator_schema import BUDGET, CONFIG, PROFILES, RULE_LISTS
from mcp_server.config.prompts import find_prompt_files, read_prompt_file
from mcp_server.config.reader import Fields, parse_yaml, read_text_file
from mcp_server.config.shapes import KeySpec, RecordField, fit, get_text
from mcp_server.model.policy import Budget, RuleKind, RuleText
from mcp_server.model.posture import Profile
from mcp_server.model.text import quote_exactly

FILE = "menugate.yaml"
PROMPTS = "menugate.prompts"
FOLDER = RecordField(
    {
        "rules": KeySpec(RULE_LISTS, "what may be called; `allow` applies once the user trusts the folder"),
        "max_profile": KeySpec(PROFILES, "the highest permission profile for work in this folder"),
        "budget": KeySpec(BUDGET, "what a run may spend here; the lower limit applies"),
    },
    "Settings for work in this folder. They restrict at once; what they allow applies once the user trusts the folder.",
)


class WorkspaceConfig(Struct, frozen=True):
    rules: tuple[RuleText, ...] = ()
    max_profile: Profile = Profile.UNRESTRICTED
    budget: Budget = field(default_factory=Budget)
    prompts: Mapping[str, str] = field(default_factory=dict[str, str])
    texts: Mapping[str, str] = field(default_factory=dict[str, str])
    """Every file that was read, by its name in the workspace."""

    @property
    def digest(self) -> str:
        """What trust is given to; it changes with every byte, and if a file is added or removed."""
        return hashlib.sha256(json.dumps(dict(self.texts), sort_keys=True).encode()).hexdigest()

    @property
    def narrowing_rules(self) -> tuple[RuleText, ...]:
        return tuple(rule for rule in self.rules if rule.kind is not RuleKind.ALLOW)

    @property
    def widening_rules(self) -> tuple[RuleText, ...]:
        """The rules that apply only if the user trusts the folder."""
        return tuple(rule for rule in self.rules if rule.kind is RuleKind.ALLOW)


def read_workspace_config(
    workspace: Path, findings: FaultCollector, text: str | None = None, without: bool = False
) -> WorkspaceConfig:
    """Read the workspace's file, or `text` if it was read before. `without` ignores a file that was added since."""
    path = workspace / FILE
    prompts, texts = _read_prompts(workspace, findings)
    if text is None and (without or not path.is_file()):
        return WorkspaceConfig(prompts=prompts, texts=texts)
    text = read_text_file(path, findings) if text is None else text
    if text is None:
        return WorkspaceConfig(prompts=prompts, texts=texts)
    texts = {FILE: text, **texts}
    node = parse_yaml(text, str(path), findings)
    fields = fit(_drop_operator_keys(node, findings), FOLDER, findings) if isinstance(node, Fields) else None
    if node is not None and not isinstance(node, Fields):
        fit(node, FOLDER, findings)
    if not isinstance(fields, Fields):
        return WorkspaceConfig(prompts=prompts, texts=texts)
    return WorkspaceConfig(
        rules=read_rules(fields),
        max_profile=Profile(get_text(fields, "max_profile") or Profile.UNRESTRICTED),
        budget=read_budget(fields),
        prompts=prompts,
        texts=texts,
    )


def _drop_operator_keys(node: Fields, findings: FaultCollector) -> Fields:
    """Drop, and report, the keys that only the operator may set."""
    remainder = Fields(node.place)
    for name, place in node.keys.items():
        if name in CONFIG.keys and name not in FOLDER.keys:
            findings.add(
                place,
                f"only the operator may set {quote_exactly(name)}, in a menugate.yaml outside the workspace;"
                f" the keys allowed here are {', '.join(FOLDER.keys)}",
            )
            continue
        remainder.keys[name] = place
        if name in node.fields:
            remainder.fields[name] = node.fields[name]
    return remainder


def _read_prompts(workspace: Path, findings: FaultCollector) -> tuple[dict[str, str], dict[str, str]]:
    folder = workspace / PROMPTS
    prompts: dict[str, str] = {}
    texts: dict[str, str] = {}
    if folder.is_symlink() or not folder.is_dir():
        return prompts, texts
    for key, path in find_prompt_files(folder):
        try:
            text = read_prompt_file(path)
        except (OSError, UnicodeDecodeError):
            text = None
        if text is None:
            findings.add(SourceLocation(str(path)), "this prompt is not a readable text file of at most 32 KB")
            continue
        prompts[key] = texts[f"{PROMPTS}/{key}.md"] = text
    return prompts, texts
