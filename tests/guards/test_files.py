"""Does reading, writing and taking away do what it says, and nothing to anybody else's file?"""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec.structs import replace

from mcp_server.guards import atomic
from mcp_server.guards.atomic import Spot, Trash
from mcp_server.guards.file_reads import MOST_ENTRIES
from mcp_server.guards.files import WorkspaceFiles
from mcp_server.guards.jail import Jail
from mcp_server.guards.openat import Resolve, choose_resolver, open_by_steps
from mcp_server.model.files import Search, SearchResult, Stamp
from mcp_server.model.posture import Profile
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.tools import Demand, Effect

READ = Demand(Effect.READ_LOCAL, Profile.RESTRICTED)
WRITE = Demand(Effect.WRITE_LOCAL, Profile.NORMAL)
DESTROY = Demand(Effect.DESTROY_LOCAL, Profile.TRUSTED)
SURE = Demand(Effect.DESTROY_LOCAL, Profile.TRUSTED, confirm="the person said yes")
EVERYTHING = 1 << 20


@dataclass
class Memory:
    stamps: dict[str, Stamp] = field(default_factory=dict[str, Stamp])

    def remember(self, path: str, stamp: Stamp) -> None:
        self.stamps[path] = stamp

    def recall(self, path: str) -> Stamp | None:
        return self.stamps.get(path)


@dataclass
class Echo:
    """Finds what it was asked for: enough to see what reaches a finder."""

    def grep(self, search: Search) -> SearchResult:
        return SearchResult((search.path,), 1, True)

    glob = grep


def files_over(root: Path, resolve: Resolve) -> WorkspaceFiles:
    state = root / ".menugate"
    state.mkdir(parents=True, exist_ok=True)
    jail = Jail(root, (state,), resolve=resolve)
    return WorkspaceFiles(jail, Trash(state / "trash"), Memory(), Echo())


