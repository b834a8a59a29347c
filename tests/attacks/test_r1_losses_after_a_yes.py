"""Is a yes to a shell line bound to what the line deletes and overwrites?

A link turned between the question and the yes emptied another folder, and a file rewritten meanwhile was lost in its
new form.
"""

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import ERAS
from tests.clients.form import FORM
from tests.clients.form import question as form
from tests.clients.pipe import pipe
from tests.clients.typed import Typed, typed


def said(answer: Mapping[str, Any]) -> str:
    return "\n".join(block["text"] for block in answer["content"])


def asked(answer: Mapping[str, Any]) -> str:
    assert answer["isError"] and "APPROVAL_REQUIRED" in said(answer), said(answer)
    return said(answer).partition("menugate approve ")[2].split("`")[0]


def plain(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture
def ground(workspace: Path, home: Path) -> Path:
    for name in ("g/in.txt", "e/in.txt", "d/in.txt", "d/deep/x", "old", "new", "a.tmp", "b.tmp"):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(f"{name}\n")
    (workspace / "lnk").symlink_to("g")
    git(workspace, "init", "-q")
    git(workspace, "add", "old", "e")
    git(workspace, "-c", "user.name=G", "-c", "user.email=g@example.org", "commit", "-qm", "base")
    (workspace / "old").write_text("not committed\n")
    return workspace


def git(folder: Path, *words: str) -> None:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *words], cwd=folder, env=env, capture_output=True, check=True)


def turn_link(at: Path) -> None:
    (at / "lnk").unlink()
    (at / "lnk").symlink_to("e")


def swap_folder(at: Path) -> None:
    (at / "d").rename(at / "d0")
    (at / "d").symlink_to("e")


def replace_folder(at: Path) -> None:
    (at / "d").rename(at / "d0")
    (at / "e").rename(at / "d")


def write(name: str) -> Callable[[Path], object]:
    return lambda at: (at / name).write_text("nobody has seen this\n")


def touch_alike(at: Path) -> None:
    """The same size and the same times as before, as far as those can be set."""
    found = (at / "old").stat()
    (at / "old").write_text("not COMMITTED\n")
    os.utime(at / "old", ns=(found.st_atime_ns, found.st_mtime_ns))


CHANGES: list[tuple[str, Callable[[Path], object], str]] = [
    ("rm -r lnk/*", turn_link, "what fits `lnk/*` has changed"),
    ("rm -r lnk/", turn_link, "`lnk/` has come to lead elsewhere"),
    ("rm d/in.txt", swap_folder, "`d/in.txt` has come to lead elsewhere"),
    ("rm d/in.txt", replace_folder, "`d/in.txt` has changed"),
    ("rm -r d", write("d/deep/new"), "`d` has changed"),
    ("rm -r d", write("d/in.txt"), "`d` has changed"),
    ("mv new old", write("old"), "`old` has changed"),
    ("mv new old", touch_alike, "`old` has changed"),
    ("cp new old", write("old"), "`old` has changed"),
    ("cat new > d/in.txt", swap_folder, "`d/in.txt` has come to lead elsewhere"),
    ("date > old", write("old"), "`old` has changed"),
    ("sed -i s/a/b/ old", write("old"), "`old` has changed"),
    ("rm *.tmp", write("c.tmp"), "what fits `*.tmp` has changed"),
    ("rm *.tmp", write("a.tmp"), "what fits `*.tmp` has changed"),
    ("rm {a,b}.tmp", write("b.tmp"), "what fits `b.tmp` has changed"),
    ("rm d/../old", write("old"), "`d/../old` has changed"),
    ("find d -name 'x*' -delete", write("d/deep/x2"), "`d` has changed"),
    ("cd d && rm *.txt", write("d/more.txt"), "what fits `d/*.txt` has changed"),
    ("git checkout -- e", write("e/in.txt"), "`e` has changed"),
    ("git reset --hard", write("e/in.txt"), "`.` has changed"),
    ("git clean -fd", write("more"), "`.` has changed"),
]


def count(ground: Path) -> dict[str, str]:
    files = (path for path in ground.rglob("*") if path.is_file() and not {".menugate", ".git"} & set(path.parts))
    return {str(path.relative_to(ground)): path.read_text() for path in files}


def begin(ground: Path, home: Path, profile: str = "normal") -> Any:
    config = home / "asking.yaml"
    config.write_text("rules: {ask: ['bash(git:*)']}\n")
    return pipe(ground, home, "--mode", "swe", "--profile", profile, "--config", str(config))


def choose_profile(line: str) -> str:
    """Below this one, git may not write its own folder."""
    return "trusted" if line.startswith("git") else "normal"


