"""What is put into the words? Exactly four variables, in one pass: what a value says is never read as a variable."""

import re
from collections.abc import Mapping

VARIABLES = ("project_root", "user_input", "tool_summary", "last_step_outcome")
HOLE = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)


def names_in(text: str) -> tuple[str, ...]:
    """The variables a text asks for, each once, in the order in which they come."""
    return tuple(dict.fromkeys(HOLE.findall(text)))


def unknown_in(text: str) -> tuple[str, ...]:
    return tuple(name for name in names_in(text) if name not in VARIABLES)


def missing_in(text: str, values: Mapping[str, str]) -> tuple[str, ...]:
    """What the text asks for and nobody gave, or gave empty: a sentence with a hole in it misleads."""
    return tuple(name for name in names_in(text) if not values.get(name, "").strip())


def filled(text: str, values: Mapping[str, str]) -> str:
    """For a text whose variables are known and given."""
    return HOLE.sub(lambda hole: values[hole[1]], text)
