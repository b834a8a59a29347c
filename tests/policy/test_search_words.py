"""Is the word list read as it is written, and is it about words that a search looks at?"""

from pathlib import Path

from mcp_server.policy.search_words import STOP_WORDS, parse_related
from mcp_server.policy.stems import stem

LIST = Path(__file__).parents[2] / "menus" / "search_words.txt"


def test_a_group_works_in_every_direction_and_an_arrow_in_one() -> None:
    text = "# comment\n\n  big large\nphone > screen size\n"
    assert parse_related(text) == ((("big", "large"), ("big", "large")), (("phone",), ("screen", "size")))


def test_every_line_says_something() -> None:
    for words, meanings in parse_related(LIST.read_text()):
        assert words, meanings
        assert {stem(word) for word in meanings} - {stem(words[0])}, words
        assert all(word == word.lower() and word.isalnum() for word in (*words, *meanings)), words


def test_no_word_that_a_search_leaves_out_is_in_the_list() -> None:
    listed = {word for line in parse_related(LIST.read_text()) for part in line for word in part}
    assert listed & STOP_WORDS == set()
