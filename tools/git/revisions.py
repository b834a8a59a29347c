"""Which commit or branch is meant? A caller's text reaches git here only, to be resolved or checked."""

import re
from difflib import get_close_matches

from mcp_server.model.results import Code, Refusal
from mcp_server.model.text import to_one_line
from tools.git.program import GitProgram

RANGE = re.compile(r"(.*?)(\.{2,3})(.*)", re.DOTALL)
CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f]")
MAX_SUGGESTIONS = 3


async def resolve_commit(git: GitProgram, name: str) -> str:
    """Return the full hash of the commit; raise a `Refusal` if there is none of that name."""
    sha = await _resolve_revision(git, f"{_check_name(name)}^{{commit}}")
    if sha is None:
        raise await _build_unknown_refusal(git, name)
    return sha


async def read_head(git: GitProgram) -> str | None:
    """Return the commit that is checked out; None before the first."""
    return await _resolve_revision(git, "HEAD^{commit}")


async def resolve_comparison(git: GitProgram, target: str) -> str:
    """Resolve what to compare with: a commit to compare the files with, or the range `A..B` or `A...B`."""
    parts = RANGE.fullmatch(target)
    if parts is None:
        return await resolve_commit(git, target)
    first, dots, second = parts.groups()
    return dots.join([await resolve_commit(git, end or "HEAD") for end in (first, second)])


async def check_branch_name(git: GitProgram, name: str) -> str:
    """Return the name if a branch can have it; otherwise raise a `Refusal`."""
    result = await git.test("check-ref-format", "--branch", _check_name(name), no_code=128)
    # Git expands `@{-1}` to the branch before, so the name must come back unchanged.
    if result.code or result.out.decode("utf-8", "surrogateescape").rstrip("\n") != name or name in ("HEAD", "@"):
        raise Refusal.because(
            Code.INVALID_ARGUMENTS,
            f"`{to_one_line(name)}` cannot be the name of a branch.",
            "Use letters, digits, `-`, `_`, `.` and `/`; don't begin with `-` or end with `.lock` or `/`.",
        )
    return name


async def find_branch_tip(git: GitProgram, name: str) -> str | None:
    """Return the commit that the local branch points to; None if there is no such branch."""
    return await _resolve_revision(git, f"refs/heads/{name}^{{commit}}")


async def describe_nearest_names(git: GitProgram, name: str) -> str:
    """Suggest branches and tags with a similar name, as the end of a sentence."""
    output = await git.read("for-each-ref", "--format=%(refname:short)", "--count=2000")
    refs = output.decode("utf-8", "surrogateescape").split("\n")[:-1]
    nearest = [ref for ref in refs if ref.partition("/")[2] == name]
    nearest += [ref for ref in get_close_matches(name, refs, MAX_SUGGESTIONS, 0.6) if ref not in nearest]
    suggestions = ", ".join(f"`{to_one_line(ref)}`" for ref in nearest[:MAX_SUGGESTIONS])
    return f" Did you mean {suggestions}?" if suggestions else ""


async def _resolve_revision(git: GitProgram, revision: str) -> str | None:
    result = await git.test("rev-parse", "--verify", "--quiet", "--end-of-options", revision)
    return result.out.decode().strip() or None if result.code == 0 else None


async def _build_unknown_refusal(git: GitProgram, name: str) -> Refusal:
    suggestion = await describe_nearest_names(git, name)
    return Refusal.because(
        Code.NOT_FOUND,
        f"There is no commit, branch or tag `{to_one_line(name)}` in {git.repository.name}.{suggestion}",
        "List them with git_branch_list or git_log.",
    )


def _check_name(name: str) -> str:
    if name.startswith("-"):
        message = f"`{to_one_line(name)}` begins with `-`, so git would take it for an option."
    elif CONTROL_CHARACTER.search(name) or not name.strip():
        message = f"`{to_one_line(name)}` is not a name."
    else:
        return name
    raise Refusal.because(Code.INVALID_ARGUMENTS, message, "Pass a commit, branch or tag, such as `HEAD~1` or `main`.")
