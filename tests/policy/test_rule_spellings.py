"""Is a pattern known that was written as a list, a sentence or a regular expression, and every other left alone?"""

import pytest

from mcp_server.policy.rule_spellings import describe_misspelling


@pytest.mark.parametrize(
    ("text", "command", "message"),
    [
        ("src/**, docs/**", False, "`src/**`"),
        ("git push:* or git pull:*", True, "`git push:*`"),
        ("^src/.*", False, "`src/"),
        ("“git push”:*", True, "use straight quotes"),
        ("src/\u200b**", False, "it contains the invisible character U+200B; did you mean `src/**`?"),
        ("src/**) and Write(docs/**", False, "a rule names one tool"),
        ("file:///etc/passwd", False, "`/etc/passwd`"),
        ("src/[a-z", False, "["),
        ("path: src/**", False, "`src/**`"),
        ("everything except docs/**", False, "docs/**"),
    ],
)
def test_each_is_said_with_the_spelling_that_speaks(text: str, command: bool, message: str) -> None:
    assert message in (describe_misspelling(text, command) or "")


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("src/**", False),
        ("{a,b}/**", False),
        ("salt and pepper.md", False),
        ("a, b.md", False),
        ("[ab]*.py", False),
        ("git push:*", True),
        ("git commit -m 'a, b'", True),
        ("npm run build", True),
    ],
)
def test_what_a_call_can_have_is_left_alone(text: str, command: bool) -> None:
    assert describe_misspelling(text, command) is None
