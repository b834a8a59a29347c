"""What does the workspace's own file say? Rules, a ceiling, a budget, and prompts in the folder beside it.

It comes with the workspace, so anybody may have written it. Untrusted it narrows and does nothing else: its `allow`
rules and its prompts are set aside. What a person trusts is the content, every byte of it: whatever was read here is
what counts, and the digest over it is what trust is given to.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mcp_server.config.faults import FaultCollector, SourceLocation
from mcp_server.config.operator import read_budget, read_rules
from mcp_server.config.operator_schema import BUDGET, CONFIG, PROFILES, RULE_LISTS
from mcp_server.config.prompts import find_prompt_files
from mcp_server.config.prompts import read_prompt_file as words_in
from mcp_server.config.reader import Fields, parse_yaml, read_text_file
from mcp_server.config.shapes import KeySpec, RecordField, fit, get_text
from mcp_server.model.policy import Budget, RuleKind, RuleText
from mcp_server.model.posture import Profile
from mcp_server.model.text import quote_exactly

FILE = "menugate.yaml"
PROMPTS = "menugate.prompts"
FOLDER = RecordField(
    {
        "rules": KeySpec(RULE_LISTS, "what may be called; `allow` counts once the person trusts the folder"),
        "max_profile": KeySpec(PROFILES, "the highest permission profile for work in this folder"),
        "budget": KeySpec(BUDGET, "what a run may spend here; the lower limit counts"),
    },
    "What a workspace says about work in it. It narrows; what it allows counts once the person trusts the folder.",
)


@dataclass(frozen=True, slots=True)
class WorkspaceConfig:
    """What the workspace says, as it was when it was read."""

    rules: tuple[RuleText, ...] = ()
    max_profile: Profile = Profile.UNRESTRICTED
    budget: Budget = field(default_factory=Budget)
    prompts: Mapping[str, str] = field(default_factory=dict[str, str])
    texts: Mapping[str, str] = field(default_factory=dict[str, str])
    """Every file that was read, by its name in the workspace."""

    @property
    def digest(self) -> str:
        """What trust is given to; it changes with every byte, and with a file more or less."""
        return hashlib.sha256(json.dumps(dict(self.texts), sort_keys=True).encode()).hexdigest()

    @property
    def narrowing_rules(self) -> tuple[RuleText, ...]:
        return tuple(rule for rule in self.rules if rule.kind is not RuleKind.ALLOW)

    @property
    def widening_rules(self) -> tuple[RuleText, ...]:
        """What counts only where the person trusts the folder."""
        return tuple(rule for rule in self.rules if rule.kind is RuleKind.ALLOW)


def read_workspace_config(
    workspace: Path, findings: FaultCollector, said: str | None = None, without: bool = False
) -> WorkspaceConfig:
    """The workspace's own word; nothing where it says none. Faults are told with their lines. `said` is taken for what
    its file says, where somebody has read it before; `without` leaves aside one that came since and does not count."""
    path = workspace / FILE
    prompts, texts = _read_prompts(workspace, findings)
    if said is None and (without or not path.is_file()):
        return WorkspaceConfig(prompts=prompts, texts=texts)
    said = read_text_file(path, findings) if said is None else said
    if said is None:
        return WorkspaceConfig(prompts=prompts, texts=texts)
    texts = {FILE: said, **texts}
    node = parse_yaml(said, str(path), findings)
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
    """Without the keys that are the operator's alone, each of which is told as such."""
    kept = Fields(node.place)
    for name, place in node.keys.items():
        if name in CONFIG.keys and name not in FOLDER.keys:
            findings.add(
                place,
                f"{quote_exactly(name)} is the operator's to set, in the menugate.yaml outside of the workspace;"
                f" here may stand {', '.join(FOLDER.keys)}",
            )
            continue
        kept.keys[name] = place
        if name in node.fields:
            kept.fields[name] = node.fields[name]
    return kept


def _read_prompts(workspace: Path, findings: FaultCollector) -> tuple[dict[str, str], dict[str, str]]:
    folder = workspace / PROMPTS
    prompts: dict[str, str] = {}
    texts: dict[str, str] = {}
    if folder.is_symlink() or not folder.is_dir():
        return prompts, texts
    for key, path in find_prompt_files(folder):
        try:
            said = words_in(path)
        except (OSError, UnicodeDecodeError):
            said = None
        if said is None:
            findings.add(SourceLocation(str(path)), "this prompt is no readable text of at most 32 KB")
            continue
        prompts[key] = texts[f"{PROMPTS}/{key}.md"] = said
    return prompts, texts
