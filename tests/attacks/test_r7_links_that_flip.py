"""R7: `deny Read(secret/**)` let 806 of 4,864 reads through while a link flipped, and after `approve` of a deletion
another file of that name was deleted.

A process swaps links, folders and hard links as fast as it can, between the decision and the open and between the
question and the call. Nothing outside the workspace and nothing that a rule covers is read, changed, moved or deleted.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.clients.pipe import pipe
from tests.clients.typed import typed
from tests.sizes import FULL, scale

TOOLS = (
    *("Read", "Edit", "Write", "grep", "glob", "fs_read_file", "fs_write_file", "fs_create_directory"),
    *("fs_list_directory", "fs_file_info", "fs_move", "fs_delete", "git_add"),
)
RULES = "rules:\n  deny:\n" + "".join(f"    - {tool}(secret/**)\n    - {tool}(secret)\n" for tool in TOOLS)
TURNS = 10_000

FLIPPER = """
import itertools, os, sys
from contextlib import suppress
root, outside = sys.argv[1:]
os.chdir(root)
def link(name, target):
    os.symlink(target, "swap")
    os.replace("swap", name)
def hard(name, target):
    with suppress(OSError):
        os.link(target, "other")
        os.replace("other", name)
def plain(name):
    with open("fresh", "w") as file:
        file.write("INSIDE")
    os.replace("fresh", name)
parent = os.getppid()
for turn in itertools.count():
    for target in ("open", "secret", "open", outside):
        link("flip", target); link("leaf", target + "/a.txt")
        with suppress(OSError):
            os.rename("real", "parked")
            os.symlink(("secret", outside)[turn % 2], "real")
        hard("twin", "secret/a.txt")
        with suppress(OSError):
            os.unlink("real")
            os.rename("parked", "real")
        plain("twin")
    for folder in ("open", "real"):
        with suppress(OSError):
            with open(folder + "/a.txt", "x") as file:
                file.write("INSIDE")
    if turn == 0:
        print("ready", flush=True)
    if turn % 64 == 0 and os.getppid() != parent:
        break
