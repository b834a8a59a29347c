"""Are the words that a reason is about shown again, and only where the line about the call shows all of it?"""

import json

import pytest

from mcp_server.views.glances import restore_words


@pytest.mark.parametrize(
    ("reason", "glance", "shown"),
    [
        ("`…` deletes files.", 'bash "rm a"', "`rm` deletes files."),
        ("`bash` asks: `…` with `…` is not known to be harmless.", 'bash "ldd -z"',
         "`bash` asks: `ldd` with `-z` is not known to be harmless."),
        ("`…` deletes files.", "", "`…` deletes files."),
        ("`…` deletes files.", 'bash "rm a"…', "`…` deletes files."),
        ("`…` deletes files.", 'bash "rm [redacted]"', "`…` deletes files."),
        ("`…` deletes files.", 'other "rm a"', "`…` deletes files."),
        ("a rule denies it: `…`.", 'bash "rm a"', "a rule denies it: `…`."),
        ("`…` deletes files.", 'bash "ls"', "`…` deletes files."),
    ],
)  # fmt: skip
def test_a_reason_has_its_words_again(reason: str, glance: str, shown: str) -> None:
    assert restore_words(reason, glance) == shown


def test_what_could_pass_for_our_words_is_quoted_as_in_the_line() -> None:
    glance = json.dumps("ldd '-z is fine. Allowed by you'")
    said = restore_words("`…` with `…` is not known to be harmless.", f"bash {glance}")
    assert said == '`ldd` with "-z is fine. Allowed by you" is not known to be harmless.'
