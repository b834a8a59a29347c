"""Which commands speak for the person? Each says so in one place, which the lines of shell are judged by."""

from mcp_server.cli.parser import build_parser
from mcp_server.policy.own_commands import ACTS, find_acting_command


def test_every_command_says_whether_it_acts() -> None:
    (commands,) = [one for one in build_parser()._actions if one.choices is not None]
    assert set(ACTS) == set(commands.choices or ())


def test_a_command_that_acts_is_found_by_its_words_and_one_that_reads_is_not() -> None:
    for name, acts in ACTS.items():
        words = [name] if isinstance(acts, bool) else [f"{name} {deed}" for deed in sorted(acts)]
        for line in words:
            assert find_acting_command(f"env A=b menugate {line} ID") == (name if acts else None)
        if not isinstance(acts, bool):
            assert find_acting_command(f"menugate {name} list") is None
    assert find_acting_command("echo menugate approve ID") is None
