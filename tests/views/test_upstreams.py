"""Does the list of servers say the most important thing about each?"""

import re
from pathlib import Path

import pytest

from mcp_server.model.upstreams import Catalogue, Mount, StdioTarget
from mcp_server.policy.upstream_pins import UpstreamApproval, approve_catalogue, compute_mount_digest, judge_catalogue
from mcp_server.views.upstreams import MEANING, ApprovalState, find_state

MOUNT = Mount("sums", "sums", StdioTarget(("sums",)))
MOVED = Mount("sums", "sums", StdioTarget(("sums", "--other")))
OFF = Mount("sums", "sums", StdioTarget(("sums",)), disabled=True)
ADD, SUB = {"name": "add"}, {"name": "sub"}
ONE, TWO, OTHER = Catalogue(tools=(ADD,)), Catalogue(tools=(ADD, SUB)), Catalogue(tools=({**ADD, "title": "Add"},))
YES = approve_catalogue(compute_mount_digest(MOUNT), ONE, 1)


@pytest.mark.parametrize(
    ("mount", "catalogue", "approval", "state"),
    [
        (MOUNT, ONE, YES, ApprovalState.APPROVED),
        (MOUNT, Catalogue(), YES, ApprovalState.APPROVED),
        (MOUNT, Catalogue(tools=(ADD, ADD)), YES, ApprovalState.APPROVED),
        (MOUNT, TWO, YES, ApprovalState.CHANGED),
        (MOUNT, OTHER, YES, ApprovalState.CHANGED),
        (MOVED, ONE, YES, ApprovalState.MOVED),
        (MOVED, Catalogue(), YES, ApprovalState.MOVED),
        (MOUNT, ONE, None, ApprovalState.UNAPPROVED),
        (MOUNT, Catalogue(), None, ApprovalState.UNAPPROVED),
        (OFF, ONE, YES, ApprovalState.DISABLED),
        (OFF, ONE, None, ApprovalState.DISABLED),
    ],
)
def test_a_state_says_what_you_have_to_know_first(
    mount: Mount, catalogue: Catalogue, approval: UpstreamApproval | None, state: ApprovalState
) -> None:
    judged = judge_catalogue(compute_mount_digest(mount), catalogue, approval, mount.changes)
    assert find_state(mount, approval, judged) is state


def test_every_state_has_a_meaning_and_is_on_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "upstreams.md").read_text()
    row = next(line for line in page.splitlines() if line.startswith("| state |"))
    assert set(re.findall(r"`([^`]+)`", row)) == set(MEANING) == {str(state) for state in ApprovalState}
