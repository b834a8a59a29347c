"""Which tools does a session see? Those that the decision, asked without arguments, does not refuse."""

from mcp_server.model.menus import META_TOOLS
from mcp_server.model.policy import Call, Policy, Verdict
from mcp_server.model.posture import Posture
from mcp_server.model.sessions import Session
from mcp_server.policy.decision import decide

ANYWHERE = Session(id="", principal="", flat=True)
"""Nobody in particular, who stands in every mode at once."""


def visible(session: Session, posture: Posture, policy: Policy) -> tuple[str, ...]:
    """The meta-tools first, then those of the session's mode (of every mode, where all are shown), in menu order."""
    mode = policy.menus.get(session.mode)
    modes = policy.menus if session.flat else (mode,) if mode else ()
    names = dict.fromkeys((*META_TOOLS, *(tool for mode in modes for tool in mode.tools)))
    return tuple(name for name in names if _seen(name, session, posture, policy))


def flat(posture: Posture, policy: Policy) -> tuple[str, ...]:
    """Every tool that the posture allows in some mode, in menu order, for hosts that search tools by themselves."""
    return visible(ANYWHERE, posture, policy)


def _seen(name: str, session: Session, posture: Posture, policy: Policy) -> bool:
    return decide(policy.tools.get(name), Call(name), session, posture, policy).verdict is not Verdict.DENY
