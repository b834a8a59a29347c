"""What a person decides at the terminal: the axes of the posture, when they change, and whether all is in order."""

from mcp_server.cli.command import Commands
from mcp_server.cli.posture import choosing, doctor, steering

__all__ = ["add"]


def add(commands: Commands) -> None:
    for part in (choosing, steering, doctor):
        part.add(commands)
