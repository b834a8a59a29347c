"""Which URLs does a rule's specifier name? `domain:*.python.org` names hosts; anything else is a pattern for the URL.

Both are compared with the URL as it would be requested, so another spelling of the host makes no difference.
"""

from mcp_server.model.destinations import ALL_PORTS, parse_destination
from mcp_server.model.text import quote_text
from mcp_server.model.web_address import BadWebAddress, WebAddress, parse_web_address
from mcp_server.policy.globs import Impossible, Text, compile_text_glob

DOMAIN = "domain:"


def compile_url_pattern(specifier: str, cautious: bool) -> Text:
    """The test answers None for a URL that cannot be read: then a rule that narrows holds, and no other."""
    if specifier.startswith(DOMAIN):
        return _compile_domain(specifier.removeprefix(DOMAIN).strip())
    if not specifier.startswith(("http://", "https://", "*")):
        name = specifier.partition("/")[0]
        raise Impossible(f"it can never match a URL; did you mean {quote_text(DOMAIN + name)}?")
    matches = compile_text_glob(specifier, cautious)
    return lambda text: None if (address := _read_address(text)) is None else matches(address.url)


def _compile_domain(entry: str) -> Text:
    try:
        destination = parse_destination(entry, ALL_PORTS)
    except ValueError as fault:
        raise Impossible(f"{quote_text(entry)} {fault}.") from None

    def is_there(text: str) -> bool | None:
        address = _read_address(text)
        return None if address is None else destination.has_host(address.host, address.port)

    return is_there


def _read_address(text: str) -> WebAddress | None:
    try:
        return parse_web_address(text)
    except BadWebAddress:
        return None