@pytest.mark.parametrize(("line", "change", "says"), CHANGES, ids=[f"{one[0]} {one[1].__name__}" for one in CHANGES])
def test_a_change_asks_again_and_says_what_changed(
    ground: Path, home: Path, line: str, change: Callable[[Path], object], says: str
) -> None:
    """Between the question and the answer, which the terminal then does not take, and after it."""
    line = f"{line}; rm -f nothing"
    with begin(ground, home, choose_profile(line)) as one:
        one.hello()
        first = asked(one.call("bash", command=line))
        assert asked(one.call("bash", command=line)) == first, "nothing has changed"
        change(ground)
        told = typed(ground, home, "approve", first)
        assert told.code == 1
        assert says in plain(told.err), told.err
        second = asked(one.call("bash", command=line))
        assert second != first


@pytest.mark.parametrize(("line", "change", "says"), CHANGES, ids=[f"{one[0]} {one[1].__name__}" for one in CHANGES])
def test_a_yes_is_not_for_what_came_later(
    ground: Path, home: Path, line: str, change: Callable[[Path], object], says: str
) -> None:
    line = f"{line}; rm -f nothing"
    with begin(ground, home, choose_profile(line)) as one:
        one.hello()
        first = asked(one.call("bash", command=line))
        approved(ground, home, first)
        change(ground)
        before = count(ground)
        again = one.call("bash", command=line)
        assert asked(again) != first
        assert f"The user approved this call before, but {says} since." in plain(said(again))
        assert f"You have approved this call before, but {says} since" in plain(
            typed(ground, home, "approvals", "show", asked(again)).out
        )
        assert count(ground) == before
        approved(ground, home, asked(one.call("bash", command=line)))
        assert "APPROVAL" not in said(one.call("bash", command=line))


def approved(ground: Path, home: Path, id: str) -> Typed:
    told = typed(ground, home, "approve", id)
    assert told.code == 0, told.err
    return told


@pytest.mark.parametrize("era", ERAS)
def test_a_change_while_the_form_is_open_asks_again(era: str, ground: Path, home: Path) -> None:
    with begin(ground, home) as one:
        one.able = FORM
        one.hello(era=era)
        asking = form(one, {"name": "bash", "arguments": {"command": "rm -r lnk/*"}})
        turn_link(ground)
        late = asking.accept()["result"]
        if era == "legacy":
            assert "what fits `lnk/*` has changed" in said(late)
        else:
            ((_, anew),) = late["inputRequests"].items()
            assert anew["params"]["message"] != asking.params["message"]
    assert (ground / "e" / "in.txt").exists()
    assert (ground / "g" / "in.txt").exists()


KEEPING: list[tuple[str, Callable[[Path], object]]] = [
    ("rm -r lnk/*", write("e/more")),
    ("rm old", write("new")),
    ("rm *.tmp", write("c.txt")),
    ("rm lnk", write("g/more")),
    ("mv new e", write("e/more")),
    ("rm -r d", lambda at: os.utime(at / "d" / "in.txt")),
    ("git clean -fd", lambda at: os.utime(at / "old")),
]


@pytest.mark.parametrize(("line", "change"), KEEPING, ids=[one[0] for one in KEEPING])
def test_what_the_line_leaves_alone_may_change(
    ground: Path, home: Path, line: str, change: Callable[[Path], object]
) -> None:
    with begin(ground, home, choose_profile(line)) as one:
        one.hello()
        id = asked(one.call("bash", command=f"{line}; rm -f nothing"))
        change(ground)
        approved(ground, home, id)
        change(ground)
        assert "APPROVAL" not in said(one.call("bash", command=f"{line}; rm -f nothing"))


def test_a_session_approval_is_bound_to_where_the_paths_lead(ground: Path, home: Path) -> None:
    line = "cp new d/in.txt"
    with begin(ground, home) as one:
        one.hello()
        assert typed(ground, home, "approve", asked(one.call("bash", command=line)), "--for-session").code == 0
        for text in "abc":
            (ground / "new").write_text(text)
            assert "APPROVAL" not in said(one.call("bash", command=line)), "it overwrites what it wrote itself"
        swap_folder(ground)
        asked(one.call("bash", command=line))
    assert (ground / "e" / "in.txt").read_text() == "e/in.txt\n"


def test_a_denied_line_stays_denied_whatever_changes(ground: Path, home: Path) -> None:
    with begin(ground, home) as one:
        one.hello()
        assert typed(ground, home, "deny", asked(one.call("bash", command="rm old"))).code == 0
        write("old")(ground)
        assert "APPROVAL_DENIED" in said(one.call("bash", command="rm old"))


def test_of_many_paths_each_one_counts(ground: Path, home: Path) -> None:
    names = [f"many/{number}" for number in range(300)]
    for name in names:
        (ground / "many").mkdir(exist_ok=True)
        (ground / name).write_text(name)
    with begin(ground, home) as one:
        one.hello()
        first = asked(one.call("bash", command=f"rm {' '.join(names)}"))
        write("many/299")(ground)
        second = asked(one.call("bash", command=f"rm {' '.join(names)}"))
        assert first != second
        assert (ground / "many" / "299").exists()
