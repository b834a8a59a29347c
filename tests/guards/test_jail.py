"""Does a path ever lead out of the workspace?"""

import gc
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from mcp_server.guards import openat
from mcp_server.guards.jail import Jail, JailPath
from mcp_server.guards.openat import Resolve, open_by_kernel, open_by_steps
from mcp_server.model.results import Code, Refusal

BACKENDS = [
    pytest.param(
        open_by_kernel, id="kernel", marks=pytest.mark.skipif(not openat.can_kernel_resolve(), reason="no openat2 here")
    ),
    pytest.param(open_by_steps, id="steps"),
]
READ = os.O_RDONLY
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL


@pytest.fixture(params=BACKENDS)
def resolve(request: pytest.FixtureRequest) -> Resolve:
    return request.param


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with neighbours that must not be reached."""
    root = tmp_path / "work"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "src" / "a.txt").write_text("inside")
    (root / "src" / "deep" / "b.txt").write_text("deeper")
    (root / ".menugate" / "spill").mkdir(parents=True)
    (root / ".menugate" / "state.db").write_text("state")
    (root / ".menugate" / "spill" / "long.txt").write_text("spilled")
    (tmp_path / "work_evil").mkdir()
    (tmp_path / "work_evil" / "secret").write_text("SECRET")
    (tmp_path / "secret").write_text("SECRET")
    return root


@pytest.fixture
def jail(root: Path, resolve: Resolve) -> Jail:
    state = root / ".menugate"
    return Jail(root, (state,), (state / "spill",), resolve=resolve)


def content(jail: Jail, path: str) -> str:
    with os.fdopen(jail.open(path, READ)) as file:
        return file.read()


def refusal(act: Callable[[], object]) -> Refusal:
    with pytest.raises(Refusal) as caught:
        act()
    assert caught.value.problem.text.startswith("Error ")
    return caught.value


@pytest.mark.parametrize(
    ("asked", "clean"),
    [
        ("src/a.txt", "src/a.txt"),
        ("./src//deep/../a.txt", "src/a.txt"),
        ("{root}/src/a.txt", "src/a.txt"),
        ("{root}", "."),
        ("", "."),
        (".", "."),
        ("src/", "src"),
        ("a/../src/a.txt", "src/a.txt"),
        ("%2e%2e/secret", "%2e%2e/secret"),
        ("~user", "~user"),
        ("...", "..."),
    ],
)
def test_a_path_is_read_relative_to_the_workspace(jail: Jail, root: Path, asked: str, clean: str) -> None:
    assert jail.to_relative(asked.format(root=root)) == clean


@pytest.mark.parametrize(
    "asked",
    [
        "..",
        "../secret",
        "src/../../secret",
        "/etc/passwd",
        "/proc/self/environ",
        "{root}_evil/secret",
        "{root}/../secret",
        "{root}/../work_evil/secret",
        "//etc/passwd",
        "/",
        "~",
        "~/secret",
        "file:///etc/passwd",
        "FILE://localhost/etc/passwd",
        "src/a.txt\0.png",
        "\0",
        "half\ud800",
    ],
)
def test_words_that_lead_out_are_refused(jail: Jail, root: Path, asked: str) -> None:
    problem = refusal(lambda: jail.to_relative(asked.format(root=root))).problem
    assert problem.code is Code.PATH_REFUSED
    assert problem.way_out
    problem.text.encode()


def test_what_was_refused_by_name_is_refused_at_the_door_too(jail: Jail) -> None:
    for path in ("../secret", "/etc/passwd", "a\0b"):
        assert refusal(lambda path=path: jail.open(path, READ)).problem.code is Code.PATH_REFUSED
        assert refusal(lambda path=path: jail.open_folder(path)).problem.code is Code.PATH_REFUSED


LINKS = {
    "absolute file": ("out", "{top}/secret", "out"),
    "relative file": ("out", "../secret", "out"),
    "absolute folder": ("out", "{top}", "out/secret"),
    "relative folder": ("out", "..", "out/secret"),
    "folder then up": ("src/out", "../../work_evil", "src/out/secret"),
    "chain": ("one", "two", "one"),
    "proc": ("fd", "/proc/self/root", "fd/etc/passwd"),
    "sibling": ("evil", "../work_evil", "evil/secret"),
    "deep up": ("src/deep/out", "../../../secret", "src/deep/out"),
    "circle": ("round", "round", "round"),
    "circle folder": ("round", "round/x", "round/y"),
}


@pytest.mark.parametrize("name", LINKS)
def test_a_link_out_is_not_followed(jail: Jail, root: Path, name: str) -> None:
    link, target, asked = LINKS[name]
    (root / link).symlink_to(target.format(top=root.parent))
    (root / "two").symlink_to("../secret")
    problem = refusal(lambda: jail.open(asked, READ)).problem
    assert problem.code is Code.PATH_REFUSED, problem
    assert "SECRET" not in problem.text
    with pytest.raises(Refusal):
        jail.open_folder(asked)
    with pytest.raises(Refusal):
        jail.open(asked, os.O_WRONLY)


@pytest.mark.parametrize(
    ("link", "target", "asked", "expected"),
    [
        ("alias", "src/a.txt", "alias", "inside"),
        ("folder", "src/deep", "folder/b.txt", "deeper"),
        ("src/deep/up", "../a.txt", "src/deep/up", "inside"),
        ("src/deep/top", "../../src", "src/deep/top/deep/b.txt", "deeper"),
        ("src/slash", "deep/", "src/slash/b.txt", "deeper"),
        ("src/dots", "deep/..", "src/dots/a.txt", "inside"),
    ],
)
def test_a_link_that_stays_is_followed(
    jail: Jail, root: Path, link: str, target: str, asked: str, expected: str
) -> None:
    (root / link).symlink_to(target)
    assert content(jail, asked) == expected


def test_a_place_names_what_is_really_there(jail: Jail, root: Path) -> None:
    (root / "alias").symlink_to("src/deep")
    (root / "file").symlink_to("alias/b.txt")
    with jail.open_place("file") as place:
        assert (place.path, place.name, place.linked) == ("src/deep/b.txt", "b.txt", True)
    with jail.open_place("file", follow=False) as place:
        assert (place.path, place.linked) == ("file", False)
    with jail.open_place("alias") as place:
        assert place.path == "src/deep"
    with jail.open_place(".") as place:
        assert (place.path, place.name) == (".", ".")


def test_nothing_is_created_through_a_dangling_link(jail: Jail, root: Path) -> None:
    (root / "in").symlink_to("src/new.txt")
    (root / "out").symlink_to("../new.txt")
    (root / "far").symlink_to(f"{root.parent}/new.txt")
    for name in ("in", "out", "far"):
        assert refusal(lambda name=name: jail.open(name, CREATE)).problem.code is Code.PATH_REFUSED
    assert not (root / "src" / "new.txt").exists()
    assert not (root.parent / "new.txt").exists()
    assert refusal(lambda: jail.open("in", READ)).problem.code is Code.NOT_FOUND


def test_what_is_no_plain_file_is_refused_without_waiting(jail: Jail, root: Path) -> None:
    os.mkfifo(root / "fifo")
    (root / "by-link").symlink_to("fifo")
    here = Path.cwd()
    os.chdir(root)  # a socket's address has no room for a long path
    try:
        with socket.socket(socket.AF_UNIX) as door:
            door.bind("door")
    finally:
        os.chdir(here)
    for name in ("fifo", "by-link", "door"):
        for flags in (READ, os.O_WRONLY, os.O_RDWR):
            assert refusal(lambda name=name, flags=flags: jail.open(name, flags)).problem.code is Code.PATH_REFUSED
    assert "folder" in refusal(lambda: jail.open("src", READ)).problem.message


@pytest.mark.parametrize("path", ["dev/zero", "dev/null", "proc/self/environ", "proc/self/fd/0", "proc", "sys", "dev"])
def test_the_running_system_is_not_part_of_any_workspace(resolve: Resolve, path: str) -> None:
    jail = Jail(Path("/"), resolve=resolve)
    assert refusal(lambda: jail.open(path, READ)).problem.code is Code.PATH_REFUSED
    assert refusal(lambda: jail.open_folder(path)).problem.code in (Code.PATH_REFUSED, Code.NOT_FOUND)


def test_a_second_name_of_a_file_is_refused_unless_allowed(jail: Jail, root: Path, resolve: Resolve) -> None:
    os.link(root.parent / "secret", root / "harmless")
    for flags in (READ, os.O_WRONLY):
        problem = refusal(lambda flags=flags: jail.open("harmless", flags)).problem
        assert "hardlink" in problem.message
        assert "cp harmless" in problem.way_out
    assert content(Jail(root, allow_hardlinks=True, resolve=resolve), "harmless") == "SECRET"


def test_our_own_state_is_closed_by_every_spelling(jail: Jail, root: Path, resolve: Resolve) -> None:
    (root / "alias").symlink_to(".menugate")
    (root / "db").symlink_to(".menugate/state.db")
    (root / "src" / "up").symlink_to("../.menugate")
    for path in (".menugate/state.db", "src/../.menugate/state.db", "alias/state.db", "db", "src/up/state.db"):
        assert "menugate's own state" in refusal(lambda path=path: jail.open(path, READ)).problem.message
    for path in (".menugate", "alias", "src/up", ".menugate/spill/../"):
        assert "own state" in refusal(lambda path=path: jail.open_folder(path)).problem.message
    os.link(root / ".menugate" / "state.db", root / "copy")
    lax = Jail(root, (root / ".menugate",), allow_hardlinks=True, resolve=resolve)
    assert "own state" in refusal(lambda: lax.open("copy", READ)).problem.message


def test_our_own_state_is_closed_before_it_exists(root: Path, resolve: Resolve) -> None:
    jail = Jail(root, (root / "later",), resolve=resolve)
    with pytest.raises(Refusal), jail.open_place("later/state.db"):
        pass
    with pytest.raises(Refusal):
        jail.open("later", CREATE, 0o600)


def test_what_did_not_fit_an_answer_may_be_read_and_not_written(jail: Jail) -> None:
    assert content(jail, ".menugate/spill/long.txt") == "spilled"
    for flags in (os.O_WRONLY, os.O_RDWR, CREATE):
        with pytest.raises(Refusal):
            jail.open(".menugate/spill/long.txt", flags)


def test_the_kernel_is_asked_to_stay_beneath(root: Path) -> None:
    """Said apart from the probe, which would quietly choose the other way."""
    top, system = os.open(root, openat.FOLDER), os.open("/", openat.FOLDER)
    try:
        try:
            os.close(open_by_kernel(top, "src")[0])
        except OSError:
            pytest.skip("no openat2 here")
        (root / "out").symlink_to("..")
        for folder, path in (
            (top, ".."),
            (top, "out"),
            (top, "/"),
            (system, "proc/self/root"),
            (system, "proc/self/cwd"),
        ):
            with pytest.raises(OSError):
                open_by_kernel(folder, path)
        assert openat.can_kernel_resolve()
    finally:
        os.close(top)
        os.close(system)


@pytest.mark.parametrize("flags", [READ, os.O_WRONLY])
def test_a_file_swapped_for_a_link_after_the_last_look_is_not_opened(
    jail: Jail, root: Path, flags: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = Jail._require_plain_file  # pyright: ignore[reportPrivateUsage]  # the moment between looking and opening has no public name

    def swap(self: Jail, place: JailPath, found: os.stat_result) -> None:
        look(self, place, found)
        (root / "src" / "a.txt").unlink(missing_ok=True)
        (root / "src" / "a.txt").symlink_to("../../secret")

    monkeypatch.setattr(Jail, "_require_plain_file", swap)
    assert refusal(lambda: jail.open("src/a.txt", flags)).problem.code is Code.PATH_REFUSED


def test_only_the_kernel_that_was_seen_working_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    def unfit(_root: int, _path: str) -> tuple[int, str]:
        return os.open("/", os.O_RDONLY), "."

    openat.can_kernel_resolve.cache_clear()
    monkeypatch.setattr(openat, "open_by_kernel", unfit)
    assert openat.choose_resolver() is open_by_steps
    openat.can_kernel_resolve.cache_clear()
    monkeypatch.setattr(openat.platform, "machine", lambda: "pdp11")
    assert openat.choose_resolver() is open_by_steps
    monkeypatch.undo()
    openat.can_kernel_resolve.cache_clear()


def test_no_descriptor_is_left_open(jail: Jail, root: Path) -> None:
    (root / "out").symlink_to("../secret")
    (root / "alias").symlink_to("src/deep/b.txt")
    gc.collect()  # earlier workspaces let go of theirs now and not while we count
    before = len(os.listdir("/dev/fd"))
    for path in ("src/a.txt", "alias"):
        os.close(jail.open(path, READ))
    for path in ("out", "nothing", "src", "src/a.txt/x", ".menugate/state.db", "out/x"):
        with pytest.raises(Refusal):
            jail.open(path, READ)
    os.close(jail.open_folder("src"))
    assert len(os.listdir("/dev/fd")) == before
