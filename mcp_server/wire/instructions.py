"""What does a host tell its model about us? A few lines, generated from the menus, at most 2 KB.

Some hosts show no more than the first 240 characters, and of a tool's description the first 150. What a model would
look for stands there: the name of every mode, and of the words it answers to as many as fit.
"""

from mcp_server.model.menus import Menus, Mode

MOST_BYTES = 2048
SHOWN_OF_INSTRUCTIONS = 240
SHOWN_OF_A_DESCRIPTION = 150


def format_instructions(head: str, tail: str, menus: Menus, pinned: Mode | None) -> str:
    if pinned is not None:
        text = f"{pinned.title}. {pinned.description} Tools: {', '.join(pinned.tools)}."
        return cut_to_limit(text)
    first = f"{head.strip()} "
    first += format_mode_words(menus, SHOWN_OF_INSTRUCTIONS - len(first))
    lines = "\n".join(f"- {mode.name}: {mode.title}, {mode.when}" for mode in menus)
    return cut_to_limit(f"{first}\n{lines}\n{tail.strip()}")


def describe_menu_enter(begins: str, menus: Menus) -> str:
    """What `menu_enter` says of itself: a model does not look behind a door it knows nothing about."""
    every = begins + "; ".join(f"{mode.name} {mode.when}" for mode in menus) + "."
    if len(every) <= SHOWN_OF_A_DESCRIPTION:
        return every
    return f"{begins}{format_mode_words(menus, SHOWN_OF_A_DESCRIPTION - len(begins))} {every.removeprefix(begins)}"


def format_mode_words(menus: Menus, most: int) -> str:
    """Every mode with the words it answers to: first the names, then one word more for each in turn, while they fit."""
    words = {mode.name: list[str]() for mode in menus}
    # A mode whose word does not fit gets none after it either: the first ones are the best.
    growing = {mode.name: mode.triggers for mode in menus}
    while growing:
        for name, triggers in tuple(growing.items()):
            turn = len(words[name])
            words[name].extend(triggers[turn : turn + 1])
            if len(words[name]) == turn or len(_format_words(words)) > most:
                del words[name][turn:], growing[name]
    return _format_words(words)


def _format_words(words: dict[str, list[str]]) -> str:
    return ", ".join(f"{name} ({', '.join(some)})" if some else name for name, some in words.items()) + "."


def cut_to_limit(text: str) -> str:
    """Never more than hosts take; menus that need more are found by `menugate check` before anybody sees this."""
    data = text.encode()
    return text if len(data) <= MOST_BYTES else data[: MOST_BYTES - 3].decode("utf-8", "ignore") + "…"
