"""Where an account's keys lie is the account's, and not what HOME or XDG_STATE_HOME happen to say at a start.

The account is made up: bubblewrap shows menugate another /etc/passwd, and another /var/lib and /run.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.clients import warm
from tests.clients.pipe import pipe
from tests.clients.served import command, environment
from tests.clients.typed import typed

BWRAP = shutil.which("bwrap")
Variables: TypeAlias = Mapping[str, Path]
NONE: Variables = {}
NOT_OURS = ("MENUGATE_STATE_HOME", "HOME")


def made_up() -> bool:
    if BWRAP is None:
        return False
    return subprocess.run([BWRAP, "--dev-bind", "/", "/", "true"], capture_output=True).returncode == 0


needs_an_account = pytest.mark.skipif(not made_up(), reason="no account can be made up here")


@dataclass
class Account:
    """Somebody on a machine of their own."""

    work: Path
    home: Path
    machine: Path
    nurseries: dict[tuple[Path, ...], warm.Nursery] = field(default_factory=dict[tuple[Path, ...], warm.Nursery])

    def __post_init__(self) -> None:
        for name in ("lib", "run"):
            (self.machine / name).mkdir(parents=True)
        # Where systemd answers too, it knows root by itself.
        (self.machine / "nsswitch.conf").write_text("passwd: files\n")
        self.names(self.home)

    def names(self, home: Path | None) -> None:
        """What the system knows of the account's home."""
        line = f"somebody:x:{os.geteuid()}:{os.getegid()}::{home}:/bin/sh\n"
        (self.machine / "passwd").write_text(line if home else "")

    @property
    def usual(self) -> Path:
        return self.home / ".local" / "state" / "menugate"

    @property
    def everywhere(self) -> tuple[Path, ...]:
        """Where this account could keep its keys."""
        return (self.home, self.machine / "lib", self.machine / "run")

    def before(self, closed: tuple[Path, ...] = ()) -> list[str]:
        """What shows a program this machine. `closed` are folders that cannot be written."""
        assert BWRAP is not None
        names = [name for name in ("passwd", "nsswitch.conf") if Path("/etc", name).exists()]
        files = [word for name in names for word in ("--ro-bind", str(self.machine / name), f"/etc/{name}")]
        shown = {self.machine / "lib": "/var/lib", self.machine / "run": "/run"}
        machine = [word for one, place in shown.items() for word in ("--bind", str(one), place)]
        shut = [word for one in closed for word in ("--ro-bind", str(one), shown.get(one, str(one)))]
        return [BWRAP, "--dev-bind", "/", "/", *files, *machine, *shut]

    def words(self, *line: str, closed: tuple[Path, ...] = ()) -> list[str]:
        return [*self.before(closed), *command(*line)]

    def says(
        self, *line: str, closed: tuple[Path, ...] = (), variables: Variables = NONE
    ) -> subprocess.CompletedProcess[str]:
        own = {name: value for name, value in environment(self.home).items() if name not in NOT_OURS}
        own |= {"USER": "somebody", "HOME": str(self.home), **{name: str(value) for name, value in variables.items()}}
        nursery = self.nurseries.setdefault(closed, warm.Nursery(self.before(closed)))
        words = command(*line, "--workspace", str(self.work))
        return warm.run(words, own, nursery=nursery, cwd=self.work, text=True)

    def status(self, **about: Any) -> dict[str, Any]:
        said = self.says("status", "--json", **about)
        assert said.returncode == 0, said.stderr
        return json.loads(said.stdout)


@pytest.fixture
def account(workspace: Path, home: Path, tmp_path: Path) -> Iterator[Account]:
    one = Account(workspace, home, tmp_path / "machine")
    yield one
    for nursery in one.nurseries.values():
        nursery.close()


@needs_an_account
def test_a_host_that_drops_or_changes_the_variables_finds_the_same_keys(account: Account, tmp_path: Path) -> None:
    for name in ("sudo", "state"):
        (tmp_path / name).mkdir()
    starts: list[Variables] = [{"XDG_STATE_HOME": tmp_path / "state"}, {}, {"HOME": tmp_path / "sudo"}]
    assert account.says("profile", "trusted", variables=starts[0]).returncode == 0
    for variables in (*starts, *starts):
        assert account.says("call", "menu_list", variables=variables).returncode == 0
        posture = account.status(variables=variables)["posture"]["profile"]
        assert posture == {"value": "trusted", "from": "chosen"}, variables
        assert account.says("audit", "verify", variables=variables).returncode == 0
    assert not any((tmp_path / "sudo").rglob("*.key")) and not any((tmp_path / "state").rglob("*.key"))
    assert (account.usual / "ledger.key").exists()


