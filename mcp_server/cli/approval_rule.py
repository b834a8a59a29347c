"""`menugate approve ID --always`: which rule allows the same call from now on, and do you want it written?"""

import argparse
import os
import sys
from collections import Counter
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.cli.output import CliError, ask_at_terminal, say, say_foreign, say_prose
from mcp_server.cli.parser import load_valid_configuration
from mcp_server.cli.servers import load_judgement
from mcp_server.model.text import format_count
from mcp_server.views.posture import build_posture_view, open_state_reader

if TYPE_CHECKING:
    from mcp_server.config.load import Configuration
    from mcp_server.config.operator_file import OperatorFile
    from mcp_server.model.approvals import Approval
    from mcp_server.settings import Settings
    from mcp_server.views.rule_trial import AskedCall, RuleEffect

WORD = "always"
MAX_LINES = 5
"""Lines about recent calls to show."""


class WorkspaceRule(Struct, frozen=True):
    """A rule that works, and the operator's file with it."""

    rule: str
    workspace: str
    file: "OperatorFile"
    text: str
    asked: "AskedCall"
    effect: "RuleEffect | None"
    """None if no lines about calls are kept."""

    def write(self) -> None:
        from mcp_server.config.operator_file import UnusableFile, replace_operator_file

        try:
            replace_operator_file(self.file, self.text)
        except UnusableFile as why:
            raise CliError(f"{why}. Nothing was written, and the question is still open.") from None


def draft_rule(arguments: argparse.Namespace, question: "Approval") -> WorkspaceRule:
    """Draft the rule and try it; raise if there is none, or if it would not let this call run without asking."""
    from mcp_server.config.load import get_limits
    from mcp_server.config.operator_file import UnusableFile, read_operator_file
    from mcp_server.settings import OPERATORS_FILE
    from mcp_server.views.rule_trial import decide_asked_call, find_asked_call, measure_rule_effect

    settings = load_judgement(arguments, strict=True).settings
    configuration = load_valid_configuration(arguments, settings)
    asked = find_asked_call(question, configuration.policy.tools)
    rule, workspace = asked.write_rule(), os.path.realpath(settings.workspace)
    try:
        file = read_operator_file(settings.config or settings.operators / OPERATORS_FILE)
    except UnusableFile as why:
        raise CliError(f"{why}, so the rule cannot be written.\n{format_by_hand(workspace, rule)}") from None
    with open_state_reader(settings) as state:
        limits = get_limits(configuration, settings)
        posture = build_posture_view(settings, limits, state, by_flag=True, principal=question.wanted.principal).posture
        before = decide_asked_call(asked, configuration, settings, posture)
        if before.is_allowed:
            raise CliError(f"the call needs no rule: it is allowed by now. Run `menugate approve {question.id}`.")
        text = write_draft(file, workspace, rule)
        trial = load_trial(arguments, replace(settings, config=file.path), text)
        after = decide_asked_call(asked, trial, settings, posture)
        if not after.is_allowed:
            source = f" ({after.rule_source})" if after.rule_source else ""
            raise CliError(f"no rule that allows this call would change anything: {after.reason}{source}")
        keeps_lines = configuration.library.config.glance
        effect = measure_rule_effect(state, asked, trial, settings) if state and keeps_lines else None
    return WorkspaceRule(rule, workspace, file, text, asked, effect)


def write_draft(file: "OperatorFile", workspace: str, rule: str) -> str:
    from mcp_server.config.operator_edit import UneditableLayout, add_workspace_rule

    try:
        return add_workspace_rule(file.text, workspace, rule)
    except UneditableLayout:
        why = f"menugate finds no safe place for the rule in {file.path}."
        raise CliError(f"{why}\n{format_by_hand(workspace, rule)}") from None


def format_by_hand(workspace: str, rule: str) -> str:
    from mcp_server.config.operator_edit import format_workspace_rule

    return (
        f"To allow the call from now on, write this there yourself:\n{format_workspace_rule(workspace, rule)}".rstrip()
    )


def load_trial(arguments: argparse.Namespace, settings: "Settings", text: str) -> "Configuration":
    """Load the configuration as the servers will, with the new text."""
    from mcp_server.config.faults import ConfigFaults
    from mcp_server.config.load import load_configuration

    trial = load_configuration(settings, arguments.packs, texts={settings.config: text} if settings.config else {})
    if isinstance(trial, ConfigFaults):
        faults = "\n".join(map(str, trial.faults))
        raise CliError(f"the rule cannot be written, because the file would have a fault:\n{faults}")
    return trial


def require_terminal() -> None:
    if not sys.stdin.isatty():
        raise CliError("`--always` asks you to type a word, so it needs a terminal; nothing was changed.")


def confirm_rule(draft: WorkspaceRule, person: str) -> None:
    """Show what would be written and what it would have changed, and let the user type a word."""
    say_prose("This rule would allow the same call from now on, without asking:")
    # It contains the call's own text.
    say_foreign(f"allow: {draft.rule}", "  ", "> ")
    if free := [f"`{name}`" for name in draft.asked.free if name in draft.asked.arguments]:
        say_prose(f"It allows any {' and '.join(free)}.")
    if draft.asked.question.wanted.exact:
        say_prose("It would allow the call whatever the programs and files that it uses contain by then.")
    say_prose(f"It would apply in {draft.workspace}, and in no other workspace.")
    if (principal := draft.asked.question.wanted.principal) != person:
        say_prose(f"It would apply to everyone who connects to this workspace, not only to `{principal}`.")
    verb = "be created" if draft.file.data is None else "get the rule"
    say_prose(f"This file would {verb}: {draft.file.path}")
    show_effect(draft.effect)
    if ask_at_terminal(f"Type `{WORD}` to write the rule and approve the call: ") != WORD:
        raise CliError(f"you did not type `{WORD}`; nothing was changed, and the question is still open.")


def show_effect(effect: "RuleEffect | None") -> None:
    if effect is None:
        say_prose("What it would have changed is unknown: no lines about recent calls are kept (`glance: off`).")
        return
    if not effect.calls:
        say_prose("What it would have changed is unknown: no other calls are on record.")
        return
    allowed = len(effect.allowed)
    say_prose(
        f"{allowed or 'None'} of the last {format_count(effect.calls, 'call')} would have run without asking"
        f"{':' if allowed else '.'}"
    )
    lines = Counter(effect.allowed)
    for line, times in lines.most_common(MAX_LINES):
        say_foreign(line + (f"  ({times} times)" if times > 1 else ""), "  ", "> ")
    if len(lines) > MAX_LINES:
        say(f"  and {len(lines) - MAX_LINES} more")
    if effect.unclear:
        say_prose(
            f"For {format_count(effect.unclear, 'more call')} this cannot be told, because the line about it is cut "
            "short, masks a secret or does not show every argument."
        )
