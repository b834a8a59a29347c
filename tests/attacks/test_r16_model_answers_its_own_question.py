"""R16: a model answered its own question, or changed what it may do, by a line of shell; the record said it was you."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.clients import warm
from tests.clients.pipe import Pipe, pipe
from tests.clients.served import PATIENCE, ROOT, command, environment, state_home
from tests.clients.typed import typed

ERAS = ("legacy", "2026-07-28")
ACTING = (
    """
approve ID|approve ID --for-session|approve ID --always|deny ID|next|next 5|pause|stop|profile unrestricted|mode repair
control manual
model deep
ai-mode agent|reasoning on|autonomous|steer profile unrestricted|steer --confirm ID|trust|untrust|messages
call Write {}|todos accept ID|todos reject ID|memory add x|memory forget ID|doctor fix
""".replace("\n", "|")
    .strip("|")
    .split("|")
)
WAYS = (
    "menugate {}",
    "/usr/local/bin/menugate {}",
    "./.venv/bin/menugate {}",
    "'menu'gate {}",
    "MENUGATE {}",
    "python -m mcp_server {}",
    "python -Im mcp_server.__main__ {}",
    "python3 -Bmmcp_server.cli.main {}",
    "python3.11 -I -m mcp_server {}",
    "/x/bin/python3 -mmcp_server {}",
    "env A=b menugate {}",
    "env -u MENUGATE_STARTED_BY menugate {}",
    "sh -c 'menugate {}'",
    "bash -lc 'cd x && menugate {}'",
    "command menugate {}",
    "nohup menugate {} &",
    "setsid menugate {}",
    "timeout 5 menugate {}",
    "echo ID | xargs menugate {}",
    "sudo -u me menugate {}",
    "true && menugate {}",
    "true; (menugate {})",
    "echo $(menugate {})",
    "uv run menugate {}",
    "uvx menugate {}",
    "uv run python -m mcp_server {}",
    "find . -exec menugate {} ;",
    "A=b menugate {}",
)
OURS = f"PYTHONPATH={ROOT} {sys.executable} -W ignore"
"""Our own program as a line starts it that no reading of words could tell."""


def said(one: Pipe, tool: str, mode: str = "swe", **arguments: Any) -> str:
    answer = one.call("menu_call", tool=tool, arguments=arguments, mode=mode)
    return answer["content"][0]["text"]


def question(one: Pipe) -> str:
    """What a call that needs a yes is told to have approved."""
    text = said(one, "fs_delete", "data", path="notes.md")
    assert text.startswith("Error APPROVAL_REQUIRED"), text
    found = re.search(r"approve ([a-z0-9]{8})", text)
    assert found, text
    return found[1]


def unanswered(workspace: Path, home: Path, name: str) -> bool:
    rows = json.loads(typed(workspace, home, "approvals", "--json").out)
    return [row["standing"] for row in rows if row["id"] == name] == ["waits"]


def recorded(workspace: Path, home: Path, kind: str) -> list[dict[str, Any]]:
    rows = typed(workspace, home, "audit", "export").out.splitlines()
    return [row for row in map(json.loads, rows) if row.get("kind") == kind]


@pytest.fixture(params=["unrestricted", "trusted without a sandbox"])
def flags(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """Where a command reaches the person's own programs."""
    path = tmp_path / "operators.yaml"
    path.write_text("sandbox: 'off'\n" if "without" in request.param else "{}\n")
    return ["--config", str(path), "--profile", request.param.partition(" ")[0]]


@pytest.mark.parametrize("era", ERAS)
def test_no_line_that_names_our_command_runs(workspace: Path, home: Path, flags: list[str], era: str) -> None:
    with pipe(workspace, home, *flags) as one:
        one.hello("mcp", era)
        name = question(one)
        for way in WAYS:
            text = said(one, "bash", command=way.format(f"approve {name}"))
            assert text.startswith("Error BLOCKED"), (way, text)
        assert unanswered(workspace, home, name)
        assert said(one, "fs_delete", "data", path="notes.md").startswith("Error APPROVAL_REQUIRED")
    assert (workspace / "notes.md").exists()


