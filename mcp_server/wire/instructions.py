"""What does a host tell its model about menugate? A few lines, generated from the menus, at most 2 KB.

Some hosts show only the first 240 characters, and 150 of a tool's description. So what a model looks for comes first:
the name of every mode, with as many of its trigger words as fit.
"""

from msgspec.structs import replace

from mcp_server.calls.policy import CurrentPolicy
from mcp_server.config.load import Configuration
from mcp_server.model.menus import Menus, Mode

MAX_BYTES = 2048
SHOWN_OF_INSTRUCTIONS = 240
SHOWN_OF_A_DESCRIPTION = 150
"""Characters that every host shows."""


def format_endpoint_instructions(configuration: Configuration, pinned: str | None) -> str:
    """The instructions of the main endpoint, or of the one that serves a single mode."""
    render, menus = configuration.words.render_prompt, configuration.policy.menus
    return format_instructions(
        render("instructions/head"), render("instructions/tail"), menus, menus.by_name.get(pinned)
    )


def format_current_instructions(configuration: Configuration, current: CurrentPolicy, pinned: str | None) -> str:
    """Servers that you add while menugate runs bring modes of their own."""
    return format_endpoint_instructions(replace(configuration, policy=current.policy), pinned)


def format_instructions(head: str, tail: str, menus: Menus, pinned: Mode | None) -> str:
    if pinned is not None:
        text = f"{pinned.title}. {pinned.description} Tools: {', '.join(pinned.tools)}."
        return cut_to_limit(text)
    first = f"{head.strip()} "
    first += format_mode_words(menus, SHOWN_OF_INSTRUCTIONS - len(first))
    lines = "\n".join(f"- {mode.name}: {mode.title}, {mode.when}" for mode in menus)
    return cut_to_limit(f"{first}\n{lines}\n{tail.strip()}")


def describe_menu_enter(start: str, menus: Menus) -> str:
    """Describe `menu_enter` by the modes it leads to: a model does not enter a mode it knows nothing about."""
    description = start + "; ".join(f"{mode.name} {mode.when}" for mode in menus) + "."
    if len(description) <= SHOWN_OF_A_DESCRIPTION:
        return description
    return f"{start}{format_mode_words(menus, SHOWN_OF_A_DESCRIPTION - len(start))} {description.removeprefix(start)}"


def format_mode_words(menus: Menus, limit: int) -> str:
    """List every mode with its trigger words: first the names, then one more word for each in turn, while they fit."""
    words = {mode.name: list[str]() for mode in menus}
    # Once a word of a mode does not fit, add none of its later ones: the first ones are the best.
    growing = {mode.name: mode.triggers for mode in menus}
    while growing:
        for name, triggers in tuple(growing.items()):
            count = len(words[name])
            words[name].extend(triggers[count : count + 1])
            if len(words[name]) == count or len(_format_words(words)) > limit:
                del words[name][count:], growing[name]
    return _format_words(words)


def _format_words(words: dict[str, list[str]]) -> str:
    return ", ".join(f"{name} ({', '.join(some)})" if some else name for name, some in words.items()) + "."


def cut_to_limit(text: str) -> str:
    """Never send more than hosts accept. `menugate check` finds menus that need more beforehand."""
    data = text.encode()
    return text if len(data) <= MAX_BYTES else data[: MAX_BYTES - 3].decode("utf-8", "ignore") + "…"