"""


@pytest.fixture
def ground(workspace: Path) -> Path:
    outside = workspace.parent / "outside"
    for folder in (workspace / "open", workspace / "real", workspace / "secret", outside):
        folder.mkdir()
        (folder / "a.txt").write_text("INSIDE")
    for folder, word in ((workspace / "secret", "COVERED"), (outside, "OUTSIDE")):
        (folder / "a.txt").write_text(f"{word} " * 20)
        (folder / f"only-{word}").write_text(word)
    return workspace


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "rules.yaml"
    path.write_text(RULES)
    return str(path)


def kept(ground: Path) -> dict[str, bytes]:
    """What no call may change, and nobody else does."""
    places = [path for top in (ground / "secret", ground.parent / "outside") for path in top.rglob("*")]
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in places}


@contextmanager
def flipping(ground: Path) -> Generator[None]:
    command = [sys.executable, "-c", FLIPPER, str(ground), str(ground.parent / "outside")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        try:
            yield
            assert process.poll() is None, "the flipper died, so nothing was raced"
        finally:
            process.kill()


Arguments = dict[str, object]


def read(path: str, _turn: int) -> Arguments:
    return {"file_path": path}


def edit(path: str, _turn: int) -> Arguments:
    return {"file_path": path, "old_string": "INSIDE", "new_string": "INSIDE "}


def write(path: str, turn: int) -> Arguments:
    return {"file_path": path if turn % 2 else f"{path}-{turn}/new", "content": f"INSIDE {turn}"}


def place(path: str, _turn: int) -> Arguments:
    return {"path": path}


def put(path: str, turn: int) -> Arguments:
    return {"path": path if turn % 2 else f"{path}-{turn}", "content": f"INSIDE {turn}"}


def make(path: str, turn: int) -> Arguments:
    return {"path": f"{path.partition('/')[0]}/made-{turn}/deep"}


def move(path: str, turn: int) -> Arguments:
    there = f"{path.partition('/')[0]}/moved-{turn}"
    return {"source": path, "destination": f"open/moved-{turn}"} if turn % 2 else {"source": path, "destination": there}


def search(path: str, _turn: int) -> Arguments:
    return {"pattern": "COVERED|OUTSIDE", "path": path.partition("/")[0], "output_mode": "content"}


def find(path: str, _turn: int) -> Arguments:
    return {"pattern": "**/*", "path": path.partition("/")[0]}


PATHS = ("flip/a.txt", "real/a.txt", "leaf", "twin")
"""A link to a folder, a folder that is a link at times, a link to a file, and a file with a second name at times."""
CALLS: tuple[tuple[str, str, Callable[[str, int], Arguments]], ...] = (
    ("swe", "Read", read),
    ("swe", "Edit", edit),
    ("swe", "Write", write),
    ("swe", "grep", search),
    ("swe", "glob", find),
    ("data", "fs_read_file", place),
    ("data", "fs_write_file", put),
    ("data", "fs_create_directory", make),
    ("data", "fs_list_directory", lambda path, turn: place(path.partition("/")[0], turn)),
    ("data", "fs_file_info", place),
    ("data", "fs_move", move),
)


TRIED = (*CALLS, "fs_delete", "git_add", "git_add without a rule", "git_checkout")
EACH = -(-TURNS // len(TRIED))
"""They share the 10,000 tries."""


def said(answer: Mapping[str, Any]) -> str:
    return "\n".join(block["text"] for block in answer["content"])


def is_leak(tool: str, text: str) -> bool:
    """True if the answer shows content or names from outside or from a place that a rule covers."""
    words = ("COVERED COVERED", "OUTSIDE OUTSIDE", "only-COVERED", "only-OUTSIDE")
    return any(word in text for word in words) and not text.startswith("Error")


@pytest.mark.heavy
@pytest.mark.parametrize(("mode", "tool", "build"), CALLS, ids=[tool for _, tool, _ in CALLS])
def test_no_flip_reaches_what_a_rule_covers(
    ground: Path, home: Path, config: str, mode: str, tool: str, build: Callable[[str, int], Arguments]
) -> None:
    before, done, turn = kept(ground), 0, 0
    with pipe(ground, home, "--profile", "trusted", "--mode", mode, "--config", config) as one:
        one.hello("opencode")
        with flipping(ground):
            for turn in range(scale(EACH, 50)):
                path = PATHS[turn % len(PATHS)]
                if tool in ("Edit", "Write"):
                    one.call("Read", file_path=path)
                answer = one.call(tool, **build(path, turn // len(PATHS)))
                assert not is_leak(tool, said(answer)), (path, said(answer))
                done += not answer.get("isError")
    count(tool, turn + 1, done)
    assert kept(ground) == before
    assert done, "nothing was ever let through, so nothing was raced"


def count(tool: str, tries: int, done: int) -> None:
    """For `pytest -rP`: how much was raced, and how often the links happened to lead where the call may go."""
    print(f"{tool}: {tries} tries, {done} of them let through")


def approve(place: Path, home: Path, answer: Mapping[str, Any]) -> None:
    """Say yes, unless the link has led elsewhere since: then nothing may be approved, and the next try asks again."""
    assert "APPROVAL_REQUIRED" in said(answer), said(answer)
    told = typed(place, home, "approve", said(answer).partition("menugate approve ")[2].split("`")[0])
    assert told.code == 0 or "something changed since the question" in told.err, told.err


@pytest.mark.heavy
def test_no_flip_deletes_what_was_not_shown(ground: Path, home: Path, config: str) -> None:
    """Each deletion is approved at a terminal, and made while the flipper runs."""
    before, done, turn = kept(ground), 0, 0
    with pipe(ground, home, "--profile", "trusted", "--mode", "data", "--config", config) as one:
        one.hello("opencode")
        with flipping(ground):
            for turn in range(scale(EACH, 20)):
                call = {"path": PATHS[turn % len(PATHS)]}
                answer = one.call("fs_delete", **call)
                # An earlier approval may have been for what is there again, and then names no question.
                if "menugate approve " in said(answer):
                    approve(ground, home, answer)
                    answer = one.call("fs_delete", **call)
                done += not answer.get("isError")
    count("fs_delete", turn + 1, done)
    assert kept(ground) == before
    assert done or not FULL, "nothing was ever deleted, so nothing was raced"


STAGED = ("real", "twin", "open", "real/a.txt", "twin", "flip", "real", "leaf", "twin", "flip/a.txt")


@pytest.mark.heavy
@pytest.mark.parametrize("ruled", [True, False], ids=["with a rule", "without one"])
def test_no_flip_stages_what_is_outside_or_covered(ground: Path, home: Path, config: str, ruled: bool) -> None:
    """Without a rule, only what is outside is out of reach; and at this profile, no sandbox keeps git from it."""
    git(ground, "init", "-q")
    before, done, raced, turn = kept(ground), 0, 0, 0
    places = [ground.parent / "outside", *([ground / "secret"] if ruled else [])]
    barred = {git(ground, "hash-object", str(path)).strip() for place in places for path in place.iterdir()}
    flags = ("--profile", "trusted", "--config", config) if ruled else ("--profile", "unrestricted")
    with pipe(ground, home, "--mode", "git", *flags) as one:
        one.hello("opencode")
        with flipping(ground):
            for turn in range(scale(EACH, 50)):
                files = STAGED[turn % len(STAGED)]
                answer = one.call("git_add", files=[files])
                done += not answer.get("isError")
                raced += "changed while it was staged" in said(answer) or "a rule of the user keeps" in said(answer)
                entries = git(ground, "ls-files", "-z", "--stage").split(b"\0")[:-1]
                assert not [entry for entry in entries if entry.split()[1] in barred], (files, entries, said(answer))
                # What is staged already would not be read again.
                (ground / ".git" / "index").unlink(missing_ok=True)
    count("git_add with a rule" if ruled else "git_add without one", turn + 1, done)
    assert kept(ground) == before
    assert done, "nothing was ever let through, so nothing was raced"
    assert raced or not FULL, "git never read anything else than menugate, so nothing was raced"


def git(place: Path, *words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=place, capture_output=True, check=True).stdout


@pytest.mark.heavy
def test_no_flip_checks_anything_out_outside(ground: Path, home: Path) -> None:
    """The branches differ in files of folders that are links at times."""
    outside = ground.parent / "outside"
    git(ground, "init", "-q", "-b", "one")
    for branch in ("one", "two"):
        for folder in ("open", "real"):
            (ground / folder / branch).mkdir()
            for path in (f"{folder}/{branch}/new", f"{folder}/both"):
                (ground / path).write_text(branch)
                git(ground, "add", path)
        git(ground, "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qm", branch)
        git(ground, "checkout", "-q", *(["-b", "two"] if branch == "one" else ["one"]))
    before = {path.name: path.read_bytes() for path in outside.rglob("*")}
    done = turn = 0
    with pipe(ground, home, "--profile", "trusted", "--mode", "git") as one:
        one.hello("opencode")
        with flipping(ground):
            for turn in range(scale(EACH, 50)):
                answer = one.call("git_checkout", branch_name=("two", "one")[turn % 2], keep_changes=True)
                assert {path.name: path.read_bytes() for path in outside.rglob("*")} == before, (turn, said(answer))
                done += not answer.get("isError")
                # What a try that failed has left would be in the way of the next one.
                git(ground, "reset", "-q", "--mixed")
                for branch in ("one", "two"):
                    if not git(ground, "ls-files", f"open/{branch}"):
                        (ground / "open" / branch / "new").unlink(missing_ok=True)
    count("git_checkout", turn + 1, done)
    assert done, "nothing was ever let through, so nothing was raced"


# Between the question and the call: one swap each, without luck.


def retarget(ground: Path) -> None:
    os.symlink("other", ground / "swap")
    os.replace(ground / "swap", ground / "link")


def swap_folder(ground: Path) -> None:
    (ground / "folder").rename(ground / "folder0")
    (ground / "other").rename(ground / "folder")


def folder_to_link(ground: Path) -> None:
    (ground / "folder").rename(ground / "folder0")
    (ground / "folder").symlink_to("other")


def swap_file(ground: Path) -> None:
    (ground / "other" / ".envrc").replace(ground / "folder" / ".envrc")


def change_content(ground: Path) -> None:
    (ground / "folder" / ".envrc").write_text("changed\n")


def take_away(ground: Path) -> None:
    (ground / "folder" / ".envrc").unlink()


def put_there(ground: Path) -> None:
    (ground / "folder" / "new").mkdir()
    (ground / "folder" / "new" / ".envrc").write_text("mine\n")


def put_folder(ground: Path) -> None:
    (ground / "other" / "new").mkdir()
    (ground / "other" / "new").rename(ground / "folder" / "new")


DIRECT, LINKED, NEW = "folder/.envrc", "link/.envrc", "folder/new/.envrc"
SWAPS: tuple[tuple[str, str, Callable[[Path], None]], ...] = (
    ("Read", LINKED, retarget),
    ("Read", DIRECT, swap_folder),
    ("Read", DIRECT, folder_to_link),
    ("Read", DIRECT, swap_file),
    *(
        (tool, path, swap)
        for tool in ("Write", "Edit", "fs_write_file")
        for path, swap in (
            (LINKED, retarget),
            (DIRECT, swap_folder),
            (DIRECT, folder_to_link),
            (DIRECT, swap_file),
            (DIRECT, change_content),
            (DIRECT, take_away),
        )
    ),
    *((tool, NEW, swap) for tool in ("Write", "fs_write_file") for swap in (put_there, put_folder, folder_to_link)),
)
ASKED: Mapping[str, Callable[[str], Arguments]] = {
    "Read": lambda path: {"file_path": path},
    "Write": lambda path: {"file_path": path, "content": "WRITTEN\n"},
    "Edit": lambda path: {"file_path": path, "old_string": "export A=1\n", "new_string": "WRITTEN\n"},
    "fs_write_file": lambda path: {"path": path, "content": "WRITTEN\n"},
}


@pytest.mark.parametrize(("tool", "path", "swap"), SWAPS, ids=[f"{tool} {swap.__name__}" for tool, _, swap in SWAPS])
def test_what_was_approved_is_not_done_to_something_else(
    workspace: Path, home: Path, tool: str, path: str, swap: Callable[[Path], None]
) -> None:
    for folder, text in (("folder", "export A=1\n"), ("other", "export A=1\nexport B=2\n")):
        (workspace / folder).mkdir()
        (workspace / folder / ".envrc").write_text(text)
    (workspace / "link").symlink_to("folder")
    mode = "data" if tool.startswith("fs_") else "swe"
    call = ASKED[tool](path)
    with pipe(workspace, home, "--mode", mode) as one:
        one.hello("opencode")
        if tool in ("Write", "Edit") and path != NEW:
            approve(workspace, home, one.call("Read", file_path=path))
            assert not one.call("Read", file_path=path).get("isError")
        approve(workspace, home, one.call(tool, **call))
        swap(workspace)
        answer = one.call(tool, **call)
    assert answer.get("isError"), said(answer)
    assert "export B=2" not in said(answer)
    assert not [path for path in workspace.rglob(".envrc") if "WRITTEN" in path.read_text()]


@pytest.mark.parametrize("tool", ASKED)
def test_what_stayed_as_it_was_shown_is_done(workspace: Path, home: Path, tool: str) -> None:
    (workspace / "folder").mkdir()
    (workspace / "folder" / ".envrc").write_text("export A=1\n")
    (workspace / "link").symlink_to("folder")
    with pipe(workspace, home, "--mode", "data" if tool.startswith("fs_") else "swe") as one:
        one.hello("opencode")
        if tool in ("Write", "Edit"):
            approve(workspace, home, one.call("Read", file_path=LINKED))
            one.call("Read", file_path=LINKED)
        answer = one.call(tool, **ASKED[tool](LINKED))
        approve(workspace, home, answer)
        if tool != "Read":
            id = said(answer).partition("menugate approve ")[2].split("`")[0]
            shown = typed(workspace, home, "approvals", "show", id).out
            assert '(there is a file at "folder/.envrc" now: 11 bytes, SHA-256 ' in shown
        answer = one.call(tool, **ASKED[tool](LINKED))
        assert not answer.get("isError"), said(answer)
    assert tool == "Read" or (workspace / "folder" / ".envrc").read_text() == "WRITTEN\n"


# T6: nobody is asked about a call that would fail.

FAILING: tuple[tuple[str, Arguments, str], ...] = (
    ("Read", {"file_path": "missing/.env"}, "NOT_FOUND"),
    ("Read", {"file_path": "../.env"}, "PATH_REFUSED"),
    ("Read", {"file_path": ".git"}, "PATH_REFUSED"),
    ("Read", {"file_path": "twin.pem"}, "PATH_REFUSED"),
    ("Read", {"file_path": "binary.key"}, "NOT_TEXT"),
    ("Write", {"file_path": ".git", "content": ""}, "PATH_REFUSED"),
    ("Write", {"file_path": "../.envrc", "content": ""}, "PATH_REFUSED"),
    ("Write", {"file_path": ".envrc", "content": ""}, "NOT_READ"),
    ("Write", {"file_path": "notes.md/.envrc", "content": ""}, "NOT_FOUND|ALREADY_EXISTS"),
    ("Write", {"file_path": "dangling.key", "content": ""}, "PATH_REFUSED"),
    ("Write", {"file_path": "new/.envrc", "content": "a\n# ... rest of the code ...\n"}, "INVALID_ARGUMENTS"),
    ("Edit", {"file_path": "missing/.envrc", "old_string": "a", "new_string": "b"}, "NOT_FOUND"),
    ("Edit", {"file_path": ".envrc", "old_string": "a", "new_string": "b"}, "NOT_READ"),
    ("fs_read_file", {"path": "missing/.env"}, "NOT_FOUND"),
    ("fs_write_file", {"path": ".git", "content": ""}, "PATH_REFUSED"),
    ("fs_write_file", {"path": "twin.pem", "content": ""}, "PATH_REFUSED"),
    ("fs_write_file", {"path": "b.key", "content": "%", "encoding": "base64"}, "INVALID_ARGUMENTS"),
    ("fs_create_directory", {"path": "notes.md/.vscode"}, "NOT_FOUND|ALREADY_EXISTS"),
    ("fs_create_directory", {"path": "binary.key"}, "ALREADY_EXISTS"),
    ("fs_delete", {"path": "missing"}, "NOT_FOUND"),
    ("fs_delete", {"path": "src"}, "ALREADY_EXISTS"),
    ("fs_delete", {"path": "../notes.md"}, "PATH_REFUSED"),
    ("fs_delete", {"path": ".menugate/state.db"}, "PATH_REFUSED"),
    ("fs_move", {"source": "missing", "destination": ".envrc2/.vscode"}, "NOT_FOUND"),
    ("fs_move", {"source": "notes.md", "destination": ".envrc"}, "ALREADY_EXISTS"),
    ("fs_move", {"source": "notes.md", "destination": "../.envrc"}, "PATH_REFUSED"),
)


@pytest.mark.parametrize(("tool", "arguments", "code"), FAILING, ids=[f"{one[0]} {one[1]}" for one in FAILING])
def test_nobody_is_asked_about_a_call_that_would_fail(
    workspace: Path, home: Path, tool: str, arguments: Arguments, code: str
) -> None:
    (workspace / ".git").mkdir()
    (workspace / ".envrc").write_text("export A=1\n")
    (workspace / "binary.key").write_bytes(b"\0\1\2")
    (workspace / "one.pem").write_text("key\n")
    (workspace / "twin.pem").hardlink_to(workspace / "one.pem")
    (workspace / "dangling.key").symlink_to("nowhere.key")
    before = sorted(str(path) for path in workspace.rglob("*"))
    with pipe(workspace, home, "--profile", "trusted", "--mode", "data" if tool.startswith("fs_") else "swe") as one:
        one.hello("opencode")
        told = said(one.call(tool, **arguments))
        assert "APPROVAL_REQUIRED" not in told, told
        assert told.startswith(tuple(f"Error {one}" for one in code.split("|"))), told
        assert typed(workspace, home, "approvals", "--json").out.strip() == "[]"
    after = sorted(str(path) for path in workspace.rglob("*"))
    assert [path for path in after if "/.menugate" not in path] == before
