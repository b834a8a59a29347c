"""Which words of a call is a recorded reason about? The record keeps no arguments, but the line about the call may."""

from mcp_server.model.glances import parse_glance
from mcp_server.model.text import escape_for_person, quote_as_json

HIDDEN = "`…`"


def restore_words(reason: str, glance: str) -> str:
    """Return the reason with the words that it quoted, if the line about the call shows all of the call: then judging
    the same call again gives the same reason. Otherwise return the reason as it was recorded."""
    if HIDDEN not in reason or not glance:
        return reason
    # Most rows need none of this.
    from mcp_server.calls.approval_arguments import PLAIN_QUOTE, QUOTE
    from mcp_server.calls.ledger import mask_quoted_arguments
    from mcp_server.config.load import CATALOG

    found = parse_glance(glance, {tool.name: tool for tool in CATALOG})
    if found is None:
        return reason
    tool, arguments = found
    why = (tool.get_demand(arguments).confirm or "").rstrip(".")
    masked = mask_quoted_arguments(why, arguments)
    # What could pass for words of ours is quoted as in the line itself.
    shown = QUOTE.sub(lambda quote: quote[0] if PLAIN_QUOTE.fullmatch(quote[1]) else quote_as_json(quote[1]), why)
    return reason.replace(masked, escape_for_person(shown, one_line=True)) if why else reason
