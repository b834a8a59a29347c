"""What does a host tell its model about us? A few lines, generated from the menus, at most 2 KB.

The first 240 characters carry the words a model would search for: some hosts show no more than that.
"""

from mcp_server.model.menu import Menus, Mode

MOST_BYTES = 2048


def instructions(head: str, tail: str, menus: Menus, pinned: Mode | None) -> str:
    if pinned is not None:
        text = f"{pinned.title}. {pinned.description} Tools: {', '.join(pinned.tools)}."
        return cut(text)
    lines = "\n".join(f"- {mode.name}: {mode.title}, {mode.when}" for mode in menus)
    return cut(f"{head.strip()}\n{lines}\n{tail.strip()}")


def cut(text: str) -> str:
    """Never more than hosts take; menus that need more are found by `menugate check` before anybody sees this."""
    data = text.encode()
    return text if len(data) <= MOST_BYTES else data[: MOST_BYTES - 3].decode("utf-8", "ignore") + "…"
