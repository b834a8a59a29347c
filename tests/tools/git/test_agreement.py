"""Do the tools say what git says, and do what git does? On repositories that grew by chance."""

import os
import shutil
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings

from mcp_server.model.processes import Processes
from mcp_server.model.results import Code, Done, Problem
from mcp_server.model.text import to_one_line
from tests.sizes import scale
from tests.tools.git.bare import Bare
from tests.tools.git.ground import GitWorkbench, git
from tests.tools.git.growing import Step, grow, steps
from tools.git import escape, porcelain

AT_RANDOM = settings(
    max_examples=scale(100),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


class Grown:
    """One repository with its twin, which is changed by git itself."""

    def __init__(self, folder: Path, taken: Sequence[Step], bare: bool) -> None:
        root = folder / "work"
        self.top = grow(root, taken)
        self.linked = root / "linked"
        self.bench = GitWorkbench(root, folder)
        if bare:
            self.bench.bare = cast(Processes, Bare(root))

    def data(self, tool: str, **arguments: Any) -> Any:
        return self.bench.data(tool, repo_path=str(self.top.name), **arguments)


@pytest.fixture(scope="module")
def ground() -> Generator[Path]:
    with TemporaryDirectory() as folder:
        yield Path(folder).resolve()


def folders(ground: Path) -> Iterator[Path]:
    number = len(os.listdir(ground))
    folder = ground / str(number)
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)
    folder.mkdir()


EVERYTHING: list[Step] = [
    ("write", b"a", b"one\ntwo\nthree\nfour\nfive\n"),
    ("write", b"dir/c", b"\x00\x01binary\xff"),
    ("write", b"caf\xe9", b"caf\xe9 \x1b[31mred\n"),
    ("commit", "plain"),
    ("submodule",),
    ("commit", "\x1b[2Jescape"),
    ("branch", "side"),
    ("rename", b"a", b"b.txt"),
    ("commit", "two\n\nlines of it"),
    ("worktree", "side"),
    ("write", b"dir/c", b"no line end"),
    ("stage",),
    ("in_submodule", b"one\n"),
    ("detach",),
    ("write", b"with space", b""),
    ("write", b"b.txt", b"crlf\r\nline\r\n"),
]
CLASHING: list[Step] = [
    ("write", b"a", b"one\n"),
    ("commit", "plain"),
    ("branch", "side"),
    ("write", b"a", b"no line end"),
    ("commit", "again"),
    ("switch", "side"),
    ("write", b"a", b"crlf\r\nline\r\n"),
    ("write", b"tab\there", b"one\n"),
    ("commit", "grüße"),
    ("merge", "main"),
]


@pytest.mark.parametrize("taken", [EVERYTHING, CLASHING], ids=["everything", "clashing"])
def test_on_two_repositories(tmp_path: Path, taken: list[Step]) -> None:
    agrees(Grown(tmp_path, taken, bare=True))


@pytest.mark.heavy
@AT_RANDOM
@given(steps)
def test_on_every_repository(ground: Path, taken: list[Step]) -> None:
    for folder in folders(ground):
        agrees(Grown(folder, taken, bare=True))


