"""Does this request carry a secret out? Searches it for the values that menugate knows, in the usual encodings.

What a model wrote into a URL is a way out even if the request only reads. The search ignores case, because host names
have none, and looks behind percent-encoding and JSON escapes. It is no proof: a value that is split or encrypted gets
past any search.
"""

import base64
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from mcp_server.model.network import Request
from mcp_server.model.web_address import WebAddress

MAX_LAYERS = 3
"""How often percent-encoding is removed."""
PERCENT = re.compile(rb"%([0-9a-fA-F]{2})")
ESCAPE = re.compile(rb"\\u00([0-9a-fA-F]{2})")
BREAKS = re.compile(rb"[\s.]")
"""What stands between the parts of a value that was broken into lines, or into the labels of a host name."""


@dataclass
class SecretSearch:
    get_spellings: Callable[[], tuple[str, ...]]
    """Returns the spellings of every secret known by now. More may become known at any time."""
    _compiled_for: tuple[str, ...] = field(default=(), repr=False)
    _pattern: re.Pattern[bytes] | None = field(default=None, repr=False)
    longest: int = 0

    def _compile(self) -> re.Pattern[bytes] | None:
        spellings = self.get_spellings()
        if spellings is not self._compiled_for:
            forms = {spelling.encode("utf-8", "surrogatepass") for spelling in spellings}
            forms |= {base64.b32encode(form).rstrip(b"=") for form in forms}
            known = sorted((form.lower() for form in forms), key=len, reverse=True)
            self._pattern = re.compile(b"|".join(map(re.escape, known))) if known else None
            self._compiled_for, self.longest = spellings, len(known[0]) if known else 0
        return self._pattern

    def is_in_request(self, address: WebAddress, request: Request) -> bool:
        head = "\n".join(
            (address.url, request.url, request.method, *(f"{key}: {value}" for key, value in request.headers))
        )
        return self.is_in(head.encode("utf-8", "surrogatepass")) or self.is_in(request.body)

    def is_in(self, data: bytes) -> bool:
        pattern = self._compile()
        return pattern is not None and any(pattern.search(view) for view in _list_views(data))


def _list_views(data: bytes) -> Iterator[bytes]:
    """Yield the data in the ways in which its reader might understand it."""
    seen = set[bytes]()
    for _ in range(MAX_LAYERS + 1):
        for view in (data, ESCAPE.sub(_decode_byte, data)):
            for plain in (view.lower(), BREAKS.sub(b"", view).lower(), view.replace(b"+", b" ").lower()):
                if plain not in seen:
                    seen.add(plain)
                    yield plain
        if b"%" not in data:
            return
        data = PERCENT.sub(_decode_byte, data)


def _decode_byte(code: re.Match[bytes]) -> bytes:
    return bytes.fromhex(code[1].decode())