@pytest.fixture(params=[choose_resolver(), open_by_steps], ids=["chosen", "steps"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> WorkspaceFiles:
    root = tmp_path / "work"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.txt").write_text("one\n")
    (tmp_path / "outside").mkdir()
    return files_over(root, request.param)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "work"


@pytest.fixture(params=["one step", "two steps"])
def renaming(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "two steps":
        monkeypatch.setattr(atomic, "_load_rename", lambda: None)


def problem(act: Callable[[], object]) -> Problem:
    with pytest.raises(Refusal) as caught:
        act()
    return caught.value.problem


def tree(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text() if path.is_file() else ""
        for path in sorted(folder.rglob("*"))
        if ".menugate" not in path.parts
    }


# Reading


def test_what_is_read_comes_with_its_stamp_and_its_real_path(files: WorkspaceFiles, root: Path) -> None:
    (root / "alias").symlink_to("src/a.txt")
    snapshot = files.read("alias", EVERYTHING)
    assert (snapshot.path, snapshot.data, snapshot.whole) == ("src/a.txt", b"one\n", True)
    assert snapshot.stamp.size == 4
    assert snapshot.stamp.is_same_as(files.read(str(root / "src" / "a.txt"), EVERYTHING).stamp)


@pytest.mark.parametrize(
    ("start", "limit", "data", "whole"),
    [
        (0, 100, b"0123456789", True),
        (0, 10, b"0123456789", True),
        (0, 9, b"012345678", False),
        (4, 3, b"456", False),
        (-3, 100, b"789", False),
        (-99, 100, b"0123456789", True),
        (50, 5, b"", False),
    ],
)
def test_a_part_is_read_and_said_to_be_one(
    files: WorkspaceFiles, root: Path, start: int, limit: int, data: bytes, whole: bool
) -> None:
    (root / "digits").write_bytes(b"0123456789")
    snapshot = files.read("digits", limit, start)
    assert (snapshot.data, snapshot.whole, snapshot.stamp.size) == (data, whole, 10)
    assert bool(snapshot.stamp.digest) is whole


def test_a_sparse_terabyte_costs_what_was_asked_for(files: WorkspaceFiles, root: Path) -> None:
    with (root / "huge").open("wb") as file:
        file.truncate(1 << 40)
    snapshot = files.read("huge", 1000)
    assert (len(snapshot.data), snapshot.whole, snapshot.stamp.size) == (1000, False, 1 << 40)


def test_entries_are_sorted_and_neither_follow_links_nor_show_our_state(files: WorkspaceFiles, root: Path) -> None:
    (root / "src" / "deep").mkdir()
    (root / "src" / "deep" / "b").write_text("")
    (root / "link").symlink_to("..")
    os.mkfifo(root / "fifo")
    found = [(entry.path, entry.kind) for entry in files.list_folder(".", depth=9)]
    assert found == [
        ("fifo", "other"),
        ("link", "link"),
        ("src", "directory"),
        ("src/a.txt", "file"),
        ("src/deep", "directory"),
        ("src/deep/b", "file"),
    ]
    assert [entry.path for entry in files.list_folder("src")] == ["src/a.txt", "src/deep"]
    assert problem(lambda: files.list_folder("link")).code is Code.PATH_REFUSED
    assert problem(lambda: files.list_folder("src/a.txt")).code is Code.NOT_FOUND


def test_a_folder_beyond_counting_is_refused(
    files: WorkspaceFiles, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_server.guards.file_reads.MOST_ENTRIES", 3)
    for number in range(4):
        (root / "src" / str(number)).write_text("")
    assert problem(lambda: files.list_folder("src")).code is Code.TOO_LARGE
    assert MOST_ENTRIES > 3


def test_info_speaks_of_the_link_itself(files: WorkspaceFiles, root: Path) -> None:
    (root / "out").symlink_to("/etc/passwd")
    assert files.get_info("out").kind == "link"
    assert files.get_info("src").kind == "directory"
    assert files.get_info("src/a.txt").size == 4
    assert problem(lambda: files.get_info("nothing")).code is Code.NOT_FOUND


# Writing


def test_a_new_file_gets_its_folders_and_the_usual_mode(files: WorkspaceFiles, root: Path, renaming: None) -> None:
    mask = os.umask(0o027)
    try:
        entry = files.limit_to_grant(WRITE).write("new/deep/b.txt", b"two", None)
        files.limit_to_grant(WRITE).write("script", b"#!", None, mode=0o755)
    finally:
        os.umask(mask)
    assert (entry.path, entry.size, entry.mode) == ("new/deep/b.txt", 3, 0o640)
    assert files.get_info("script").mode == 0o755
    assert tree(root) == {"new": "", "new/deep": "", "new/deep/b.txt": "two", "script": "#!", "src": ""} | {
        "src/a.txt": "one\n"
    }


def test_nobody_is_overwritten_by_a_new_file(files: WorkspaceFiles, root: Path, renaming: None) -> None:
    (root / "dangling").symlink_to("nowhere")
    before = tree(root)
    assert problem(lambda: files.limit_to_grant(WRITE).write("src/a.txt", b"x", None)).code is Code.ALREADY_EXISTS
    assert problem(lambda: files.limit_to_grant(WRITE).write("src", b"x", None)).code is Code.ALREADY_EXISTS
    assert problem(lambda: files.limit_to_grant(WRITE).write("dangling", b"x", None)).code is Code.PATH_REFUSED
    assert problem(lambda: files.limit_to_grant(WRITE).write("src/a.txt/b", b"x", None)).code is Code.ALREADY_EXISTS
    assert tree(root) == before


def test_whoever_comes_first_keeps_the_name(
    files: WorkspaceFiles, root: Path, renaming: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(folder: int, data: bytes, replaced: os.stat_result | None, mode: int | None) -> str:
        name = atomic.write_draft(folder, data, replaced, mode)
        (root / "src" / "new").write_text("somebody else's")
        return name

    monkeypatch.setattr("mcp_server.guards.files.write_draft", slow)
    assert problem(lambda: files.limit_to_grant(WRITE).write("src/new", b"mine", None)).code is Code.ALREADY_EXISTS
    assert tree(root)["src/new"] == "somebody else's"
    assert len(tree(root)) == 3


def tag(path: Path) -> bool:
    """Not every system and disk can."""
    try:
        os.setxattr(path, "user.tag", b"red")
    except (AttributeError, OSError):
        return False
    return True


def test_replacing_keeps_what_belongs_to_the_file(files: WorkspaceFiles, root: Path) -> None:
    path = root / "src" / "a.txt"
    path.chmod(0o6750)
    tagged = tag(path)
    (root / "alias").symlink_to("src/a.txt")
    files.limit_to_grant(WRITE).write("alias", b"new", files.read("alias", EVERYTHING).stamp)
    assert path.read_text() == "new"
    assert (root / "alias").is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o750, "the old content's setuid is not the new one's"
    assert not tagged or os.getxattr(path, "user.tag") == b"red"
    assert sorted(tree(root)) == ["alias", "src", "src/a.txt"]


def test_what_changed_meanwhile_is_not_replaced(
    files: WorkspaceFiles, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, stamp = files.limit_to_grant(WRITE), files.read("src/a.txt", EVERYTHING).stamp

    def slow(folder: int, data: bytes, replaced: os.stat_result | None, mode: int | None) -> str:
        name = atomic.write_draft(folder, data, replaced, mode)
        (root / "src" / "a.txt").write_text("ONE\n")
        return name

    monkeypatch.setattr("mcp_server.guards.files.write_draft", slow)
    assert problem(lambda: writer.write("src/a.txt", b"new", stamp)).code is Code.STALE
    monkeypatch.undo()
    assert problem(lambda: writer.write("src/a.txt", b"new", stamp)).code is Code.STALE
    assert tree(root) == {"src": "", "src/a.txt": "ONE\n"}
    (root / "src" / "a.txt").unlink()
    assert problem(lambda: writer.write("src/a.txt", b"new", stamp)).code is Code.STALE


def test_a_file_that_was_only_touched_is_the_same_file(files: WorkspaceFiles, root: Path) -> None:
    stamp = files.read("src/a.txt", EVERYTHING).stamp
    os.utime(root / "src" / "a.txt", ns=(1, 1))
    files.limit_to_grant(WRITE).write("src/a.txt", b"new", stamp)
    assert (root / "src" / "a.txt").read_text() == "new"


def test_folders_are_made_once(files: WorkspaceFiles, root: Path) -> None:
    for _ in range(2):
        assert files.limit_to_grant(WRITE).make_folder("x/y/z").path == "x/y/z"
    assert problem(lambda: files.limit_to_grant(WRITE).make_folder("src/a.txt")).code is Code.ALREADY_EXISTS
    (root / "out").symlink_to("../outside")
    (root / "dangling").symlink_to("../outside/new")
    assert problem(lambda: files.limit_to_grant(WRITE).make_folder("out/new")).code is Code.PATH_REFUSED
    assert problem(lambda: files.limit_to_grant(WRITE).make_folder("dangling/new")).code is Code.PATH_REFUSED
    assert list((root.parent / "outside").iterdir()) == []


# Moving and taking away


def test_things_move_and_nothing_gives_way(files: WorkspaceFiles, root: Path, renaming: None) -> None:
    mover = files.limit_to_grant(WRITE)
    (root / "b.txt").write_text("two")
    (root / "link").symlink_to("../outside")
    assert problem(lambda: mover.move("b.txt", "src/a.txt")).code is Code.ALREADY_EXISTS
    assert problem(lambda: mover.move("b.txt", "src")).code is Code.ALREADY_EXISTS
    assert problem(lambda: mover.move("b.txt", "link")).code is Code.ALREADY_EXISTS
    assert problem(lambda: mover.move("src", "src/a.txt")).code is Code.ALREADY_EXISTS
    assert problem(lambda: mover.move("src", "src/below")).code is Code.PATH_REFUSED
    assert problem(lambda: mover.move("nothing", "x/y")).code is Code.NOT_FOUND
    assert tree(root) == {"b.txt": "two", "link": "", "src": "", "src/a.txt": "one\n"}
    assert mover.move("b.txt", "new/c.txt").path == "new/c.txt"
    mover.move("src", "lib")
    mover.move("link", "new/link")
    assert tree(root) == {"lib": "", "lib/a.txt": "one\n", "new": "", "new/c.txt": "two", "new/link": ""}
    assert (root / "new" / "link").is_symlink()


def test_nothing_is_put_unasked_where_no_secret_is_hidden(files: WorkspaceFiles, root: Path) -> None:
    (root / "node_modules" / "here").mkdir(parents=True)
    (root / "other").symlink_to("node_modules")
    mover = files.limit_to_grant(WRITE)
    for new in ("node_modules/src", "other/src", "venv"):
        assert problem(lambda new=new: mover.move("src", new)).code is Code.PATH_REFUSED
    assert mover.move("node_modules/here", "node_modules/there").path == "node_modules/there"
    assert mover.move("node_modules/there", "there").path == "there"
    asked = files.limit_to_grant(replace(WRITE, confirm="why"))
    assert asked.move("src", "node_modules/src").path == "node_modules/src"


def test_nothing_moves_over_the_edge(files: WorkspaceFiles, root: Path) -> None:
    mover = files.limit_to_grant(WRITE)
    (root / "out").symlink_to("../outside")
    for old, new in (("src/a.txt", "../a.txt"), ("src/a.txt", "out/a.txt"), ("../outside", "in"), (".", "x")):
        assert problem(lambda old=old, new=new: mover.move(old, new)).code is Code.PATH_REFUSED
    assert list((root.parent / "outside").iterdir()) == []
    for state in (".menugate", ".menugate/trash"):
        assert problem(lambda state=state: mover.move(state, "x")).code in (Code.PATH_REFUSED, Code.NOT_FOUND)
        assert problem(lambda state=state: mover.move("src/a.txt", f"{state}/x")).code is Code.PATH_REFUSED


def test_the_folder_our_state_lies_in_stays(root: Path) -> None:
    state = root / "a" / "b" / "state"
    state.mkdir(parents=True)
    files = WorkspaceFiles(Jail(root, (state,)), Trash(state / "trash"), Memory(), Echo()).limit_to_grant(WRITE)
    for folder in ("a", "a/b", "a/b/state"):
        assert "own state" in problem(lambda folder=folder: files.move(folder, "c")).message


def test_what_is_trashed_can_be_had_back(files: WorkspaceFiles, root: Path) -> None:
    (root / "empty").mkdir()
    (root / "link").symlink_to("src")
    for path in ("src/a.txt", "empty", "link"):
        place = Path(files.limit_to_grant(DESTROY).trash(path))
        assert place.is_relative_to(root / ".menugate" / "trash")
        assert str(place).endswith("/" + path)
        assert place.is_symlink() if path == "link" else place.exists()
    assert tree(root) == {"src": ""}


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no second file system to trash to")
def test_the_trash_may_lie_on_another_disk(files: WorkspaceFiles, root: Path) -> None:
    from tempfile import TemporaryDirectory

    (root / "src" / "a.txt").chmod(0o640)
    (root / "empty").mkdir()
    (root / "link").symlink_to("nowhere")
    with TemporaryDirectory(dir="/dev/shm") as elsewhere:
        far = WorkspaceFiles(files.jail, Trash(Path(elsewhere) / "trash"), Memory(), Echo()).limit_to_grant(DESTROY)
        assert Path(far.trash("src/a.txt")).read_text() == "one\n"
        assert Path(far.trash("empty")).is_dir()
        assert Path(far.trash("link")).readlink() == Path("nowhere")
    assert tree(root) == {"src": ""}


def test_only_files_and_empty_folders_are_taken_away(files: WorkspaceFiles, root: Path) -> None:
    os.mkfifo(root / "fifo")
    (root / "out").symlink_to("../outside")
    (root.parent / "outside" / "x").write_text("")
    destroyer = files.limit_to_grant(DESTROY)
    for take in (destroyer.trash, destroyer.remove):
        assert "not empty" in problem(lambda take=take: take("src")).message
        assert "FIFO" in problem(lambda take=take: take("fifo")).message
        assert "workspace itself" in problem(lambda take=take: take(".")).message
        assert problem(lambda take=take: take("out/x")).code is Code.PATH_REFUSED
        assert problem(lambda take=take: take(".menugate")).code is Code.PATH_REFUSED
        assert problem(lambda take=take: take("nothing")).code is Code.NOT_FOUND
    destroyer.remove("src/a.txt")
    destroyer.remove("src")
    destroyer.remove("out")
    assert tree(root) == {"fifo": ""}
    assert tree(root.parent / "outside") == {"x": ""}


# The grant


CHANGES: dict[str, Callable[[WorkspaceFiles], object]] = {
    "write": lambda files: files.write("new", b"", None),
    "replace": lambda files: files.write("src/a.txt", b"", files.read("src/a.txt", 9).stamp),
    "make_folder": lambda files: files.make_folder("new"),
    "move": lambda files: files.move("src/a.txt", "new"),
    "trash": lambda files: files.trash("src/a.txt"),
    "remove": lambda files: files.remove("src/a.txt"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("effect", Effect)
def test_a_call_does_no_more_than_it_was_granted(
    files: WorkspaceFiles, root: Path, change: str, effect: Effect
) -> None:
    reading = {Effect.NONE, Effect.SESSION, Effect.READ_LOCAL, Effect.READ_REMOTE, Effect.SPEND}
    allowed = effect is Effect.DESTROY_LOCAL if change in ("trash", "remove") else effect not in reading
    before, held = tree(root), files.limit_to_grant(Demand(effect, Profile.UNRESTRICTED))
    if allowed:
        CHANGES[change](held)
        assert tree(root) != before
    else:
        assert problem(lambda: CHANGES[change](held)).code is Code.NOT_GRANTED
        assert tree(root) == before


def test_without_a_grant_nothing_is_changed(files: WorkspaceFiles) -> None:
    for change in CHANGES.values():
        assert problem(lambda change=change: change(files)).code is Code.NOT_GRANTED


@pytest.fixture
def guarded(files: WorkspaceFiles, root: Path) -> WorkspaceFiles:
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / ".git" / "config").write_text("[core]\n")
    (root / ".env").write_text("KEY=1\n")
    (root / "innocent").symlink_to(".git/config")
    (root / "folder").symlink_to(".git")
    (root / "notes.txt").symlink_to(".env")
    return files


@pytest.mark.parametrize("path", [".git/config", "src/../.git/config", "innocent", "folder/config", ".git/./config"])
def test_protected_places_need_a_yes_however_they_are_reached(guarded: WorkspaceFiles, root: Path, path: str) -> None:
    stamp = guarded.read(path, EVERYTHING).stamp
    refused = problem(lambda: guarded.limit_to_grant(WRITE).write(path, b"[evil]", stamp))
    assert refused.code is Code.PATH_REFUSED
    assert "approval" in refused.message
    assert (root / ".git" / "config").read_text() == "[core]\n"
    guarded.limit_to_grant(SURE).write(path, b"[fine]", stamp)
    assert (root / ".git" / "config").read_text() == "[fine]"


def test_every_way_of_changing_a_protected_place_needs_the_yes(guarded: WorkspaceFiles, root: Path) -> None:
    ways: list[Callable[[WorkspaceFiles], object]] = [
        lambda files: files.write("folder/hooks/pre-commit", b"#!", None),
        lambda files: files.make_folder("folder/new"),
        lambda files: files.move("src/a.txt", "folder/hooks/pre-commit"),
        lambda files: files.move("folder/config", "config"),
        lambda files: files.move(".git", "git"),
        lambda files: files.move(".env", "plain.txt"),
        lambda files: files.trash("folder/config"),
        lambda files: files.remove("folder/config"),
    ]
    before = tree(root)
    for way in ways:
        assert "approval" in problem(lambda way=way: way(guarded.limit_to_grant(DESTROY))).message
        assert tree(root) == before


def test_secrets_need_a_yes_however_they_are_reached(guarded: WorkspaceFiles) -> None:
    for path in (".env", "notes.txt", "src/../.env"):
        assert "secrets" in problem(lambda path=path: guarded.limit_to_grant(READ).read(path, 9)).message
        assert guarded.limit_to_grant(SURE).read(path, 9).data == b"KEY=1\n"
        assert "secrets" in problem(lambda path=path: guarded.limit_to_grant(READ).grep(Search("x", path))).message
    assert "`.env`" in problem(lambda: guarded.read("notes.txt", 9)).way_out


def test_what_a_session_saw_is_kept_under_the_real_path(files: WorkspaceFiles, root: Path) -> None:
    (root / "alias").symlink_to("src/a.txt")
    alias = files.read("alias", EVERYTHING)
    stamp = alias.stamp
    files.remember(alias.path, stamp)
    assert files.recall(str(root / "src" / "a.txt")) == stamp
    assert files.limit_to_grant(WRITE, seen=Memory()).recall("src/a.txt") is None


def test_searches_stay_inside(files: WorkspaceFiles, root: Path) -> None:
    assert files.grep(Search("x", str(root / "src"))).lines == ("src",)
    assert files.glob(Search("x")).lines == (".",)
    for look in (files.grep, files.glob):
        assert problem(lambda look=look: look(Search("x", "../outside"))).code is Code.PATH_REFUSED


def test_two_steps_never_leave_two_names(root: Path) -> None:
    root.mkdir()
    folder = os.open(root, os.O_RDONLY)
    try:
        (root / "a").write_text("a")
        (root / "b").write_text("b")
        (root / "full" / "x").mkdir(parents=True)
        spot: Callable[[str], Spot] = lambda name: (folder, name)  # noqa: E731  # reads better than a def here
        for old, new in (("a", "b"), ("full", "b"), ("full", "a")):
            with pytest.raises(FileExistsError):
                atomic.rename_in_two_steps(spot(old), spot(new))
        atomic.rename_in_two_steps(spot("a"), spot("c"))
        atomic.rename_in_two_steps(spot("full"), spot("moved"))
        assert sorted(os.listdir(root)) == ["b", "c", "moved"]
        assert (root / "c").stat().st_nlink == 1
    finally:
        os.close(folder)