@pytest.mark.heavy
@pytest.mark.parametrize("sandbox", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("taken", [EVERYTHING, CLASHING], ids=["everything", "clashing"])
def test_shut_in_as_well(tmp_path: Path, taken: list[Step], sandbox: str) -> None:
    grown = Grown(tmp_path, taken, bare=False)
    if not grown.bench.only(sandbox):
        pytest.skip(f"there is no {sandbox} here")
    agrees(grown)


def agrees(grown: Grown) -> None:
    try:
        for top in (grown.top, grown.linked, grown.top / "sub"):
            if (top / ".git").exists():
                grown.top = top
                reading(grown, str(top.relative_to(grown.bench.root)))
        grown.top = grown.bench.root / "repo"
        staging(grown)
        committing(grown)
        switching(grown)
    finally:
        grown.bench.close()


def reading(grown: Grown, repo: str) -> None:
    bench, top = grown.bench, grown.top
    status(bench.data("git_status", repo_path=repo), top)
    for tool, words in (("git_diff_unstaged", ()), ("git_diff_staged", ("--cached",))):
        patch(bench.done(tool, repo_path=repo), git(top, "diff", *words), numstat(top, "diff", *words))
    shas = git(top, "rev-list", "--all", "--max-count=6", ok=False).decode().split()
    for sha in shas:
        told = bench.done("git_show", repo_path=repo, revision=sha)
        merge = len(git(top, "rev-list", "--parents", "-1", sha).split()) > 2
        first = ("-m", "--first-parent") if merge else ()
        patch(told, git(top, "show", "--format=", sha), numstat(top, "show", "--format=", *first, sha))
    for sha in shas[:2]:
        told = bench.done("git_diff", repo_path=repo, target=sha, context_lines=1)
        patch(told, git(top, "diff", "-U1", sha), numstat(top, "diff", sha))
    log(bench.data("git_log", repo_path=repo, max_count=5), top)
    branches(bench.data("git_branch_list", repo_path=repo), top)


def status(told: Any, top: Path) -> None:
    fields = git(top, "status", "--porcelain=v1", "-z").split(b"\0")[:-1]
    wanted: set[tuple[str, str]] = set()
    rest = iter(fields)
    for field in rest:
        code, path = field[:2].decode(), escape.to_visible_path(field[3:])
        if code[0] in "RC":
            next(rest)
        if code == "??":
            wanted.add(("untracked", path))
        elif code in porcelain.CONFLICTS:
            wanted.add(("conflict", path))
        else:
            wanted |= {(part, path) for part, sign in zip(("staged", "unstaged"), code, strict=True) if sign != " "}
    assert {(one["part"], one["path"]) for one in told["entries"]} == wanted
    branch = git(top, "symbolic-ref", "--short", "-q", "HEAD", ok=False).decode().strip()
    assert (told["branch"] or "") == branch
    assert (told["commit"] or "") == git(top, "rev-parse", "-q", "--verify", "HEAD", ok=False).decode().strip()


def numstat(top: Path, *words: str) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    fields = iter(git(top, *words, "--numstat", "-z").split(b"\0")[:-1])
    for field in fields:
        added, removed, path = field.lstrip(b"\n").split(b"\t", 2)
        if not path:
            next(fields)
            path = next(fields)
        found[escape.to_visible_path(path)] = (added.decode(), removed.decode())
    return found


def patch(told: Done, said: bytes, counted: dict[str, tuple[str, str]]) -> None:
    assert told.data is not None
    lines = [escape.to_content_line(line) for line in said.split(b"\n")[:-1]]
    if lines:
        assert told.text.endswith("\n".join(lines)), told.text
    files = {one["path"]: (str(one.get("added", "-")), str(one.get("removed", "-"))) for one in told.data["files"]}
    conflicts = {one["path"] for one in told.data["files"] if one["status"] == "unmerged"}
    assert {path: files[path] for path in files if path not in conflicts} == {
        path: counts for path, counts in counted.items() if path not in conflicts
    }


def log(told: Any, top: Path) -> None:
    if git(top, "rev-parse", "-q", "--verify", "HEAD", ok=False) == b"":
        assert told["commits"] == []
        return
    said = git(top, "log", "-z", "--format=%H%x00%an%x00%aI%x00%s", "--max-count=5").split(b"\0")[:-1]
    rows = [said[start : start + 4] for start in range(0, len(said), 4)]
    assert [[one["sha"], one["author"], one["date"], one["subject"]] for one in told["commits"]] == [
        [sha.decode(), to_one_line(name), date.decode(), to_one_line(subject, 1000)]
        for sha, name, date, subject in rows
    ]
    assert told["total"] == int(git(top, "rev-list", "--count", "HEAD"))


def branches(told: Any, top: Path) -> None:
    said = git(top, "for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads").decode().split("\n")[:-1]
    assert [f"{one['name']} {one['sha']}" for one in told["branches"]] == said


def index(top: Path) -> bytes:
    return git(top, "ls-files", "--stage", "-z") + git(top, "status", "--porcelain=v1", "-z")


def both(grown: Grown, tool: str, words: Sequence[str], **arguments: Any) -> Done | Problem:
    """The tool here, git itself in a copy; both have to come to the same."""
    twin = grown.bench.root / "twin"
    shutil.rmtree(twin, ignore_errors=True)
    shutil.copytree(grown.top, twin, symlinks=True)
    ending = grown.bench.call(tool, yes=True, repo_path="repo", **arguments)
    assert isinstance(ending, Done | Problem)
    if isinstance(ending, Done):
        git(twin, *words)
        assert index(grown.top) == index(twin)
        assert git(grown.top, "rev-parse", "-q", "--verify", "HEAD^{tree}", ok=False) == git(
            twin, "rev-parse", "-q", "--verify", "HEAD^{tree}", ok=False
        )
    return ending


def staging(grown: Grown) -> None:
    before = set(index(grown.top).split(b"\0"))
    told = both(grown, "git_add", ("add", "."), files=["."])
    assert isinstance(told, Done), told
    assert told.data is not None
    assert bool(told.data["files"]) <= (before != set(index(grown.top).split(b"\0")))
    staged = git(grown.top, "diff", "--cached", "--name-only", "--no-renames", "-z").split(b"\0")[:-1]
    assert told.data["staged"] == len(staged)
    if not (grown.top / ".git" / "MERGE_HEAD").exists():
        told = both(grown, "git_reset", ("reset", "-q"))
        assert isinstance(told, Done), told
        assert told.data is not None
        assert told.data["total"] == len(staged)
        both(grown, "git_add", ("add", "."), files=["."])


def committing(grown: Grown) -> None:
    ready = git(grown.top, "diff", "--cached", "--name-only") != b"" or (grown.top / ".git" / "MERGE_HEAD").exists()
    told = both(grown, "git_commit", ("commit", "-q", "-m", "done"), message="done")
    assert isinstance(told, Done) == ready, told
    if isinstance(told, Problem):
        assert told.code is Code.WRONG_STATE
        return
    assert told.data is not None
    assert told.data["sha"] == git(grown.top, "rev-parse", "HEAD").decode().strip()


def switching(grown: Grown) -> None:
    here = git(grown.top, "symbolic-ref", "--short", "-q", "HEAD", ok=False).decode().strip()
    for name in git(grown.top, "for-each-ref", "--format=%(refname:short)", "refs/heads").decode().split():
        other = git(grown.top, "worktree", "list", "--porcelain")
        if name != here and f"branch refs/heads/{name}\n".encode() not in other:
            words = ("switch", "-q", "--no-overwrite-ignore", name)
            told = both(grown, "git_checkout", words, branch_name=name, obeyed_files=True)
            dirty = git(grown.top, "status", "--porcelain", "-uno") != b""
            if isinstance(told, Problem) and not dirty:
                assert told.code is Code.WRONG_STATE, told
                twin = grown.bench.root / "twin"
                git(twin, *words, ok=False)
                now = git(twin, "symbolic-ref", "--short", "-q", "HEAD", ok=False).decode().strip()
                assert now == here, "git refuses as well"
            return
