"""Can a model change what menugate itself runs from? By a program, by every file tool, by git, at each kind of install.

The workspace holds the copy of menugate that serves it. Whatever was changed there, the server or the person's next
command would run outside every sandbox.
"""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import mcp_server
from tests.clients.clients import ERAS
from tests.clients.nobody import NOBODY, python
from tests.clients.pipe import Pipe
from tests.clients.served import PATIENCE, environment
from tests.guards.processes.ground import SANDBOXES, sandbox

PACKAGES = ("mcp_server", "tools", "menus", "prompts")
HOUSE = Path(mcp_server.__file__).parents[1]
LIBRARIES = [one for one in sys.path if Path(one).name in ("site-packages", "dist-packages")]
SITE = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
SCRIPT = "import sys\nfrom mcp_server.cli.main import main\nsys.exit(main())\n"
UNSHELTERED = "import mcp_server.guards.processes.choose as one\none.find_bubblewrap = lambda *_: None\n"
"""Put before a start: bubblewrap is not found, and the next sandbox is taken."""
VICTIM = "mcp_server/cli/approvals.py"
ATTACK = """
import os, shutil, sys
place, victim = sys.argv[1:]
top = place.split("/")[0]
packages = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(victim))))
evil = "open('/tmp/owned', 'w')\\n"
def write(path, text=evil, how="w"):
    with open(path, how) as file:
        file.write(text)
def second_name():
    os.link(victim, "second.py")
    write("second.py", how="a")
def replaced():
    write("other.py")
    os.replace("other.py", victim)
def elsewhere():
    os.rename(top, "moved")
    os.makedirs(os.path.dirname(victim))
    write(victim)
for act in (
    lambda: write(victim, how="a"),
    replaced,
    lambda: os.unlink(victim),
    second_name,
    lambda: os.chmod(victim, 0o777),
    lambda: write(packages + "/sitecustomize.py"),
    lambda: write(packages + "/json.py"),
    lambda: write(packages + "/evil.pth", "import os; os.system('touch owned')\\n"),
    lambda: os.mkdir(packages + "/rs_bpe"),
    lambda: os.symlink("/tmp", packages + "/opentelemetry"),
    lambda: os.rename(packages + "/mcp_server", packages + "/mcp_server2"),
    lambda: os.rename(packages, "taken"),
    lambda: os.rename(place, "gone"),
    lambda: shutil.rmtree(packages + "/tools"),
    elsewhere,
):
    try:
        act()
        print("DONE")
    except OSError as error:
        print(error)
sys.exit(1)
"""

THROUGH = """
try:
    open({name!r}, "a").write("# evil")
except OSError as error:
    print(error)
try:
    os.replace({name!r}, "src/taken.py")
    open("src/taken.py", "a").write("# evil")
except OSError as error:
    print(error)
"""


def grown(place: Path, rights: bool = True) -> dict[str, str]:
    """Everything there is below, with what is in it."""
    found: dict[str, str] = {}
    for path in sorted(place.rglob("*")):
        if "__pycache__" in path.parts:
            continue
        mode = path.lstat().st_mode if rights else stat.S_IFMT(path.lstat().st_mode)
        content = str(path.readlink()) if path.is_symlink() else ""
        if path.is_file() and not path.is_symlink():
            content = sha256(path.read_bytes()).hexdigest()
        found[str(path.relative_to(place))] = f"{mode:o} {content}"
    return found


def copied(to: Path) -> None:
    for name in PACKAGES:
        shutil.copytree(HOUSE / name, to / name, ignore=shutil.ignore_patterns("__pycache__"))


def environment_at(place: Path, *paths: Path | str, program: str = sys.executable) -> Path:
    """An environment without menugate in it; `paths` are looked through for it and for what it needs."""
    subprocess.run([program, "-m", "venv", "--without-pip", str(place)], check=True)
    (place / SITE / "found.pth").write_text("".join(f"{one}\n" for one in (*paths, *LIBRARIES)))
    (place / "bin" / "menugate").write_text(f"#!{place}/bin/python\n{SCRIPT}")
    (place / "bin" / "menugate").chmod(0o755)
    return place / "bin" / "menugate"


