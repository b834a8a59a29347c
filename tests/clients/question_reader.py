"""Which arguments does the text of a question show? Read as a person reads it who knows only how it is quoted."""

import json
import re
from typing import Any

STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
NOTE = re.compile(r"^    \(mixes alphabets: .*\)\n?", re.MULTILINE)
"""A line of menugate's about the argument above. Every line of a text begins with a quote, or with a mark."""
MARK = re.compile(r"\[secret, (\d+) characters\]")


class QuestionReader:
    """Reads arguments back from a question's lines, knowing nothing but the rule for quotes and marks."""

    def __init__(self, text: str, secret: str = "") -> None:
        self.text, self.at = NOTE.sub("", text), 0
        self.secret = secret
        """What stands behind each mark."""

    def skip(self) -> None:
        while self.text[self.at : self.at + 1] in (" ", "\n"):
            self.at += 1

    def take(self, sign: str) -> bool:
        self.skip()
        found = self.text.startswith(sign, self.at)
        self.at += len(sign) if found else 0
        return found

    def read_arguments(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self.skip()
        while self.at < len(self.text):
            name = self.read_text()
            assert name not in found and self.take(":")
            found[name] = self.read_value()
            self.skip()
        return found

    def read_value(self) -> Any:
        self.skip()
        if self.text[self.at] == '"' or MARK.match(self.text, self.at):
            return self.read_text()
        if self.take("["):
            items: list[Any] = []
            while not self.take("]"):
                items.append(self.read_value())
                self.take(",")
            return items
        if self.take("{"):
            entries: dict[str, Any] = {}
            while not self.take("}"):
                key = self.read_text()
                assert self.take(":")
                entries[key] = self.read_value()
                self.take(",")
            return entries
        value, self.at = json.JSONDecoder().raw_decode(self.text, self.at)
        return value

    def read_text(self) -> str:
        """Read the pieces of one text; what a colon follows is the next name, unless it is all there is."""
        pieces: list[str] = []
        while True:
            self.skip()
            piece = STRING.match(self.text, self.at) or MARK.match(self.text, self.at)
            if piece is None or (pieces and self._begins_line(piece.start())):
                return "".join(pieces)
            self.at = piece.end()
            if piece[0].startswith('"'):
                pieces.append(json.loads(piece[0]))
            else:
                assert piece[1] == str(len(self.secret))
                pieces.append(self.secret)

    def _begins_line(self, at: int) -> bool:
        """A name stands two spaces from the left, and the lines of a text four."""
        return self.text[max(0, at - 3) : at] == "\n  "
