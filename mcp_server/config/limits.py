"""How high may a principal's profile go, and which posture applies before you choose one?

A command that changes the posture needs only this, so it is read without menus, prompts, rules and tools.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from mcp_server.model.posture import Posture, PostureChange, PostureChoice, Profile
from mcp_server.model.results import Code, Problem
from mcp_server.settings import OPERATORS_FILE, Settings

if TYPE_CHECKING:
    from mcp_server.config.operator import OperatorConfig


class Limits(Struct, frozen=True):
    posture: Posture = field(default_factory=Posture)
    """The posture before any choice; never above the ceiling."""
    start_profile: Profile = Profile.NORMAL
    """The profile that an option or the operator's file says to start with, even if it is above the ceiling."""
    ceiling: Profile = Profile.UNRESTRICTED
    ceilings: Mapping[str, Profile] = field(default_factory=dict[str, Profile])
    """The ceilings of principals with a token."""
    set_by: str = ""
    """Which setting the ceiling comes from."""

    def get_ceiling(self, principal: str) -> Profile:
        """The highest profile that this principal can have."""
        return get_lower_profile(self.ceiling, self.ceilings.get(principal))

    def apply_choice(self, principal: str, choice: PostureChoice | None) -> Posture:
        """Apply a choice to the posture to start with, under the ceiling."""
        return (choice.apply_to(self.posture) if choice else self.posture).cap_profile(self.get_ceiling(principal))

    def find_ceiling_problem(self, principal: str, change: PostureChange) -> Problem | None:
        """Say why this principal cannot have the profile in the change; None if it can."""
        wished, ceiling = change.axes.get("profile"), self.get_ceiling(principal)
        if not isinstance(wished, Profile) or ceiling.covers(wished):
            return None
        own = ceiling is not self.ceiling
        by = f"the token of {principal} in the operator's configuration" if own else self.set_by
        return Problem(
            Code.PROFILE_TOO_LOW,
            f"the profile `{wished}` is above the ceiling `{ceiling}`, which is set by {by}.",
            "Nothing was changed. The ceiling can be raised only where it is set; a running server applies changes to "
            "its file.",
        )


def load_limits(settings: Settings) -> Limits | None:
    """Load the limits that the files set; None if a file has faults."""
    operator, own_ceiling = None, Profile.UNRESTRICTED
    own_file = settings.workspace / OPERATORS_FILE
    # Most people have neither file; then nothing that reads YAML is imported.
    if settings.config is not None:
        from mcp_server.config.faults import FaultCollector
        from mcp_server.config.operator import read_operator_config

        findings = FaultCollector()
        operator = read_operator_config(settings.config, findings, tools=None)
        if findings.faults():
            return None
    if settings.config != own_file and own_file.is_file():
        from mcp_server.config.faults import FaultCollector
        from mcp_server.config.workspace import read_workspace_config

        findings = FaultCollector()
        own_ceiling = read_workspace_config(settings.workspace, findings).max_profile
        if findings.faults():
            return None
    return build_limits(settings, operator, own_ceiling)


def build_limits(settings: Settings, operator: "OperatorConfig | None", own_ceiling: Profile) -> Limits:
    """`own_ceiling` is the one in the workspace's own file."""
    usual, written = (operator.posture, operator.max_profile) if operator else (Posture(), Profile.UNRESTRICTED)
    ceiling = get_lower_profile(get_lower_profile(written, settings.max_profile), own_ceiling)
    return Limits(
        (replace(usual, profile=settings.profile) if settings.profile else usual).cap_profile(ceiling),
        settings.profile or usual.profile,
        ceiling,
        {token.principal: token.max_profile for token in operator.tokens} if operator else {},
        describe_ceiling_source(ceiling, written, settings),
    )


def describe_ceiling_source(ceiling: Profile, written: Profile, settings: Settings) -> str:
    """Say which setting limits the profile. `written`: the ceiling in the operator's file."""
    if ceiling is Profile.UNRESTRICTED:
        return "nothing (no limit set)"
    if ceiling is written:
        return f"`max_profile` in {settings.config}"
    if ceiling is settings.max_profile:
        return "`--max-profile` (or MENUGATE_MAX_PROFILE)"
    return f"`max_profile` in {settings.workspace / OPERATORS_FILE}, the workspace's own"


def get_lower_profile(one: Profile, other: Profile | None) -> Profile:
    return other if other is not None and one.covers(other) else one