@dataclass
class Copy:
    """One copy of menugate, and how it is started."""

    work: Path
    home: Path
    argv: list[str]
    env: dict[str, str] = field(default_factory=dict[str, str])
    cwd: Path | None = None
    user: int | None = None
    site: str = f".venv/{SITE}"
    """Where its packages lie, below the workspace."""

    @property
    def victim(self) -> Path:
        return self.work / self.site / VICTIM

    def started(self, *words: str) -> "subprocess.Popen[bytes]":
        kept = {name: value for name, value in environment(self.home).items() if name != "PYTHONPATH"}
        argv = [*self.argv, *words, "--workspace", str(self.work)]
        return subprocess.Popen(
            argv,
            env=kept | self.env,
            cwd=self.cwd or self.home,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            user=self.user,
            group=self.user,
            extra_groups=None if self.user is None else [],
        )

    @contextmanager
    def serving(self, *flags: str, era: str = "legacy") -> Generator[Pipe]:
        process = self.started("serve", *flags)
        try:
            one = Pipe(process)
            one.hello("mcp", era)
            yield one
        finally:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                assert stream is not None
                with suppress(BrokenPipeError):
                    stream.close()

    def typed(self, *words: str) -> str:
        out, err = self.started(*words).communicate(timeout=60)
        return out.decode() + err.decode()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    (made / "src").mkdir(parents=True)
    (made / "src" / "app.py").write_text("print('app')\n")
    return made


@pytest.fixture
def copy(work: Path, home: Path) -> Copy:
    """In an environment of the project, as `pip install menugate` in it leaves it."""
    script = environment_at(work / ".venv")
    copied(work / ".venv" / SITE)
    return Copy(work, home, [str(script)])


def shut_in_by(name: str, one: Copy) -> Copy:
    """The same, in this sandbox."""
    if sandbox(name) is None:
        pytest.skip(f"there is no {name} here")
    if name == "landlock":
        start = one.home / "start.py"
        start.write_text(UNSHELTERED + SCRIPT)
        one.argv = [str(Path(one.argv[0]).with_name("python")), str(start)]
    return one


def said(answer: dict[str, Any]) -> str:
    return answer["content"][0]["text"]


def ran(one: Pipe, line: str) -> str:
    return said(one.call("bash", command=line))


def unasked(one: Pipe, copy: Copy, line: str) -> str:
    """Any line, by a program: `python3 file` is known to build or test, and nobody is asked about it."""
    (copy.work / "src" / "run.py").write_text(f"import os, sys\nsys.exit(os.system({line!r}) != 0)\n")
    return ran(one, "python3 src/run.py")


def attacked(one: Pipe, copy: Copy) -> str:
    """What found.md says, and everything near it: a program is written, and then run, unasked."""
    one.call("menu_enter", mode="swe")
    # At the top and below: one sandbox lets nothing new be made at the top, and a program need not lie there.
    written = one.call("Write", file_path="src/x.py", content=ATTACK)
    assert not written["isError"], said(written)
    place = copy.site.split("/")[0]
    return ran(one, f"python3 src/x.py {place} {copy.site}/{VICTIM}")


@pytest.mark.parametrize("name", SANDBOXES)
def test_a_program_changes_nothing_that_menugate_runs_from(copy: Copy, name: str) -> None:
    rights = name == "bubblewrap"  # Landlock knows nothing of who may do what with a file
    before = grown(copy.work / ".venv", rights)
    with shut_in_by(name, copy).serving() as one:
        tried = attacked(one, copy)
        assert grown(copy.work / ".venv", rights) == before, tried
        assert tried.count("DONE") == (0 if rights else 1)
        assert "runs from `.venv`" in tried and "`unrestricted`" in tried
        assert name in copy.typed("status")
    assert "No pending approvals" in copy.typed("approvals")


@pytest.mark.parametrize("profile", ["restricted", "trusted"])
def test_no_profile_below_unrestricted_changes_it(copy: Copy, profile: str) -> None:
    before = grown(copy.work / ".venv")
    (copy.work / "src" / "x.py").write_text(ATTACK)
    with copy.serving("--profile", profile) as one:
        one.call("menu_enter", mode="swe")
        ran(one, f"python3 src/x.py .venv {copy.site}/{VICTIM}")
        one.call("Write", file_path=f"{copy.site}/sitecustomize.py", content="x = 1\n")
    assert grown(copy.work / ".venv") == before