def test_every_command_that_acts_is_meant(workspace: Path, home: Path) -> None:
    with pipe(workspace, home, "--profile", "unrestricted") as one:
        one.hello("mcp")
        for words in ACTING:
            text = said(one, "bash", command=f"menugate {words}")
            assert text.startswith("Error BLOCKED"), (words, text)
        for words in (
            "status",
            "approvals",
            "explain Read",
            "audit tail",
            "rules list",
            "check",
            "todos list",
            "doctor",
        ):
            assert "Error BLOCKED" not in said(one, "bash", command=f"menugate {words}"), words
        for line in ("echo menugate approve x", "grep -r 'menugate approve' docs", "git log menugate", "ls menugate"):
            assert "Error BLOCKED" not in said(one, "bash", command=line), line


def test_no_approval_and_no_rule_opens_it(workspace: Path, home: Path, tmp_path: Path) -> None:
    config = tmp_path / "allow.yaml"
    config.write_text("rules:\n  allow: [bash, 'bash(menugate approve:*)']\n")
    config.write_text("rules:\n  allow: [bash]\n")
    with pipe(workspace, home, "--config", str(config), "--profile", "unrestricted") as one:
        one.hello("mcp")
        assert said(one, "bash", command=f"menugate approve {question(one)}").startswith("Error BLOCKED")


HIDDEN_MAIN = "main = __import__('mcp_ser' 'ver.cli.main', fromlist='x').main"
"""Our program, as Python finds it that no reading of words could tell."""
IN_A_TREE = {
    "a program of Python": '{ours} -c "{main}; raise SystemExit(main({words}))"',
    "a name that is computed": "x=mcp; {ours} -m ${{x}}_server {line}",
    "a script": "printf '%s\\n' '{ours} -m mcp_''server {line}' > s.sh; sh s.sh",
    "a session of its own": (
        '{ours} -c "import os, sys; os.fork() and sys.exit(os.waitstatus_to_exitcode(os.wait()[1])); os.setsid(); '
        '{main}; sys.exit(main({words}))"'
    ),
    "a link under another name": "x=mcp; ln -s {root}/${{x}}_server other; {ours} other {line}",
    "a copy under another name": "x=mcp; cp -r {root}/${{x}}_server other && {ours} other {line}",
    "a file run by its path": "x=mcp; {ours} {root}/${{x}}_server/__main__.py {line}",
    "an alias": "x=mcp; shopt -s expand_aliases\nalias other='{ours} -m ${{x}}_server'\nother {line}",
    "a function": 'x=mcp; other() {{ {ours} -m ${{x}}_server "$@"; }}; other {line}',
    "behind an array": "a[0]=1; x=mcp; a[1]=2 {ours} -m ${{x}}_server {line}",
    "without the mark": "x=mcp; env -u MENUGATE_STARTED_BY {ours} -m ${{x}}_server {line}",
    "an empty environment": (
        "x=mcp; env -i HOME=$HOME PATH=$PATH MENUGATE_STATE_HOME=$MENUGATE_STATE_HOME {ours} -m ${{x}}_server {line}"
    ),
}
ORPHAN = """
import os, sys, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
while os.getppid() == 1 and not os.path.exists("go"): time.sleep(0.01)
from mcp_server.cli.main import main
code = main({words})
open("ended", "w").write(str(code))
"""


@pytest.mark.parametrize("way", IN_A_TREE)
def test_what_a_server_started_cannot_answer(workspace: Path, home: Path, flags: list[str], way: str) -> None:
    with pipe(workspace, home, *flags) as one:
        one.hello("mcp")
        name = question(one)
        words = ["approve", name, "--workspace", str(workspace)]
        line = IN_A_TREE[way].format(ours=OURS, words=words, line=shlex.join(words), root=ROOT, main=HIDDEN_MAIN)
        text = said(one, "bash", command=line)
        assert "cannot act for you" in text, text
        assert "exit code 0" not in text
        assert unanswered(workspace, home, name)
        assert said(one, "fs_delete", "data", path="notes.md").startswith("Error APPROVAL_REQUIRED")
        (attempt,) = recorded(workspace, home, "attempt")
        assert attempt["server"] == one.process.pid
        assert "approve" in attempt["command"]
        assert name in attempt["command"]
        assert not recorded(workspace, home, "answer")
        told = typed(workspace, home, "messages", "--keep").out
        assert name in told
    assert (workspace / "notes.md").exists()