@needs_an_account
def test_the_first_place_that_can_be_written_is_taken(account: Account, tmp_path: Path) -> None:
    number = str(os.geteuid())
    named, session = tmp_path / "named", account.machine / "run" / "user" / number
    lib = account.machine / "lib"
    session.mkdir(parents=True, mode=0o700)
    cases: list[tuple[dict[str, Any], Path, str | None]] = [
        ({"variables": {"MENUGATE_STATE_HOME": named}}, named, None),
        ({}, account.usual, None),
        ({"closed": (account.home,)}, Path("/var/lib/menugate") / number, None),
        ({"closed": (account.home, lib)}, Path("/run/user") / number / "menugate", "until this machine"),
    ]
    for about, folder, lasting in cases:
        assert account.says("mode", "plan", **about).returncode == 0, about
        keys = account.status(**about)["keys"]
        assert (keys["folder"], (lasting or "") in (keys["last"] or "")) == (str(folder), True)
        assert (keys["last"] is None) is (lasting is None)
    made = [named, account.usual, lib / "menugate" / number, session / "menugate"]
    assert len({(one / "ledger.key").read_text() for one in made}) == len(made)
    for about, folder, _ in cases:
        assert account.status(**about)["keys"]["folder"] == str(folder), "the same at the next start"
        assert account.says("audit", "verify", **about).returncode == 0


@needs_an_account
@pytest.mark.parametrize("known", [True, False], ids=["a home that cannot be written", "an account nobody knows"])
def test_where_no_place_can_be_written_a_process_has_a_key_of_its_own(account: Account, known: bool) -> None:
    closed = (account.home, account.machine / "lib", account.machine / "run")
    if not known:
        account.names(None)
    for _ in range(2):
        said = account.says("call", "menu_list", closed=closed)
        assert said.returncode == 0, said.stderr
        shown = account.says("status", closed=closed)
        assert "for this process alone" in shown.stdout and "MENUGATE_STATE_HOME" in shown.stdout
        assert account.status(closed=closed)["posture"]["profile"]["value"] == "normal"
    for line in (("mode", "plan"), ("pause",), ("memory", "add", "--tier", "decision", "x")):
        refused = account.says(*line, closed=closed)
        assert (refused.returncode, "MENUGATE_STATE_HOME" in refused.stderr) == (1, True), line
    assert not any(account.machine.rglob("*.key")) and not any(account.home.rglob("*.key"))


def keys_in(folder: Path, value: str = "ab" * 32) -> Path:
    folder.mkdir(parents=True, mode=0o700)
    (folder / "ledger.key").touch(0o600)
    (folder / "ledger.key").write_text(value + "\n")
    (folder / "trusted").mkdir()
    return folder


@needs_an_account
@pytest.mark.parametrize("name", ["XDG_STATE_HOME", "HOME"])
def test_keys_from_where_they_once_were_move_once(account: Account, tmp_path: Path, name: str) -> None:
    once = tmp_path / "once"
    old = once / "menugate" if name == "XDG_STATE_HOME" else once / ".local" / "state" / "menugate"
    keys_in(old)
    assert account.says("call", "menu_list", variables={name: once}).returncode == 0
    assert (account.usual / "ledger.key").read_text() == "ab" * 32 + "\n"
    assert (account.usual / "trusted").is_dir() and not old.exists()
    assert (account.usual / "ledger.key").stat().st_mode & 0o077 == 0
    keys_in(old, "cd" * 32)
    assert account.says("call", "menu_list", variables={name: once}).returncode == 0
    assert (account.usual / "ledger.key").read_text() == "ab" * 32 + "\n"
    assert old.exists(), "moved once, and not exchanged afterwards"


@needs_an_account
def test_keys_that_somebody_else_may_know_are_not_brought(account: Account, tmp_path: Path) -> None:
    mine = keys_in(account.work / ".local" / "state" / "menugate")
    assert account.says("call", "menu_list", variables={"HOME": account.work}).returncode == 0
    assert (account.usual / "ledger.key").read_text() != (mine / "ledger.key").read_text()
    shutil.rmtree(account.usual)
    shutil.rmtree(account.work / ".menugate")
    read_by_all = keys_in(tmp_path / "open" / "menugate")
    (read_by_all / "ledger.key").chmod(0o644)
    assert account.says("call", "menu_list", variables={"XDG_STATE_HOME": tmp_path / "open"}).returncode == 0
    assert (account.usual / "ledger.key").read_text() != (read_by_all / "ledger.key").read_text()


