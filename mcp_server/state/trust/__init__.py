"""Whom does the person trust? Kept outside of every workspace, sealed with the person's own key."""

from mcp_server.state.trust.folders import Trusted

__all__ = ["Trusted"]