def test_nor_one_that_left_the_tree_as_far_as_a_program_can(workspace: Path, home: Path, flags: list[str]) -> None:
    """Forked twice, in a session of its own: it is taken in by what stays beside the command."""
    with pipe(workspace, home, *flags) as one:
        one.hello("mcp")
        name = question(one)
        (workspace / "orphan.py").write_text(ORPHAN.format(words=["approve", name, "--workspace", str(workspace)]))
        wait = "while [ ! -e ended ]; do sleep 0.02; done; cat ended"
        text = said(one, "bash", command=f"env -u MENUGATE_STARTED_BY {OURS} orphan.py; {wait}")
        assert "cannot act for you" in text, text
        assert unanswered(workspace, home, name)


def test_nor_a_terminal_of_a_background_shell(workspace: Path, home: Path, flags: list[str]) -> None:
    with pipe(workspace, home, *flags) as one:
        one.hello("mcp")
        name = question(one)
        said(one, "bash", command="cat", run_in_background=True, bash_id="other")
        said(one, "bash", command="true", bash_id="stays")
        line = f"tty; {OURS} -m mcp_server approve {name} --workspace {workspace}; echo o''ver\n"
        said(one, "write_to_shell", bash_id="stays", content=line)
        text = said(one, "wait", seconds=60, bash_id="stays", until="over")
        text += said(one, "bash_output", bash_id="stays", offset=-2000)
        assert "cannot act for you" in text, text
        assert unanswered(workspace, home, name)
        assert recorded(workspace, home, "attempt")


APART = {
    "unshare": "unshare -Urpf --mount-proc",
    "unshare that keeps /proc": "unshare -Urpf",
    "unshare as root": "unshare -pf",
    "unshare as root with its /proc": "unshare -pf --mount-proc",
    "bwrap": "bwrap --dev-bind / / --unshare-pid --proc /proc",
    "bwrap that keeps /proc": "bwrap --dev-bind / / --unshare-pid",
    "no /proc at all": "unshare -Urm sh -c 'mount -t tmpfs none /proc && exec \"$@\"' sh",
    "no /proc of the server": "unshare -Urm sh -c 'mount -t tmpfs none /proc/{server} && exec \"$@\"' sh",
}


def possible(way: str) -> bool:
    ran = subprocess.run(["sh", "-c", f"{way.format(server=1)} true"], capture_output=True, check=False)
    return ran.returncode == 0


@pytest.mark.parametrize("way", APART)
def test_nor_one_in_a_namespace_of_its_own(workspace: Path, home: Path, flags: list[str], way: str) -> None:
    if not possible(APART[way]):
        pytest.skip("this machine does not make such namespaces")
    with pipe(workspace, home, *flags) as one:
        one.hello("mcp")
        name = question(one)
        apart = APART[way].format(server=one.process.pid)
        ours = f"env -u MENUGATE_STARTED_BY {apart} env {OURS}"
        line = f"m=mcp; {ours} -m ${{m}}_server app''rove {name} --workspace {workspace}"
        text = said(one, "bash", command=line)
        assert "cannot act for you" in text, text
        assert "exit code 0" not in text
        served = said(one, "bash", command=f"m=mcp; {ours} -m ${{m}}_server serve --workspace {workspace} </dev/null")
        assert "cannot act for you" in served, served
        read = said(one, "bash", command=f"m=mcp; {ours} -m ${{m}}_server approvals --workspace {workspace}")
        assert name in read
        assert unanswered(workspace, home, name)
        attempts = recorded(workspace, home, "attempt")
        assert [attempt["server"] for attempt in attempts] == [one.process.pid] * 2
        assert not recorded(workspace, home, "answer")


def test_a_server_in_a_container_is_spoken_to_from_the_machine(workspace: Path, home: Path) -> None:
    """There it has number one, and is the parent of all that it started; the machine sees it by another number."""
    apart = "unshare -Urpf --mount-proc"
    if not possible(apart):
        pytest.skip("this machine does not make such namespaces")
    run = [*apart.split(), *command("serve")]
    with pipe(workspace, home, "--profile", "unrestricted", run=run) as one:
        one.hello("mcp")
        name = question(one)
        line = f"m=mcp; env -u MENUGATE_STARTED_BY {OURS} -m ${{m}}_server approve {name} --workspace {workspace}"
        text = said(one, "bash", command=line)
        assert "process 1)" in text, text
        assert "cannot act for you" in text, text
        assert unanswered(workspace, home, name)
        assert typed(workspace, home, "approve", name).code == 0
        assert "Error" not in said(one, "fs_delete", "data", path="notes.md")


