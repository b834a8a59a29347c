"""Does a form show the same as plain text and as Markdown?"""

import re

import pytest
from markdown_it import MarkdownIt

from mcp_server.calls.form_text import WIDTH, fence_text, fold_line
from tests.clients.question_reader import QuestionReader

SIGNS = (
    "```",
    "~~~",
    "<!--",
    "-->",
    "[x](<http://x>)",
    "![](x)",
    "# x",
    "> x",
    "| a | b |",
    "    x",
    "- x",
    "$$",
    "`" * 40,
)
TEXTS = ("a" * 400, "word " * 90, "\\n" * 120, "\\u00e9" * 60, "\\ud83d\\udc69" * 30, "e\u0301" * 150)


@pytest.mark.parametrize("sign", SIGNS)
def test_no_sign_of_markdown_is_obeyed_in_a_form(sign: str) -> None:
    command = f'    "{sign}\\n"\n    "rm -rf src # {sign}{" x" * 100}"'
    question = f'Why: `{sign[:2]}`\nArguments:\n  "command":\n{command}\n  "b": "{sign}"'
    (block,) = MarkdownIt().parse(fence_text(question))
    assert block.type == "fence"
    assert "".join(block.content.split()).replace('""', "") == "".join(question.split()).replace('""', "")


@pytest.mark.parametrize("text", TEXTS)
def test_a_long_text_is_folded_between_characters(text: str) -> None:
    lines = list(fold_line(f'  "command": "{text}"'))
    assert len(lines) > 1 and max(map(len, lines)) <= WIDTH + 1
    assert not any(re.search('"[\u0301]', line) for line in lines)
    pieces = QuestionReader("\n".join(lines)).read_arguments()
    assert pieces == QuestionReader(f'"command": "{text}"').read_arguments()


def test_our_own_long_sentence_is_folded_between_words() -> None:
    sentence = "Why: " + "because of this " * 20
    lines = list(fold_line(sentence))
    assert " ".join(line.strip() for line in lines) == sentence.strip()
    assert max(map(len, lines)) <= WIDTH
