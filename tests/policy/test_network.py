"""Which of the operator's lists decides about a host?"""

import pytest

from mcp_server.model.destinations import ALL_PORTS, parse_destinations
from mcp_server.model.policy import Verdict
from mcp_server.model.web_access import WebAccess
from mcp_server.policy.network import judge_host

WEB = WebAccess(
    allow=parse_destinations(["docs.example", "*.shared.example"], ALL_PORTS),
    deny=parse_destinations(["*.shared.example", "bad.example"], ALL_PORTS),
    ask=parse_destinations(["*", "bad.example"], ALL_PORTS),
)


@pytest.mark.parametrize(
    ("host", "verdict"),
    [
        ("docs.example", Verdict.ALLOW),
        ("bad.example", Verdict.DENY),
        ("a.shared.example", Verdict.DENY),
        ("elsewhere.example", Verdict.ASK),
    ],
)
def test_the_strictest_list_that_names_it_decides(host: str, verdict: Verdict) -> None:
    assert judge_host(WEB, host, 443) is verdict


def test_a_host_that_no_list_names_is_left_to_the_profile() -> None:
    assert judge_host(WebAccess(), "docs.example", 443) is None