@needs_an_account
def test_the_usual_keys_stay_where_they_are_when_another_folder_is_named(account: Account, tmp_path: Path) -> None:
    assert account.says("call", "menu_list").returncode == 0
    key = (account.usual / "ledger.key").read_text()
    named: Variables = {"MENUGATE_STATE_HOME": tmp_path / "named"}
    assert account.says("call", "menu_list", variables=named).returncode == 0
    assert (account.usual / "ledger.key").read_text() == key
    assert (tmp_path / "named" / "ledger.key").read_text() != key


@pytest.mark.parametrize("where", ["work/keys", "work", ".", "home/.cargo/registry/keys", "home/.cache/pip", "link"])
@pytest.mark.parametrize("line", ["status", "serve", "mode plan"])
def test_a_folder_that_commands_may_write_is_refused(workspace: Path, home: Path, where: str, line: str) -> None:
    root = workspace.parent
    (root / "link").symlink_to(workspace)
    words = [*command(*line.split()), "--workspace", str(workspace)]
    env = environment(home) | {"MENUGATE_STATE_HOME": str(root / where)}
    about: dict[str, Any] = {"env": env, "cwd": home, "stdin": subprocess.DEVNULL, "timeout": 60}
    said = subprocess.run(words, capture_output=True, text=True, **about)
    assert (said.returncode, "MENUGATE_STATE_HOME" in said.stderr) == (1, True), said
    assert not any(root.rglob("*.key"))


@pytest.fixture
def seen() -> Iterator[Path]:
    """A folder that a sandbox does not empty, as it does homes and /tmp."""
    folder = Path("/opt") / f"menugate-keys-{os.getpid()}"
    try:
        folder.mkdir(mode=0o755)
    except OSError:
        pytest.skip("no such folder can be made here")
    yield folder
    shutil.rmtree(folder)


def test_no_command_and_no_tool_reads_the_keys(workspace: Path, home: Path, seen: Path) -> None:
    keys = seen / "keys"
    run = ["env", f"MENUGATE_STATE_HOME={keys}", *command("serve")]
    with pipe(workspace, home, "--profile", "trusted", run=run) as one:
        one.hello()
        one.call("menu_enter", mode="swe")
        one.call("menu_call", tool="Write", arguments={"file_path": "a.txt", "content": "x"})
        key = (keys / "ledger.key").read_text().strip()
        line = f"echo seen > b.txt; cat {keys}/ledger.key; ls -l {keys}; cp {keys}/ledger.key c.txt; true"
        heard = json.dumps(one.call("menu_call", tool="bash", arguments={"command": line}))
        heard += json.dumps(one.call("menu_call", tool="Read", arguments={"file_path": str(keys / "ledger.key")}))
    assert key not in heard and not re.search(r"ledger\.key \d", heard)
    assert (workspace / "b.txt").exists(), heard
    assert not (workspace / "c.txt").exists() or key not in (workspace / "c.txt").read_text()


@needs_an_account
def test_the_keys_of_a_home_that_is_the_workspace_are_no_tools(account: Account, home: Path) -> None:
    """The home as the system knows it may be served whole: there the keys are hidden, before there are any, too."""
    account.work = home
    assert account.says("call", "menu_list").returncode == 0
    key = (account.usual / "ledger.key").read_text().strip()
    place = ".local/state/menugate"
    calls: list[tuple[str, dict[str, str]]] = [
        ("Read", {"file_path": f"{place}/ledger.key"}),
        ("grep", {"pattern": ".", "path": place, "output_mode": "content"}),
        ("Write", {"file_path": f"{place}/ledger.key", "content": "00" * 32}),
    ]
    for tool, arguments in calls:
        said = account.says("call", tool, json.dumps(arguments), "--mode", "swe")
        assert key not in said.stdout + said.stderr
    assert (account.usual / "ledger.key").read_text().strip() == key


def test_the_place_of_the_keys_is_shown(workspace: Path, home: Path) -> None:
    shown = json.loads(typed(workspace, home, "status", "--json").out)
    assert shown["keys"] == {"folder": environment(home)["MENUGATE_STATE_HOME"], "last": None}
