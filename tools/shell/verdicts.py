"""What can be said of a part of a line: it reads, it builds, or the user has to approve it for a reason."""

from enum import StrEnum


class CommandKind(StrEnum):
    READS = "reads"
    BUILDS = "builds"
    """It builds, tests, runs the project's own code or writes in the workspace."""
    ASKED = "asked"


class NeedsApproval(Exception):
    """A part of the line needs the user's approval; the text is the reason, as the question shows it."""