@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests here run as somebody already")
@pytest.mark.parametrize("name", SANDBOXES)
def test_it_is_the_same_for_nobody(name: str) -> None:
    program = python()
    if program is None:
        pytest.skip("there is no Python here that nobody may start")
    room = Path("/var/tmp") / f"menugate-{os.getpid()}-{name}"
    work, home = room / "work", room / "home"
    try:
        (work / "src").mkdir(parents=True)
        home.mkdir()
        one = Copy(work, home, [str(environment_at(work / ".venv", program=program))], user=NOBODY)
        copied(work / ".venv" / SITE)
        shut_in_by(name, one)
        subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", str(room)], check=True)
        rights = name == "bubblewrap"
        before = grown(work / ".venv", rights)
        with one.serving() as line:
            tried = attacked(line, one)
            assert grown(work / ".venv", rights) == before, tried
            assert tried.count("DONE") == (0 if rights else 1)
    finally:
        shutil.rmtree(room, ignore_errors=True)


@pytest.mark.parametrize("era", ERAS)
def test_no_file_tool_changes_it(copy: Copy, era: str) -> None:
    before, packages = grown(copy.work / ".venv"), copy.site
    victim = f"{packages}/{VICTIM}"
    (copy.work / "link").symlink_to(".venv")
    with copy.serving(era=era) as one:
        one.call("menu_enter", mode="swe")
        assert not one.call("Read", file_path=victim)["isError"]
        one.call("Read", file_path=".venv/pyvenv.cfg")
        refused = [
            one.call("Write", file_path=victim, content="evil"),
            one.call("Edit", file_path=victim, old_string="import argparse", new_string="import evil"),
            one.call("Write", file_path=f"{packages}/json.py", content="evil"),
            one.call("Write", file_path=f"{packages}/evil.pth", content="import evil"),
            one.call("Write", file_path=f"{packages}/opentelemetry/__init__.py", content="evil"),
            one.call("Write", file_path=".venv/pyvenv.cfg", content="home = /tmp"),
            one.call("Write", file_path=f"link/{SITE}/sitecustomize.py", content="evil"),
            one.call("Write", file_path=str(copy.work / packages / "usercustomize.py"), content="evil"),
        ]
        one.call("menu_enter", mode="data")
        refused += [
            one.call("fs_write_file", path=victim, content="evil"),
            one.call("fs_create_directory", path=f"{packages}/rs_bpe"),
            one.call("fs_move", source=".venv", destination="moved"),
            one.call("fs_move", source=f"{packages}/mcp_server", destination="moved"),
        ]
        # Nobody is asked about what no approval allows.
        refused.append(one.call("fs_move", source="src/app.py", destination=f"{packages}/json.py"))
        assert all(answer["isError"] for answer in refused), [said(answer) for answer in refused]
        assert grown(copy.work / ".venv") == before
        told = [said(answer) for answer in refused]
        assert [text for text in told if "menugate runs from" not in text or "`unrestricted`" not in text] == []
        # Whatever else lies there is worked on as ever.
        assert not one.call("fs_write_file", path="src/new.py", content="x = 1\n")["isError"]
        assert not one.call("fs_move", source="src/new.py", destination="src/newer.py")["isError"]


def test_reading_it_stays_allowed(copy: Copy) -> None:
    with copy.serving() as one:
        one.call("menu_enter", mode="swe")
        assert "approvals" in said(one.call("Read", file_path=f"{copy.site}/{VICTIM}"))
        assert "approvals" in ran(one, f"cat {copy.site}/{VICTIM}")
        assert not one.call("grep", pattern="def add", path=copy.site)["isError"]
        # What lies there is of use, too: a program of the environment runs.
        assert "ran in it" in unasked(one, copy, ".venv/bin/python3 -c 'import mcp_server; print(\"ran in it\")'")


def test_a_person_who_chose_unrestricted_changes_it(copy: Copy) -> None:
    with copy.serving("--profile", "unrestricted") as one:
        one.call("menu_enter", mode="swe")
        ran(one, f"echo '# one' >> {copy.site}/{VICTIM}")
        assert copy.victim.read_text().endswith("# one\n")
        assert not one.call("Write", file_path=f"{copy.site}/new.py", content="x = 1\n")["isError"]