def test_what_a_killed_server_leaves_locks_nobody_out(workspace: Path, home: Path) -> None:
    apart = ["unshare", "-Urpf", "--mount-proc"]
    if not possible(" ".join(apart)):
        pytest.skip("this machine does not make such namespaces")
    locks = workspace / ".menugate" / "servers"
    with pipe(workspace, home, "--profile", "unrestricted") as one:
        one.hello("mcp")
        name = question(one)
        assert len(list(locks.glob("*.lock"))) == 1
        one.process.kill()
        one.process.wait()
    assert len(list(locks.glob("*.lock"))) == 1
    answer = [*apart, *command("approve", name), "--workspace", str(workspace)]
    ended = warm.run(answer, environment(home), text=True)
    assert ended.returncode == 0, ended.stderr
    assert not list(locks.glob("*.lock"))


def test_nor_one_that_looks_for_another_accounts_keys(workspace: Path, home: Path, flags: list[str]) -> None:
    with pipe(workspace, home, *flags) as one:
        one.hello("mcp")
        name = question(one)
        elsewhere = f"x=mcp; env -i PATH=$PATH MENUGATE_STATE_HOME={home}/other {OURS} -m ${{x}}_server"
        for words in (f"approve {name}", "profile unrestricted", "serve </dev/null"):
            text = said(one, "bash", command=f"{elsewhere} {words} --workspace {workspace}")
            assert "cannot act for you" in text, (words, text)
        assert unanswered(workspace, home, name)


def test_where_the_state_is_only_commands_without_a_sandbox_are_told(workspace: Path, home: Path) -> None:
    for profile, told in (("unrestricted", str(state_home(home))), ("trusted", "none")):
        with pipe(workspace, home, "--profile", profile) as one:
            one.hello("mcp")
            text = said(one, "bash", command="echo at ${MENUGATE_STATE_HOME:-none}")
            assert f"at {told}" in text, (profile, text)


def test_nor_choose_trust_or_advance(workspace: Path, home: Path, flags: list[str]) -> None:
    (workspace / "menugate.yaml").write_text("rules:\n  allow: [Read]\n")
    with pipe(workspace, home, *flags) as one:
        one.hello("mcp")
        before = status(workspace, home)
        lines = [
            "profile unrestricted", "mode repair", "control manual", "ai-mode chat", "reasoning on", "autonomous",
            "steer profile unrestricted", "trust", "next", "pause", "stop", "memory add x", "messages", "doctor fix",
            'call Write \'{"file_path": "new.md", "content": "x"}\'',
        ]  # fmt: skip
        for line in lines:
            text = said(one, "bash", command=f"x=mcp; {OURS} -m ${{x}}_server {line} --workspace {workspace}")
            if line == "messages":
                continue  # shown, and not marked as read
            assert "cannot act for you" in text, (line, text)
        assert status(workspace, home) == before
        assert not (workspace / "new.md").exists()
        assert len(recorded(workspace, home, "attempt")) == len(lines)
        assert not recorded(workspace, home, "trust")
        assert not json.loads(typed(workspace, home, "trust", "--show", "--json").out)["trusted"]


def status(workspace: Path, home: Path) -> object:
    found = json.loads(typed(workspace, home, "status", "--json").out)
    return found["posture"], found["to_come"]


def test_nor_serve_this_folder_and_answer_as_its_client(workspace: Path, home: Path, flags: list[str]) -> None:
    with pipe(workspace, home, *flags) as one:
        one.hello("mcp")
        line = f"{OURS} -m mcp_server serve --profile unrestricted --workspace {workspace} < /dev/null"
        assert "cannot act for you" in said(one, "bash", command=line)


def test_what_only_reads_is_read(workspace: Path, home: Path, flags: list[str]) -> None:
    with pipe(workspace, home, *flags) as one:
        one.hello("mcp")
        for words in ("status", "approvals", "audit tail", "explain Read"):
            text = said(one, "bash", command=f"{OURS} -m mcp_server {words} --workspace {workspace}; echo ended $?")
            assert "ended 0" in text, text


def test_the_person_at_another_terminal_answers_as_before(workspace: Path, home: Path) -> None:
    with pipe(workspace, home, "--profile", "unrestricted") as one:
        one.hello("mcp")
        name = question(one)
        ended = warm.run(
            [*command("approve", name), "--workspace", str(workspace)],
            environment(home),
            text=True,
            timeout=3 * PATIENCE,
        )
        assert ended.returncode == 0, ended.stderr
        assert "Error" not in said(one, "fs_delete", "data", path="notes.md")
        assert not recorded(workspace, home, "attempt")
