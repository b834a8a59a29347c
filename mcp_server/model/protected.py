"""Which paths need the user's approval, and what does the question say?"""

from mcp_server.model.text import escape_name

# `model.files` is imported in the functions because only calls need it; at the top, it would slow down every start.


def describe_read_risk(path: str) -> str | None:
    """Say why reading this path needs the user's approval; None if it needs none."""
    from mcp_server.model.files import is_secret

    return (
        f"`{escape_name(path)}` usually holds passwords or keys, which the model would see."
        if is_secret(path)
        else None
    )


def describe_change_risk(*paths: str) -> str | None:
    """Say why changing these paths needs the user's approval; None if it needs none."""
    from mcp_server.model.files import is_protected

    for path in paths:
        if is_protected(path):
            return f"`{escape_name(path)}` decides what other programs run, even after this session."
    return next((why for path in paths if (why := describe_read_risk(path))), None)


def describe_move_risk(source: str, destination: str) -> str | None:
    """Say why this move needs the user's approval; None if it needs none."""
    from mcp_server.model.files import is_installed

    if is_installed(destination) and not is_installed(source):
        shown = escape_name(destination)
        return f"`{shown}` is in a folder of installed packages, where secrets are not hidden from commands."
    return describe_change_risk(source, destination)