def test_an_environment_that_menugate_does_not_run_from_is_worked_on_as_ever(copy: Copy) -> None:
    environment_at(copy.work / "other")
    with copy.serving("--profile", "trusted") as one:
        one.call("menu_enter", mode="swe")
        ran(one, f"touch other/{SITE}/new.py src/new.py other/bin/tool")
        assert (copy.work / "other" / SITE / "new.py").exists() and (copy.work / "src" / "new.py").exists()
        assert not one.call("Write", file_path=f"other/{SITE}/newer.py", content="x = 1\n")["isError"]


@pytest.mark.parametrize("name", SANDBOXES)
def test_git_does_not_put_other_files_in_their_place(work: Path, home: Path, name: str) -> None:
    """A branch brings another module, and going there is no command but a tool of its own."""
    copied(work / "lib")
    copy = shut_in_by(name, Copy(work, home, [str(environment_at(home / "env", work / "lib"))], site="lib"))

    def git(*words: str) -> None:
        names = {
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@b",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@b",
        }
        subprocess.run(["git", *words], cwd=work, env=environment(home) | names, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    git("checkout", "-q", "-b", "evil")
    whole = copy.victim.read_text()
    copy.victim.write_text(whole + "open('owned', 'w')\n")
    git("commit", "-q", "-a", "-m", "two")
    git("checkout", "-q", "main")
    with copy.serving("--profile", "trusted") as one:
        one.call("menu_enter", mode="git")
        answer = one.call("git_checkout", repo_path=".", branch_name="evil")
        assert copy.victim.read_text() == whole, said(answer)
        assert "menugate itself runs from `lib`" in said(answer)
        one.call("menu_enter", mode="swe")
        for line in ("git checkout evil", "git restore --source evil .", "git stash", "git merge evil"):
            ran(one, line)
        assert copy.victim.read_text() == whole


def looked_up(work: Path, home: Path, how: str) -> Copy:
    """Ways in which Python finds modules in the workspace, other than in an environment there."""
    script = str(environment_at(home / "env", *([work] if how == "editable" else [])))
    program = str(home / "env" / "bin" / "python")
    if how == "editable":
        copied(work)
        return Copy(work, home, [script], site=".")
    if how == "PYTHONPATH":
        copied(work / "lib")
        return Copy(work, home, [script], {"PYTHONPATH": str(work / "lib")}, site="lib")
    copied(home / "env" / SITE)
    if how == "not there yet":
        return Copy(work, home, [script], {"PYTHONPATH": str(work / "lib" / "late")}, site="lib/late")
    assert how == "folder"
    return Copy(work, home, [program, "-m", "mcp_server"], cwd=work, site=".")


@pytest.mark.parametrize("how", ["editable", "PYTHONPATH", "not there yet", "folder"])
def test_no_module_is_put_where_python_looks_for_one(work: Path, home: Path, how: str) -> None:
    copy = looked_up(work, home, how)
    planted = "\n".join(["import pathlib", f"pathlib.Path({str(home / 'owned')!r}).touch()", ""])
    with copy.serving() as one:
        one.call("menu_enter", mode="swe")
        for name in ("sitecustomize.py", "usercustomize.py", "runpy.py"):
            one.call("Write", file_path=f"{copy.site}/{name}", content=planted)
        unasked(
            one,
            copy,
            f"mkdir -p {copy.site}; cp src/app.py {copy.site}/sitecustomize.py; touch {copy.site}/argparse.py",
        )
    found = [name for name in ("sitecustomize", "usercustomize", "runpy", "argparse") if planting(copy, name).exists()]
    assert found == []
    assert "No pending approvals" in copy.typed("approvals")
    assert not (home / "owned").exists()


def planting(copy: Copy, name: str) -> Path:
    return copy.work / copy.site / f"{name}.py"


def test_the_operators_files_in_the_workspace_stay_as_they_are(copy: Copy) -> None:
    """Modes and prompts that are named from elsewhere, and a file that is named by a link."""
    (copy.work / "modes").mkdir()
    (copy.work / "words").mkdir()
    settled = copy.home / "settled.yaml"
    settled.write_text(f"prompts: {copy.work / 'words'}\n")
    (copy.work / "cfg").mkdir()
    (copy.work / "cfg" / "menugate.yaml").symlink_to(settled)
    copy.env["MENUGATE_MENUS"] = str(copy.work / "modes")
    with copy.serving("--config", str(copy.work / "cfg" / "menugate.yaml")) as one:
        one.call("menu_enter", mode="swe")
        one.call("Write", file_path="modes/x.yaml", content="name: x\n")
        one.call("Write", file_path="words/instructions/head.md", content="evil\n")
        unasked(one, copy, "touch modes/y.yaml words/y.md; ln -sfn /tmp/other cfg/menugate.yaml; mv cfg cfg2")
    assert not list((copy.work / "modes").iterdir()) and not list((copy.work / "words").iterdir())
    assert (copy.work / "cfg" / "menugate.yaml").readlink() == settled


@pytest.mark.parametrize("name", SANDBOXES)
def test_a_cache_that_menugate_runs_from_is_no_way_in(work: Path, home: Path, name: str) -> None:
    """`uvx menugate` runs from uv's cache, which a command at `trusted` may write otherwise."""
    place = home / ".cache" / "uv" / "archive-v0" / "abc"
    script = environment_at(place)
    copied(place / SITE)
    copy, before = shut_in_by(name, Copy(work, home, [str(script)])), grown(place)
    (home / ".cache" / "uv" / "wheels").mkdir()
    with copy.serving("--profile", "trusted") as one:
        one.call("menu_enter", mode="swe")
        ran(one, f"echo x >> {place / SITE / VICTIM}; touch {place / SITE}/sitecustomize.py; mv {place} {place}2")
        ran(one, f"touch {home}/.cache/uv/wheels/new")
    assert grown(place) == before
    assert (home / ".cache" / "uv" / "wheels" / "new").exists()


def test_without_a_sandbox_no_command_runs_where_menugate_lies(copy: Copy) -> None:
    settled = copy.home / "settled.yaml"
    settled.write_text("sandbox: off\n")
    flags, before = ("--config", str(settled)), grown(copy.work / ".venv")
    with copy.serving("--profile", "trusted", *flags) as one:
        one.call("menu_enter", mode="swe")
        refused = one.call("bash", command=f"echo x >> {copy.site}/{VICTIM}")
    assert refused["isError"] and "NOT_GRANTED" in said(refused) and "`.venv`" in said(refused)
    assert grown(copy.work / ".venv") == before


def test_doctor_names_files_that_can_be_changed_by_another_name(copy: Copy) -> None:
    """As uv makes them; it may have made the libraries that these tests use."""

    def doubled() -> int:
        found = re.search(r"([\d,]+)\s+files?\s+with\s+a\s+second\s+name", copy.typed("doctor"))
        return int(found[1].replace(",", "")) if found else 0

    before = doubled()
    (copy.work / "second.py").hardlink_to(copy.victim)
    assert doubled() == before + 1


def written_through(one: Pipe, copy: Copy, *names: Path) -> str:
    """By a program, and by every file tool, to the second names of a file of menugate."""
    lines = "import os\n" + "".join(THROUGH.format(name=str(name)) for name in names)
    (copy.work / "src" / "through.py").write_text(lines)
    told: list[str] = []
    for name in names:
        one.call("menu_enter", mode="swe")
        told.append(said(one.call("Write", file_path=str(name), content="evil")))
        one.call("menu_enter", mode="data")
        told.append(said(one.call("fs_move", source=str(name), destination="x.py")))
    one.call("menu_enter", mode="swe")
    return "\n".join([ran(one, "python3 src/through.py"), *told])


def doubtful(copy: Copy) -> None:
    """What the person is told where files have second names."""
    for told in (copy.typed("status"), copy.typed("doctor")):
        words = " ".join(told.split())
        assert "second name (hardlink)" in words and "--link-mode=copy" in words, told
        assert "no call can change it" not in words, told
    assert json.loads(copy.typed("status", "--json"))["installation"]["linked"]


@pytest.mark.parametrize("name", SANDBOXES)
def test_a_second_name_in_the_workspace_is_no_way_in(work: Path, home: Path, name: str) -> None:
    copied(work / "lib")
    copy = shut_in_by(name, Copy(work, home, [str(environment_at(work / ".venv", work / "lib"))], site="lib"))
    (work / "backup").mkdir()
    second = work / "backup" / "app.py"
    second.hardlink_to(work / "lib" / "mcp_server" / "app.py")
    whole = second.read_text()
    with copy.serving() as one:
        tried = written_through(one, copy, second)
        assert (work / "lib" / "mcp_server" / "app.py").read_text() == whole, tried
        assert second.exists(), tried
    doubtful(copy)


@pytest.mark.parametrize("name", SANDBOXES)
def test_an_environment_that_shares_its_files_is_no_way_in(work: Path, home: Path, name: str) -> None:
    """As `uv` makes one beside another: every file of it is a second name."""
    script = environment_at(home / "env")
    copied(home / "env" / SITE)
    shutil.copytree(home / "env" / SITE, work / ".venv" / SITE, copy_function=os.link)
    copy = shut_in_by(name, Copy(work, home, [str(script)]))
    before = grown(home / "env" / SITE, rights=False)
    with copy.serving() as one:
        tried = written_through(one, copy, copy.victim, work / ".venv" / SITE / "mcp_server" / "app.py")
        assert grown(home / "env" / SITE, rights=False) == before, tried
        # Whatever else lies there is worked on as ever.
        one.call("menu_enter", mode="swe")
        assert not one.call("Write", file_path=".venv/notes.txt", content="x")["isError"]
    doubtful(copy)


@pytest.mark.parametrize("name", SANDBOXES)
def test_a_cache_that_shares_its_files_is_no_way_in(work: Path, home: Path, name: str) -> None:
    script, cache = environment_at(home / "env"), home / ".cache" / "uv" / "archive-v0" / "abc"
    copied(home / "env" / SITE)
    shutil.copytree(home / "env" / SITE, cache, copy_function=os.link)
    copy = shut_in_by(name, Copy(work, home, [str(script)]))
    before = grown(home / "env" / SITE, rights=False)
    with copy.serving("--profile", "trusted") as one:
        one.call("menu_enter", mode="swe")
        tried = ran(one, f"echo '# evil' >> {cache / VICTIM}; touch {home}/.cache/uv/archive-v0/other")
        assert grown(home / "env" / SITE, rights=False) == before, tried
        if name == "bubblewrap":
            assert (home / ".cache" / "uv" / "archive-v0" / "other").exists(), tried
    doubtful(copy)


def test_a_whole_home_is_served_and_the_link_to_menugate_stays(tmp_path: Path) -> None:
    """What `make serve` installs lies in the person's home, which may be the workspace."""
    home = tmp_path / "home"
    place, links = home / ".local" / "share" / "menugate" / "abc", home / ".local" / "bin"
    links.mkdir(parents=True)
    script = environment_at(place)
    copied(place / SITE)
    (links / "menugate").symlink_to(script)
    env = {"MENUGATE_STATE_HOME": str(tmp_path / "keys")}
    copy = Copy(home, home, [str(links / "menugate")], env, site=f"{place.relative_to(home)}/{SITE}")
    before = grown(home / ".local" / "share")
    with copy.serving() as one:
        (home / "src").mkdir()
        tried = attacked(one, copy)
        unasked(one, copy, "ln -sfn /tmp/evil .local/bin/menugate; mv .local/bin .local/bin2; mv .local .local2")
        assert (links / "menugate").readlink() == script
        assert grown(home / ".local" / "share") == before, tried


def test_status_says_so(copy: Copy) -> None:
    told = copy.typed("status")
    line = next(line for line in told.splitlines() if line.startswith("runs from"))
    assert ".venv" in line and "unrestricted" in line
    assert json.loads(copy.typed("status", "--json"))["installation"]["inside"] == [".venv"]
    assert ".venv" in copy.typed("doctor")


def test_who_serves_over_http_is_told_at_once(copy: Copy) -> None:
    process = copy.started("serve", "--http", "127.0.0.1:0")
    assert process.stdout is not None
    told = ""
    try:
        for line in process.stdout:
            told += line.decode()
            if "ready" in told:
                break
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)
    assert ".venv" in told


def test_a_copy_that_lies_elsewhere_holds_nothing_back(work: Path, home: Path) -> None:
    script = environment_at(home / "env")
    copied(home / "env" / SITE)
    copy = Copy(work, home, [str(script)], site=".")
    with copy.serving() as one:
        one.call("menu_enter", mode="swe")
        unasked(one, copy, "touch sitecustomize.py")
    assert (work / "sitecustomize.py").exists()
    assert json.loads(copy.typed("status", "--json"))["installation"]["inside"] == []
