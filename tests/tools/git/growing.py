"""Repositories that grew by chance: git itself does what hypothesis draws, and what it refuses is left undone."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from hypothesis import strategies as st

from tests.tools.git.ground import git

Step: TypeAlias = tuple[str | bytes | int, ...]

NAMES = (
    b"a",
    b"b.txt",
    b"dir/c",
    b"dir/deep/d",
    b"with space",
    b"-x",
    b"caf\xe9",
    "grüße".encode(),
    b"tab\there",
    b'q"q',
)
BRANCHES = ("main", "side", "feature/x")
CONTENTS = (
    b"",
    b"one\n",
    b"one\ntwo\nthree\nfour\nfive\n",
    b"one\nTWO\nthree\nfour\nfive\n",
    b"no line end",
    b"\x00\x01binary\xff",
    b"caf\xe9 \x1b[31mred\n",
    b"crlf\r\nline\r\n",
    b"x" * 3000 + b"\n",
    b"\n".join(b"%d" % number for number in range(60)) + b"\n",
)

name = st.sampled_from(NAMES)
branch = st.sampled_from(BRANCHES)
content = st.sampled_from(CONTENTS)
step = st.one_of(
    st.tuples(st.just("write"), name, content),
    st.tuples(st.just("write"), name, content),
    st.tuples(st.just("remove"), name),
    st.tuples(st.just("rename"), name, name),
    st.tuples(st.just("mode"), name),
    st.tuples(st.just("link"), name, name),
    st.tuples(st.just("stage")),
    st.tuples(st.just("commit"), st.sampled_from(("plain", "two\n\nlines of it", "\x1b[2Jescape", "grüße"))),
    st.tuples(st.just("commit"), st.just("again")),
    st.tuples(st.just("branch"), branch),
    st.tuples(st.just("switch"), branch),
    st.tuples(st.just("merge"), branch),
    st.tuples(st.just("detach")),
    st.tuples(st.just("submodule")),
    st.tuples(st.just("in_submodule"), content),
    st.tuples(st.just("worktree"), branch),
    st.tuples(st.just("ignore"), name),
)
steps = st.lists(step, min_size=3, max_size=16)


def grow(root: Path, taken: Sequence[Step]) -> Path:
    """The repository that these steps make, in a workspace of its own."""
    (root / "other").mkdir(parents=True)
    git(root / "other", "init", "-q")
    _put(root / "other", b"inner", b"inner\n")
    _commit(root / "other", "inner")
    top = root / "repo"
    top.mkdir()
    git(top, "init", "-q")
    for one, *given in taken:
        _take(top, str(one), given)
    return top


def _take(top: Path, one: str, given: Sequence[str | bytes | int]) -> None:
    match one, given:
        case "write", (bytes() as path, bytes() as data):
            _put(top, path, data)
        case "remove", (bytes() as path,):
            git(top, "rm", "-q", "--cached", "--", path, ok=False) if len(path) % 2 else None
            _gone(top, path)
        case "rename", (bytes() as old, bytes() as new):
            git(top, "mv", "--", old, new, ok=False)
        case "mode", (bytes() as path,):
            if os.path.isfile(whole := os.fsencode(top) + b"/" + path) and not os.path.islink(whole):
                os.chmod(whole, 0o755)
        case "link", (bytes() as path, bytes() as target):
            if not os.path.lexists(whole := os.fsencode(top) + b"/" + path) and os.path.isdir(os.path.dirname(whole)):
                os.symlink(target, whole)
        case "stage", ():
            git(top, "add", "--all", ok=False)
        case "commit", (str() as message,):
            _commit(top, message)
        case "branch", (str() as to,):
            git(top, "branch", to, ok=False)
        case "switch", (str() as to,):
            git(top, "switch", "-q", to, ok=False)
        case "merge", (str() as to,):
            git(top, "merge", "-q", "--no-edit", to, ok=False)
        case "detach", ():
            git(top, "checkout", "-q", "--detach", ok=False)
        case "submodule", ():
            where = str(top.parent / "other")
            git(top, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "--", where, "sub", ok=False)
        case "in_submodule", (bytes() as data,):
            if (top / "sub" / "inner").exists():
                _put(top / "sub", b"inner", data)
        case "worktree", (str() as to,):
            git(top, "worktree", "add", "-q", "../linked", to, ok=False)
        case "ignore", (bytes() as path,):
            _put(top, b".gitignore", path + b"\n")
        case _:
            raise AssertionError((one, given))


def _put(top: Path, path: bytes, data: bytes) -> None:
    whole = os.fsencode(top) + b"/" + path
    folder = os.path.dirname(whole)
    if os.path.isdir(whole) or os.path.islink(whole) or (os.path.lexists(folder) and not os.path.isdir(folder)):
        return
    os.makedirs(folder, exist_ok=True)
    with open(whole, "wb") as file:
        file.write(data)


def _gone(top: Path, path: bytes) -> None:
    whole = os.fsencode(top) + b"/" + path
    if os.path.isdir(whole) and not os.path.islink(whole):
        shutil.rmtree(whole)
    elif os.path.lexists(whole):
        os.unlink(whole)


def _commit(top: Path, message: str) -> None:
    git(top, "add", "--all", ok=False)
    git(top, "commit", "-q", "-m", message, ok=False)
