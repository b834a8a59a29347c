"""Which host does this URL name, and what is asked of it? Read once, so that what was judged is what is requested.

Programs disagree about backslashes, control characters and user names in URLs, so a URL that contains any is refused.
Letters outside ASCII are encoded: the host as in DNS, the rest as percent-encoded UTF-8.
"""

import re
from urllib.parse import quote, unquote_to_bytes, urljoin

from msgspec import Struct

from mcp_server.model.destinations import normalize_host_name, parse_address

PORTS = {"http": 80, "https": 443}
MAX_CHARS = 8192
PARTS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<target>[^#]*)(?:#.*)?", re.DOTALL)
AUTHORITY = re.compile(r"(?P<host>\[[^\]]*\]|[^:\[\]]*)(?::(?P<port>[0-9]{0,5}))?")
AMBIGUOUS = re.compile(r"[\x00-\x1f\x7f-\x9f\\\u2028\u2029\ud800-\udfff]")
KEPT = "/?!$&'()*+,;=:@%-._~[]"
"""Characters of a path or query that are sent as they are. `%` begins a character that is already encoded."""


class BadWebAddress(ValueError):
    """Not an address that may be fetched. The message says why without quoting the URL, and `way_out` what to do."""

    def __init__(self, message: str, way_out: str = "Write it as https://host/path.") -> None:
        super().__init__(message)
        self.way_out = way_out


class WebAddress(Struct, frozen=True):
    scheme: str
    host: str
    """A name as in DNS, in lower case, or an address in its usual spelling."""
    port: int
    target: str
    """Path and query, in ASCII."""

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"

    @property
    def url(self) -> str:
        return f"{self.origin}{self.target}"

    def join(self, reference: str) -> "WebAddress":
        """Return where a link or redirect on this page leads."""
        try:
            return parse_web_address(urljoin(self.url, reference.strip()))
        except ValueError as error:
            raise error if isinstance(error, BadWebAddress) else BadWebAddress("The URL cannot be read.") from None


def parse_web_address(url: str) -> WebAddress:
    url = url.strip(" \t\r\n")
    if len(url) > MAX_CHARS:
        raise BadWebAddress(f"The URL is longer than {MAX_CHARS} characters.", "Use a shorter one.")
    if AMBIGUOUS.search(url):
        raise BadWebAddress("The URL contains a backslash or a control character.", "Percent-encode it.")
    parts = PARTS.fullmatch(url)
    scheme = parts["scheme"].lower() if parts else ""
    if parts is None or scheme not in PORTS:
        raise BadWebAddress("This is not a web address.", "Give one that begins with http:// or https://.")
    if "@" in parts["authority"]:
        raise BadWebAddress("The URL contains a user name or password.", "Leave out everything before the `@`.")
    host, port = _parse_authority(parts["authority"], PORTS[scheme])
    # Our HTTP library does not send the `?` of an empty query.
    path, _, query = quote(parts["target"], safe=KEPT).partition("?")
    target = f"{path}?{query}" if query else path
    return WebAddress(scheme, host, port, target if target.startswith("/") else f"/{target}")


def _parse_authority(authority: str, default_port: int) -> tuple[str, int]:
    match = AUTHORITY.fullmatch(authority)
    host = parse_host(match["host"]) if match else None
    if match is None or host is None:
        raise BadWebAddress("The URL names no host.", "Give a host name, or an address in its usual notation.")
    port = int(match["port"]) if match["port"] else default_port
    if not 0 < port < 65536:
        raise BadWebAddress("The URL has an invalid port; ports go from 1 to 65535.", "Correct or leave out the port.")
    return host, port


def parse_host(text: str) -> str | None:
    """Return the host of a URL in the one spelling used for comparison; None if it is none."""
    if text.startswith("["):
        inside = parse_address(text[1:-1])
        return str(inside) if inside is not None and inside.version == 6 else None
    try:
        # As in a browser: the name may be percent-encoded, once.
        text = unquote_to_bytes(text).decode() if "%" in text else text
    except UnicodeDecodeError:
        return None
    address = parse_address(text)
    if address is not None:
        return str(address) if address.version == 4 else None
    return normalize_host_name(text)
