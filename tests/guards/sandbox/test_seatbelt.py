"""Does a profile for macOS end with what is forbidden, in words that no name can break out of?"""

from typing import Any

from mcp_server.guards.sandbox.access import ChildAccess
from mcp_server.guards.sandbox.seatbelt import render_seatbelt_profile

PRIVATE = "/private/tmp/x"


def access(**about: Any) -> ChildAccess:
    nothing: dict[str, Any] = dict.fromkeys(
        ("emptied", "lent", "caches", "guarded", "held", "pinned", "entrusted", "hidden"), ()
    )
    given: dict[str, Any] = {"workspace": "/work", "folder": "/work", "writable": True, "network": False}
    return ChildAccess(**{**given, **nothing, **about})


def last_rule_about(profile: str, path: str, what: str) -> str:
    lines = [line for line in profile.splitlines() if what in line and f'"{path}"' in line]
    return lines[-1].split(" ")[0] if lines else ""


def test_writing_is_denied_but_for_the_workspace_and_its_own_folder() -> None:
    profile = render_seatbelt_profile(access(), PRIVATE)
    assert "(deny file-write*)" in profile.splitlines()
    assert last_rule_about(profile, "/work", "file-write*") == "(allow"
    assert last_rule_about(profile, PRIVATE, "file-write*") == "(allow"
    assert "(deny network*)" in profile.splitlines()


def test_who_may_only_read_writes_nowhere_in_the_workspace() -> None:
    profile = render_seatbelt_profile(access(writable=False), PRIVATE)
    assert last_rule_about(profile, "/work", "file-write*") == ""


def test_what_is_guarded_inside_of_the_workspace_comes_after_it() -> None:
    profile = render_seatbelt_profile(
        access(guarded=("/work/.git",), held=("/work/.git/objects",), hidden=("/work/.env",)), PRIVATE
    )
    lines = profile.splitlines()
    opened = next(place for place, line in enumerate(lines) if line.startswith("(allow file-write*"))
    guarded = next(place for place, line in enumerate(lines) if '(subpath "/work/.git")' in line)
    inner = next(place for place, line in enumerate(lines) if '(subpath "/work/.git/objects")' in line)
    assert opened < guarded < inner
    assert last_rule_about(profile, "/work/.env", "file-read*") == "(deny"


def test_no_name_ends_its_own_quotes() -> None:
    profile = render_seatbelt_profile(access(guarded=('/work/a") (allow file-write*) ("',)), PRIVATE)
    assert '(subpath "/work/a\\") (allow file-write*) (\\"")' in profile
