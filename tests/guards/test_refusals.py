"""Does a caller read what the disk refused, and what to do, in words that can be sent?"""

import errno
import os

import pytest

from mcp_server.guards import refusals
from mcp_server.model.results import Code, Refusal


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOENT, Code.NOT_FOUND),
        (errno.ENOTDIR, Code.NOT_FOUND),
        (errno.EISDIR, Code.PATH_REFUSED),
        (errno.EEXIST, Code.ALREADY_EXISTS),
        (errno.EXDEV, Code.PATH_REFUSED),
        (errno.ELOOP, Code.PATH_REFUSED),
        (errno.EACCES, Code.PATH_REFUSED),
        (errno.ENOSPC, Code.TOOL_FAILED),
        (errno.EIO, Code.TOOL_FAILED),
    ],
)
def test_every_error_of_the_system_is_a_refusal(number: int, code: Code) -> None:
    refusal = refusals.build_os_refusal(OSError(number, os.strerror(number)), "caf\udce9/a", "/work")
    problem = refusal.problem
    assert problem.code is code
    problem.text.encode()
    assert "/work" not in problem.message


@pytest.mark.parametrize(
    "refusal",
    [
        refusals.build_outside_refusal("../caf\udce9", "/work"),
        refusals.build_private_refusal(".menugate/state.db"),
        refusals.build_installation_refusal("venv/bin/python"),
        refusals.build_file_kind_refusal("pipe", "a named pipe"),
        refusals.build_hardlink_refusal("a", 2),
        refusals.build_dangling_link_refusal("a"),
        refusals.build_unconfirmed_refusal("link", ".env", "usually holds secrets and can be read"),
        refusals.build_not_granted_refusal("This call may only read."),
        refusals.build_stale_refusal("a", "was changed"),
        refusals.build_entry_count_refusal(".", 20_000),
        refusals.build_not_folder_refusal("a"),
        refusals.build_move_refusal(OSError(errno.EINVAL, ""), "a", "a/b"),
        refusals.build_move_refusal(OSError(errno.EXDEV, ""), "a", "/mnt/b"),
    ],
    ids=lambda refusal: refusal.problem.message[:40].encode("ascii", "replace").decode(),
)
def test_each_says_what_to_do_instead(refusal: Refusal) -> None:
    assert refusal.problem.message
    assert refusal.problem.way_out
    refusal.problem.text.encode()


def test_a_link_to_a_secret_is_asked_for_by_its_own_path() -> None:
    problem = refusals.build_unconfirmed_refusal("link", ".env", "is read").problem
    assert "Call again with its real path, `.env`" in (problem.way_out or "")
    problem = refusals.build_unconfirmed_refusal(".env", ".env", "is read").problem
    assert "Call again" not in (problem.way_out or "")
