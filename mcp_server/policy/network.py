"""May a tool reach this host? What the operator's lists say, for the decision and for the guard alike."""

from collections.abc import Iterator, Mapping

from mcp_server.model.policy import Rule, RuleKind, Verdict
from mcp_server.model.tools import Arguments, RuleSubject, Tool
from mcp_server.model.web_access import WebAccess
from mcp_server.model.web_address import BadWebAddress, WebAddress, parse_web_address
from mcp_server.policy.rule_match import get_subjects

SOURCE = "menugate.yaml"
LISTED = "the host is on the operator's list of hosts that"


def judge_host(web: WebAccess, host: str, port: int) -> Verdict | None:
    """Return what the lists say; None if none of them names the host."""
    lists = ((Verdict.DENY, web.deny), (Verdict.ASK, web.ask), (Verdict.ALLOW, web.allow))
    for is_catch_all in (False, True):
        for verdict, listed in lists:
            if any((one.name == "*") is is_catch_all and one.has_host(host, port) for one in listed.every):
                return verdict
    return None


def build_web_rules(web: WebAccess, tools: Mapping[str, Tool]) -> Iterator[Rule]:
    """Build the rules by which the lists decide calls that name a URL, so that the user is asked before the call."""
    able = frozenset(tool.name for tool in tools.values() if tool.subject and tool.subject[1] is RuleSubject.URL)
    if able and web.deny.every:
        yield _build_rule(web, RuleKind.DENY, Verdict.DENY, able, "tools may not reach")
    if able and web.ask.every:
        yield _build_rule(web, RuleKind.ASK, Verdict.ASK, able, "the user is asked about")


def _build_rule(web: WebAccess, kind: RuleKind, verdict: Verdict, able: frozenset[str], meaning: str) -> Rule:
    def applies(tool: Tool, arguments: Arguments) -> bool:
        return any(judge_host(web, one.host, one.port) is verdict for one in find_named_addresses(tool, arguments))

    return Rule(kind, f"web: {kind}", SOURCE, able.__contains__, applies, reason=f"{LISTED} {meaning}")


def find_named_addresses(tool: Tool, arguments: Arguments) -> Iterator[WebAddress]:
    """Find the addresses that the call itself names, as rules see them. One that cannot be read is never fetched."""
    if tool.subject is None or tool.subject[1] is not RuleSubject.URL:
        return
    for value in get_subjects(tool, arguments):
        if isinstance(value, str):
            try:
                yield parse_web_address(value)
            except BadWebAddress:
                continue
