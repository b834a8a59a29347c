"""What has the operator decided? The file `menugate.yaml`, as one frozen value."""

from mcp_server.library.configured.grammar import BUDGET, CONFIG, KINDS, PROFILES, RULE_LISTS, Approvals
from mcp_server.library.configured.values import Config, budget_in, config_in, rules_in

__all__ = [
    "BUDGET",
    "CONFIG",
    "KINDS",
    "PROFILES",
    "RULE_LISTS",
    "Approvals",
    "Config",
    "budget_in",
    "config_in",
    "rules_in",
]
