"""Does a search find what is there, in order, with honest totals, and the same with either engine?"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcp_server.guards.jail import Jail
from mcp_server.guards.search.ripgrep_run import find_ripgrep
from mcp_server.guards.search.search import FileSearch
from mcp_server.model.files import Search
from mcp_server.model.results import Code, Refusal
from tests.guards.search.ground import PRIVATE

Plant = Callable[[dict[str, str | bytes]], None]
CANARY = "canary-7f3a"


def refused(call: Callable[[], Any], code: Code = Code.INVALID_ARGUMENTS) -> str:
    with pytest.raises(Refusal) as caught:
        call()
    assert caught.value.problem.code is code
    return f"{caught.value.problem.message}\n{caught.value.problem.way_out}"


def test_the_engine_is_the_one_asked_for(find: FileSearch, engine: str, plant: Plant) -> None:
    plant({"a.txt": "x"})
    assert find.grep(Search("x")).engine == engine
    assert find.glob(Search("*")).engine == engine


class TestGrep:
    def test_files(self, find: FileSearch, plant: Plant) -> None:
        plant({"b.py": "x", "a/z.py": "x", "a.py": "x", "a/b/c.py": "x", "none.py": "y"})
        found = find.grep(Search("x"))
        assert found.lines == ("a/b/c.py", "a/z.py", "a.py", "b.py")
        assert (found.total, found.files, found.complete, found.timed_out) == (4, 4, True, False)

    def test_content_with_lines_around(self, find: FileSearch, plant: Plant) -> None:
        plant({"f": "1\n2 x\n3\n4\n5\n6 x\n7 x\n8\n", "g": "x"})
        found = find.grep(Search("x", want="content", before=1, after=1))
        assert found.lines == (
            *("f-1-1", "f:2:2 x", "f-3-3", "--", "f-5-5", "f:6:6 x", "f:7:7 x", "f-8-8", "--", "g:1:x"),
        )
        assert (found.total, found.matches, found.files) == (8, 4, 2)

    def test_content_without_numbers(self, find: FileSearch, plant: Plant) -> None:
        plant({"f": "a: x"})
        assert find.grep(Search("x", want="content", line_numbers=False)).lines == ("f:a: x",)

    def test_count(self, find: FileSearch, plant: Plant) -> None:
        plant({"f": "x x\nx\ny\n", "g": "x"})
        found = find.grep(Search("x", want="count"))
        assert (found.lines, found.total, found.matches) == (("f:2", "g:1"), 2, 3)

    @pytest.mark.parametrize("want", ["files", "content", "count"])
    def test_pages_put_together_are_the_whole(self, find: FileSearch, plant: Plant, want: str) -> None:
        plant({f"f{number}": "x\ny\nx\n" for number in range(7)})
        whole = find.grep(Search("x", want=want, limit=0))
        pages = [find.grep(Search("x", want=want, limit=3, offset=at)) for at in range(0, whole.total, 3)]
        assert tuple(line for page in pages for line in page.lines) == whole.lines
        assert {page.total for page in pages} == {whole.total}
        assert find.grep(Search("x", want=want, offset=1000)).lines == ()

    def test_only_matching(self, find: FileSearch, plant: Plant) -> None:
        plant({"f": "ab12cd345\nnone\n6\n"})
        found = find.grep(Search("[0-9]+", want="content", only_matching=True, before=2))
        assert found.lines == ("f:1:12", "f:1:345", "f:3:6")

    def test_ignore_case(self, find: FileSearch, plant: Plant) -> None:
        plant({"f": "Größe"})
        assert find.grep(Search("GRÖSSE|GRÖßE", ignore_case=True)).total == 1
        assert find.grep(Search("GRÖ")).total == 0

    def test_across_lines(self, find: FileSearch, plant: Plant) -> None:
        plant({"f": "start\nmiddle\nend\nother\n"})
        search = Search("start.*?end", want="content", multiline=True)
        assert find.grep(search).lines == ("f:1:start", "f:2:middle", "f:3:end")
        assert find.grep(search).matches is not None
        assert find.grep(Search("start.*end")).total == 0

    def test_line_ends_of_windows_are_line_ends(self, find: FileSearch, plant: Plant) -> None:
        plant({"f": "one\r\ntwo\r\n"})
        assert find.grep(Search("one$", want="content")).lines == ("f:1:one",)

    def test_one_file(self, find: FileSearch, plant: Plant) -> None:
        plant({"a/f.log": "x\n", "b": "x"})
        assert find.grep(Search("x", path="a/f.log", want="content")).lines == ("a/f.log:1:x",)
        assert find.grep(Search("x", path="a/f.log")).lines == ("a/f.log",)
        assert find.grep(Search("x", path="a/f.log", want="count")).lines == ("a/f.log:1",)

    def test_a_folder_by_its_absolute_path(self, find: FileSearch, plant: Plant, root: Path) -> None:
        plant({"a/f": "x", "b/f": "x"})
        assert find.grep(Search("x", path=str(root / "a"))).lines == ("a/f",)

    def test_a_link_is_found_through_nowhere(self, find: FileSearch, plant: Plant, root: Path) -> None:
        """Whoever searches has judged a real path; a link on it was put there since."""
        plant({"a/f": "x"})
        (root / "link").symlink_to("a")
        with pytest.raises(Refusal):
            find.grep(Search("x", path="link"))
        assert find.grep(Search("x")).lines == ("a/f",)

    def test_globs_and_types(self, find: FileSearch, plant: Plant) -> None:
        plant({"a.py": "x", "b.ts": "x", "src/c.py": "x", "src/t/test_d.py": "x", "Dockerfile": "x"})
        assert find.grep(Search("x", type="py")).lines == ("a.py", "src/c.py", "src/t/test_d.py")
        assert find.grep(Search("x", globs=("src/**/*.py;!test_*",))).lines == ("src/c.py",)
        assert find.grep(Search("x", globs=("*.{ts,js}",))).lines == ("b.ts",)
        assert find.grep(Search("x", type="docker", globs=("*file",))).lines == ("Dockerfile",)
        assert find.grep(Search("x", path="src", globs=("t/*.py",))).lines == ("src/t/test_d.py",)

    def test_what_git_ignores_is_not_searched(self, find: FileSearch, plant: Plant) -> None:
        plant(
            {
                ".gitignore": "*.log\n/build/\n!keep.log\n",
                "a.log": "x",
                "keep.log": "x",
                "build/out": "x",
                "sub/.gitignore": "local\n!*.log\n",
                "sub/local": "x",
                "sub/b.log": "x",
                "sub/build/in": "x",
            }
        )
        assert find.grep(Search("x", globs=("!.gitignore",))).lines == ("keep.log", "sub/b.log", "sub/build/in")
        assert find.grep(Search("x", path="sub", globs=("!.gitignore",))).lines == ("sub/b.log", "sub/build/in")
        assert find.grep(Search("x", path="build")).lines == ("build/out",)
        assert find.grep(Search("x", path="a.log")).lines == ("a.log",)

    def test_hidden_files_are_searched_and_git_is_not(self, find: FileSearch, plant: Plant) -> None:
        plant({".github/w.yml": "x", ".hidden": "x", ".git/config": "x", "sub/.git": "x"})
        assert find.grep(Search("x")).lines == (".github/w.yml", ".hidden")

    def test_binary_files_are_skipped(self, find: FileSearch, plant: Plant) -> None:
        plant({"bin": b"x\0x\n", "sub/bin": b"x\0x\n", "text": "x", "sub/late": b"x\n" + b"y" * 70_000 + b"\0\nx\n"})
        assert find.grep(Search("x", globs=("!late",))).lines == ("text",)
        assert find.grep(Search("x", path="bin")).total == 0
        found = find.grep(Search("^x$", want="content"))
        assert found.lines == ("sub/late:1:x", "text:1:x")
        assert find.grep(Search("^x$", want="count")).lines == ("text:1",)
        assert find.grep(Search("^x$")).lines == ("sub/late", "text")

    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
    def test_files_that_say_their_encoding(self, find: FileSearch, plant: Plant, encoding: str) -> None:
        plant({"sub/f": "größe\n".encode(encoding)})
        assert find.grep(Search("^größe", want="content")).lines == ("sub/f:1:größe",)

    def test_other_encodings_do_no_harm(self, find: FileSearch, plant: Plant) -> None:
        plant({"f": "gr\xf6\xdfe x\n".encode("latin-1")})
        assert find.grep(Search("x", want="content")).lines == ("f:1:gr\\xf6\\xdfe x",)

    def test_a_line_of_two_megabytes(self, find: FileSearch, plant: Plant) -> None:
        plant({"f": "y" * 2_000_000 + "x\nshort x\n"})
        found = find.grep(Search("x", want="content"))
        assert [len(line) < 600 for line in found.lines] == [True, True]
        assert found.lines[0].startswith("f:1:yyy") and found.lines[0].endswith("[... line cut]")

    def test_a_long_line_keeps_its_first_500_characters(self, find: FileSearch, plant: Plant) -> None:
        plant({"f": "漢" * 600 + "x\n" + "字" * 499 + "x\n"})
        first, second = find.grep(Search("x", want="content")).lines
        assert first == "f:1:" + "漢" * 500 + " [... line cut]" and second == "f:2:" + "字" * 499 + "x"

    def test_secrets_are_not_searched_unless_named(self, find: FileSearch, plant: Plant) -> None:
        plant({".env": CANARY, "sub/id_rsa": CANARY, "sub/server.key": CANARY, "ok.txt": "x"})
        assert find.grep(Search(CANARY)).total == 0
        assert find.grep(Search(CANARY, path="sub")).total == 0
        assert find.grep(Search(CANARY, globs=(".env",))).total == 0
        assert find.grep(Search(CANARY, path=".env")).lines == (".env",)

    def test_names_that_look_like_options_or_outputs(self, find: FileSearch, plant: Plant) -> None:
        plant({"--files": "x", "-": "x", "a:1:b": "x", "new\nline": "x", "sp ace/f": "x", "ü": "x"})
        assert find.grep(Search("x")).lines == ("-", "--files", "a:1:b", "new\\nline", "sp ace/f", "ü")
        assert len(find.grep(Search("x", want="content")).lines) == 6

    def test_names_that_are_no_text(self, find: FileSearch, root: Path) -> None:
        Path(os.fsdecode(os.fsencode(root) + b"/b\xffad")).write_text("x")
        assert find.grep(Search("x")).lines == ("b\\xffad",)

    def test_an_unreadable_folder_is_passed_over(self, find: FileSearch, plant: Plant, root: Path) -> None:
        plant({"ok": "x"})
        os.mkfifo(root / "fifo")
        (root / "loop").symlink_to("loop")
        assert find.grep(Search("x")).lines == ("ok",)

    def test_nothing_there(self, find: FileSearch) -> None:
        found = find.grep(Search("x"))
        assert (found.lines, found.total, found.complete) == ((), 0, True)

    def test_time_runs_out_honestly(self, find: FileSearch, plant: Plant) -> None:
        plant({"f": "a" * 5000 + "!\n"})
        found = find.grep(Search(r"(a+)+\b$(?<!x)", timeout=0.2))
        assert (found.timed_out, found.complete) == (True, False)

    def test_a_pattern_that_explodes_elsewhere(self, find: FileSearch, plant: Plant) -> None:
        plant({"f": "a" * 200 + "!\n", "g": "aaa\n"})
        found = find.grep(Search("(a+)+$", timeout=5))
        assert found.lines == ("g",)

    @pytest.mark.parametrize("pattern", ["(", "[z-a]", "a{1000}{1000}{1000}", r"\p{Nonsense}", "*", "(" * 3000])
    def test_a_bad_pattern_is_explained(self, find: FileSearch, plant: Plant, pattern: str) -> None:
        plant({"f": "x"})
        message = refused(lambda: find.grep(Search(pattern)))
        assert message.startswith(f"`{pattern[:200]}") and "cannot be used as a regular expression" in message
        assert len(message) < 600 and "rg:" not in message and "regex." not in message

    @pytest.mark.parametrize(
        "pattern", ["(?=a)(?:a{20000}){1000}", "(?=a)(a(?R)?)", "(?=a)(?x)a", "(?=a)" + "(?:" * 330]
    )
    def test_a_pattern_that_would_take_all_memory_is_not_tried(
        self, find: FileSearch, plant: Plant, pattern: str
    ) -> None:
        plant({"f": "aaa"})
        assert "cannot be used as a regular expression: it" in refused(lambda: find.grep(Search(pattern)))

    def test_looking_around_works(self, find: FileSearch, plant: Plant) -> None:
        plant({"f": "foobar\nfoobaz\n"})
        assert find.grep(Search("foo(?!bar)", want="content")).lines == ("f:2:foobaz",)
        assert find.grep(Search(r"(o)\1", path="f", want="count")).lines == ("f:2",)

    def test_an_unknown_type_names_the_nearest(self, find: FileSearch) -> None:
        assert "`py`" in refused(lambda: find.grep(Search("x", type="pyy")))


class TestGlob:
    def test_newest_first_then_by_path(self, find: FileSearch, plant: Plant, root: Path) -> None:
        plant({"old.py": "", "b.py": "", "a/a.py": "", "new.py": "", "no.txt": ""})
        for age, path in enumerate(["new.py", "b.py", "a/a.py", "old.py"]):
            when = 10**18 - (10**9 * age if path != "a/a.py" else 10**9)
            os.utime(root / path, ns=(when, when))
        found = find.glob(Search("*.py"))
        assert found.lines == ("new.py", "a/a.py", "b.py", "old.py")
        assert (found.total, found.complete) == (4, True)

    def test_pages(self, find: FileSearch, plant: Plant) -> None:
        plant({f"f{number:02}": "" for number in range(10)})
        pages = [find.glob(Search("*", limit=4, offset=at)) for at in (0, 4, 8)]
        assert sorted(line for page in pages for line in page.lines) == [f"f{number:02}" for number in range(10)]
        assert [page.total for page in pages] == [10, 10, 10]

    def test_below_a_folder(self, find: FileSearch, plant: Plant, root: Path) -> None:
        plant({"src/a.py": "", "src/deep/b.py": "", "c.py": ""})
        assert sorted(find.glob(Search("*.py", path="src")).lines) == ["src/a.py", "src/deep/b.py"]
        assert find.glob(Search("deep/*", path="src")).lines == ("src/deep/b.py",)
        assert find.glob(Search(f"{root}/src/deep/*.py")).lines == ("src/deep/b.py",)
        assert find.glob(Search(f"{root}/src/deep/*.py", path="src")).lines == ("src/deep/b.py",)

    def test_several_patterns(self, find: FileSearch, plant: Plant) -> None:
        plant({"a.py": "", "b.js": "", "c.ts": ""})
        assert sorted(find.glob(Search("*.py; *.js")).lines) == ["a.py", "b.js"]

    def test_what_is_left_out(self, find: FileSearch, plant: Plant, root: Path) -> None:
        plant({".gitignore": "out/\n", "out/a": "", ".env": "", ".git/x": "", f"{PRIVATE}/state.db": "", ".h/a": ""})
        (root / "link").symlink_to(".env")
        assert sorted(find.glob(Search("**")).lines) == [".env", ".gitignore", ".h/a"]

    @pytest.mark.parametrize("pattern", ["../*", "a/../../b", "/etc/*", "", " ; ", "{a,b}" * 7, "x" * 2000])
    def test_a_bad_pattern_is_explained(self, find: FileSearch, pattern: str) -> None:
        assert refused(lambda: find.glob(Search(pattern)))

    def test_a_file_is_no_folder(self, find: FileSearch, plant: Plant) -> None:
        plant({"f": ""})
        assert "`f` is a file" in refused(lambda: find.glob(Search("*", path="f")))


class TestWalls:
    @pytest.mark.parametrize("path", ["..", "/etc", "~", "../ws-evil", "file:///etc", "a\0b"])
    def test_outside_is_refused(self, find: FileSearch, root: Path, path: str) -> None:
        (root.parent / "ws-evil").mkdir()
        refused(lambda: find.grep(Search("x", path=path)), Code.PATH_REFUSED)
        refused(lambda: find.glob(Search("*", path=path)), Code.PATH_REFUSED)

    def test_nothing_there(self, find: FileSearch) -> None:
        assert "`nope`" in refused(lambda: find.grep(Search("x", path="nope")), Code.NOT_FOUND)

    def test_links_out_are_not_followed(self, find: FileSearch, plant: Plant, root: Path) -> None:
        outside = root.parent / "outside"
        outside.mkdir()
        (outside / "f").write_text(CANARY)
        plant({"ok": "x"})
        (root / "folder").symlink_to(outside)
        (root / "file").symlink_to(outside / "f")
        assert find.grep(Search(CANARY)).total == 0
        assert find.glob(Search("**")).lines == ("ok",)
        refused(lambda: find.grep(Search(CANARY, path="folder")), Code.PATH_REFUSED)
        refused(lambda: find.grep(Search(CANARY, path="file")), Code.PATH_REFUSED)

    def test_another_name_of_a_file_outside_is_not_searched(self, find: FileSearch, plant: Plant, root: Path) -> None:
        secret = root.parent / "secret"
        secret.write_text(CANARY)
        (root / "sub").mkdir()
        os.link(secret, root / "hard")
        os.link(secret, root / "sub" / "hard")
        assert find.grep(Search(CANARY)).total == 0
        assert find.grep(Search(CANARY, want="content")).lines == ()

    @pytest.mark.parametrize("nested", [False, True])
    def test_our_own_state_is_neither_searched_nor_listed(self, engine: str, root: Path, nested: bool) -> None:
        home = root / "tools/deep" if nested else root
        (home / PRIVATE / "results").mkdir(parents=True)
        (home / PRIVATE / "token").write_text(CANARY)
        (home / "beside").write_text("x")
        (root / "other").mkdir()
        (root / "other/f").write_text("x")
        find = _with_private(root, home / PRIVATE, engine)
        assert find.grep(Search(CANARY)).total == 0
        assert PRIVATE not in str(find.glob(Search("**")).lines)
        assert find.grep(Search("x", globs=("beside;f",))).total == 2
        ours = f"tools/deep/{PRIVATE}" if nested else PRIVATE
        refused(lambda: find.grep(Search(CANARY, path=ours)), Code.PATH_REFUSED)
        refused(lambda: find.grep(Search(CANARY, path=f"{ours}/token")), Code.PATH_REFUSED)

    def test_a_folder_with_very_many_entries_beside_our_own(self, find: FileSearch, root: Path) -> None:
        for number in range(2100):
            (root / f"f{number}").write_text("x")
        assert find.grep(Search("x")).total == 2100

    @pytest.mark.parametrize(
        "value", ["--pre=./evil", "--hostname-bin=./evil", "-f/etc/passwd", "--files", "-", "--", "-x"]
    )
    def test_no_value_is_ever_an_option(self, find: FileSearch, plant: Plant, root: Path, value: str) -> None:
        plant({"evil": f"#!/bin/sh\ntouch {root}/PWN\ncat", "f": f"see {value} here\n"})
        (root / "evil").chmod(0o755)
        assert find.grep(Search(value, globs=("f",))).lines == ("f",)
        assert find.grep(Search("here", globs=(value,))).total == 0
        refused(lambda: find.grep(Search("here", type=value)))
        refused(lambda: find.grep(Search("here", path=value)), Code.NOT_FOUND)
        find.glob(Search(value))
        assert not (root / "PWN").exists()

    def test_no_configuration_from_outside(
        self, find: FileSearch, plant: Plant, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        plant({"evil": f"#!/bin/sh\ntouch {root}/PWN\ncat", "rc": "--pre\n./evil\n--no-ignore\n", "f": "x"})
        (root / "evil").chmod(0o755)
        monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(root / "rc"))
        monkeypatch.chdir(root)
        assert find.grep(Search("^x$")).lines == ("f",)
        assert not (root / "PWN").exists()


def _with_private(root: Path, private: Path, engine: str) -> FileSearch:
    return FileSearch(Jail(root, (private,)), (private,), find_ripgrep("", root) if engine == "ripgrep" else None)


def test_the_program_is_never_looked_for_in_the_workspace(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy("/bin/true", root / "rg")
    monkeypatch.chdir(root)
    assert find_ripgrep(".:bin::", tmp_path / "work") != root / "rg"
    assert find_ripgrep(str(root), tmp_path / "work") == root / "rg"
    assert find_ripgrep(str(root), root) != root / "rg", "a command may have planted it"
    assert find_ripgrep("", tmp_path / "work", root / "rg") == root / "rg"
    assert find_ripgrep("", tmp_path / "work", root / "missing") is None


@pytest.mark.parametrize("program", ["/etc/passwd", "/bin/sleep", "/usr/bin/env"])
def test_a_program_that_does_not_work_is_done_without(root: Path, program: str) -> None:
    (root / "f").write_text("x")
    shutil.copy(program, root.parent / "rg")

    find = FileSearch(Jail(root), (), root.parent / "rg")
    assert find.grep(Search("x")).lines == ("f",)
    assert find.glob(Search("*")).lines == ("f",)
