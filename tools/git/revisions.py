"""Which commit, which branch is meant? What a caller wrote never reaches git but to be resolved or checked."""

import re
from difflib import get_close_matches

from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.text import to_one_line
from tools.git.program import GitProgram

RANGE = re.compile(r"(.*?)(\.{2,3})(.*)", re.DOTALL)
UNSPEAKABLE = re.compile(r"[\x00-\x1f\x7f]")
MOST_NEAR = 3


async def resolve_commit(git: GitProgram, name: str) -> str:
    """The commit's whole name."""
    found = await _resolve_revision(git, f"{_check_name(name)}^{{commit}}")
    if found is None:
        raise await _build_unknown_refusal(git, name)
    return found


async def read_head(git: GitProgram) -> str | None:
    """The commit that is checked out, None before the first."""
    return await _resolve_revision(git, "HEAD^{commit}")


async def resolve_comparison(git: GitProgram, target: str) -> tuple[str, ...]:
    """One commit to compare the files with, or the two ends of `A..B` and `A...B` as git takes them."""
    parts = RANGE.fullmatch(target)
    if parts is None:
        return (await resolve_commit(git, target),)
    first, dots, second = parts.groups()
    ends = [await resolve_commit(git, end or "HEAD") for end in (first, second)]
    return (dots.join(ends),)


async def check_branch_name(git: GitProgram, name: str) -> str:
    """The name, if a branch can have it."""
    ran = await git.test("check-ref-format", "--branch", _check_name(name), no=128)
    # `@{-1}` is a way of saying a branch, and none of the names a branch can have.
    if ran.code or ran.out.decode("utf-8", "surrogateescape").rstrip("\n") != name or name in ("HEAD", "@"):
        raise Refusal(
            Problem(
                Code.INVALID_ARGUMENTS,
                f"`{to_one_line(name)}` cannot be the name of a branch.",
                "Use letters, digits, `-`, `_`, `.` and `/`; it does not begin with `-` nor end with `.lock` or `/`.",
            )
        )
    return name


async def find_branch_tip(git: GitProgram, name: str, under: str = "refs/heads/") -> str | None:
    """The commit at the end of the branch of that name, None where there is no such branch."""
    return await _resolve_revision(git, f"{under}{name}^{{commit}}")


async def describe_nearest_names(git: GitProgram, name: str) -> str:
    """Branches and tags that may have been meant, as the end of a sentence."""
    listed = await git.read("for-each-ref", "--format=%(refname:short)", "--count=2000")
    known = listed.decode("utf-8", "surrogateescape").split("\n")[:-1]
    near = [one for one in known if one.partition("/")[2] == name]
    near += [one for one in get_close_matches(name, known, MOST_NEAR, 0.6) if one not in near]
    return f" Did you mean {', '.join(f'`{to_one_line(one)}`' for one in near[:MOST_NEAR])}?" if near else ""


async def _resolve_revision(git: GitProgram, wanted: str) -> str | None:
    ran = await git.test("rev-parse", "--verify", "--quiet", "--end-of-options", wanted)
    return ran.out.decode().strip() or None if ran.code == 0 else None


async def _build_unknown_refusal(git: GitProgram, name: str) -> Refusal:
    near = await describe_nearest_names(git, name)
    return Refusal(
        Problem(
            Code.NOT_FOUND,
            f"`{to_one_line(name)}` is no commit, branch or tag in {git.repository.name}.{near}",
            "Look with git_branch_list and git_log.",
        )
    )


def _check_name(name: str) -> str:
    if name.startswith("-"):
        message = f"`{to_one_line(name)}` begins with `-`, as options do and names must not."
    elif UNSPEAKABLE.search(name) or not name.strip():
        message = f"`{to_one_line(name)}` is no name."
    else:
        return name
    raise Refusal(Problem(Code.INVALID_ARGUMENTS, message, "Give a commit, branch or tag, such as `HEAD~1` or `main`."))
