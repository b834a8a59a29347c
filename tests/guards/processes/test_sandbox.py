"""What does a child reach? In each sandbox and at each profile: files, network, other programs, and how much of it."""

import os
import socket
import sys
from pathlib import Path

import pytest

from mcp_server.guards.sandbox.access import HOMES
from mcp_server.guards.sandbox.launch import Sandbox
from mcp_server.guards.sandbox.protected import MAX_PLACES
from mcp_server.model.posture import Profile
from mcp_server.model.processes import Command
from mcp_server.model.results import Refusal
from mcp_server.model.tools import Demand, Effect
from tests.guards.processes.ground import opened, sandbox, sh

pytestmark = pytest.mark.anyio
PYTHON = Path(sys.executable).resolve()


async def test_the_workspace_is_written_and_what_others_obey_is_not(box: Sandbox, work: Path) -> None:
    async with opened(work, box) as made:
        assert (await sh(made, "echo x > src/new; rm src/a.py; mkdir src/d; echo y >> src/new")).code == 0
        assert (work / "src" / "new").read_text() == "x\ny\n"
        assert not (work / "src" / "a.py").exists()
        for path in (".git/config", ".git/hooks/x", ".git/hooks/new", ".git/commondir", ".vscode/x", ".mcp.json"):
            assert (await sh(made, f"echo x >> {path}")).code != 0, path
        for line in ("rm -rf .vscode", "mv .git x", "mv .git/hooks .git/h", "rm .mcp.json", "rm -rf .menugate"):
            assert (await sh(made, line)).code != 0, line
    assert (work / ".git" / "config").read_text() == (work / ".mcp.json").read_text() == "what-is-here\n"
    assert (work / ".menugate" / "state.db").exists()


async def test_secrets_our_state_and_the_home_are_out_of_sight(box: Sandbox, work: Path) -> None:
    async with opened(work, box) as made:
        for path in (".env", "keys/id_rsa", ".menugate/state.db", "~/.ssh/id", "~/.gitconfig", "../beside/x"):
            said = await sh(made, f"cat {path}")
            assert (said.code != 0, b"what-is-here" in said.out) == (True, False), path


async def test_git_works_though_what_the_person_told_it_is_out_of_sight(box: Sandbox, work: Path) -> None:
    (work.parent / "home" / ".gitconfig").write_text("[user]\n\tname = what-is-here\n")
    async with opened(work, box) as made:
        for line in ("git init -q src && git -C src status --short", "git config --get user.name || echo nobody"):
            said = await sh(made, line)
            assert (said.code, b"what-is-here" in said.out) == (0, False), said


async def test_what_is_out_of_sight_or_obeyed_is_not_put_where_nobody_looks(box: Sandbox, work: Path) -> None:
    """What is installed is not looked through, and whatever lies in a folder goes with it."""
    for folder in ("deep/er/.git/hooks", "node_modules", "src/keep/sub"):
        (work / folder).mkdir(parents=True)
    (work / "deep" / "er" / ".git" / "config").write_text("what-is-here\n")
    (work / "src" / "keep" / ".env").write_text("what-is-here\n")
    async with opened(work, box) as made:
        for folder in ("keys", "deep", "deep/er", "src", "src/keep"):
            assert (await sh(made, f"mv {folder} node_modules/")).code != 0, folder
            said = await sh(made, "cat node_modules/*/id_rsa node_modules/*/.env node_modules/*/*/.env")
            assert b"what-is-here" not in said.out, folder
        assert (
            await sh(made, "mkdir src/keep/sub/a && echo x > src/keep/sub/a/x && mv src/keep/sub/a src/keep/sub/b")
        ).code == 0
    assert (work / "deep" / "er" / ".git" / "config").exists()


async def test_one_file_of_a_folder_that_others_obey_is_opened_and_the_rest_is_not(work: Path) -> None:
    box = sandbox("bubblewrap")
    if box is None:
        pytest.skip("Landlock lets nothing be made there")
    for name in ("tasks.json", "settings.json"):
        (work / ".vscode" / name).write_text("what-is-here\n")
    async with opened(work, box) as made:
        processes = made.build_call_processes(Demand(Effect.EXEC, Profile.NORMAL), Profile.TRUSTED)
        line = "rm .vscode/tasks.json; echo new > .vscode/tasks.json; rm .vscode/settings.json"
        await processes.run(Command(("bash", "-c", line), writable=(".", ".vscode/tasks.json")))
    assert (work / ".vscode" / "tasks.json").read_text() == "new\n"
    assert (work / ".vscode" / "settings.json").read_text() == "what-is-here\n"


async def test_a_call_that_was_granted_reading_writes_nowhere(box: Sandbox, work: Path) -> None:
    async with opened(work, box) as made:
        for profile, effect in ((Profile.RESTRICTED, Effect.EXEC), (Profile.TRUSTED, Effect.READ_LOCAL)):
            assert (await sh(made, "cat src/a.py", profile, effect)).out == b"what-is-here\n"
            assert (await sh(made, "echo x > src/new", profile, effect)).code != 0
        processes = made.build_call_processes(Demand(Effect.EXEC, Profile.NORMAL), Profile.UNRESTRICTED)
        said = await processes.run(Command(("bash", "-c", "echo x > src/new"), read_only=True))
        assert said.code != 0
    assert not (work / "src" / "new").exists()


INNER = (".git/modules/sub", ".git/modules/a/b", ".git/modules/a/b/modules/c", ".git/worktrees/w")


@pytest.mark.parametrize("inner", ["", *INNER])
async def test_at_trusted_a_repository_is_written_but_for_what_git_obeys(box: Sandbox, work: Path, inner: str) -> None:
    """In it as in those inside of it, of submodules and of linked worktrees."""
    for folder in INNER:
        (work / folder / "hooks").mkdir(parents=True)
        for name in ("HEAD", "config", "config.worktree", "commondir", "hooks/x"):
            (work / folder / name).write_text("what-is-here\n")
    folder = inner or ".git"
    async with opened(work, box) as made:
        for name in ("config", "hooks/x", "hooks/new", *(("config.worktree", "commondir") if inner else ())):
            before = (work / folder / name).read_text() if name != "hooks/new" else None
            assert (await sh(made, f"echo x >> {folder}/{name}", Profile.TRUSTED)).code != 0, name
            assert (await sh(made, f"mv {folder}/{name} src/away", Profile.TRUSTED)).code != 0, name
            assert before is None or (work / folder / name).read_text() == before
        assert (await sh(made, f"mv {folder}/hooks {folder}/h", Profile.TRUSTED)).code != 0
        # Landlock would have to open all of it, and opens nothing.
        for line in (f"echo x > {folder}/HEAD", f"mkdir -p {folder}/objects/aa"):
            assert ((await sh(made, line, Profile.TRUSTED)).code == 0) is (box.name == "bubblewrap")


PLANT = "cd src; mkdir .idea d; echo x > .idea/x; echo x > .mcp.json; mkdir -p d/.git/hooks; echo x > d/.git/config"


async def test_too_many_secrets_hide_none_of_the_others(box: Sandbox, work: Path) -> None:
    for folder in ("certs", "app"):
        (work / folder).mkdir()
    for number in range(MAX_PLACES + 1):
        (work / "certs" / f"{number}.pem").write_text("what-is-here\n")
    for path in ("app/.env", "certs/a.txt"):
        (work / path).write_text("what-is-here\n")
    async with opened(work, box) as made:
        said = await sh(made, "cat app/.env certs/* .env keys/id_rsa; cat src/a.py")
        assert (said.code, said.out) == (0, b"what-is-here\n")
    for number in range(MAX_PLACES + 1):
        (work / f"{number}.pem").write_text("what-is-here\n")
    async with opened(work, box) as made:
        with pytest.raises(Refusal, match="nothing ran"):
            await sh(made, "true")


@pytest.mark.parametrize("way", ["file", "link", "worktree"])
async def test_a_repository_that_is_kept_elsewhere_is_a_repository(box: Sandbox, work: Path, way: str) -> None:
    kept, place = work / "deep" / "kept", work / "src" / ".git"
    (kept / "hooks").mkdir(parents=True)
    for name in ("HEAD", "config"):
        (kept / name).write_text("what-is-here\n")
    if way == "link":
        place.symlink_to("../deep/kept")
    elif way == "file":
        place.write_text("gitdir: ../deep/kept\n")
    else:
        (kept / "worktrees" / "src").mkdir(parents=True)
        (kept / "worktrees" / "src" / "HEAD").write_text("what-is-here\n")
        (kept / "worktrees" / "src" / "commondir").write_text("../..\n")
        place.write_text(f"gitdir: {kept}/worktrees/src\n")
    async with opened(work, box) as made:
        for path in ("config", "hooks/new", "HEAD"):
            assert (await sh(made, f"echo x >> deep/kept/{path}")).code != 0, path
        for path in ("config", "hooks/new"):
            assert (await sh(made, f"echo x >> deep/kept/{path}", Profile.TRUSTED)).code != 0, path
    assert (kept / "config").read_text() == "what-is-here\n"


async def test_what_others_obey_and_a_command_made_anew_is_named(box: Sandbox, work: Path) -> None:
    """No sandbox can hold what is not there yet."""
    async with opened(work, box) as made:
        processes = made.build_call_processes(Demand(Effect.EXEC, Profile.NORMAL), Profile.NORMAL)
        quiet = await processes.start(Command(("bash", "-c", "echo x > src/.new")))
        await quiet.wait()
        assert await quiet.find_planted_places() == ()
        child = await processes.start(Command(("bash", "-c", PLANT)))
        assert await child.wait() == 0
        assert await child.find_planted_places() == ("src/.idea", "src/.mcp.json", "src/d/.git")
        again = await processes.start(Command(("bash", "-c", "echo y >> src/a.py")))
        await again.wait()
        assert await again.find_planted_places() == ()


async def test_what_git_obeys_and_a_trusted_command_made_anew_is_named(work: Path) -> None:
    box = sandbox("bubblewrap")
    if box is None:
        pytest.skip("Landlock lets nothing be made there")
    async with opened(work, box) as made:
        processes = made.build_call_processes(Demand(Effect.EXEC, Profile.NORMAL), Profile.TRUSTED)
        child = await processes.start(Command(("bash", "-c", "echo . > .git/commondir; echo x > .git/HEAD")))
        await child.wait()
        assert await child.find_planted_places() == (".git/commondir",)


async def test_who_is_trusted_with_the_repository_gets_it_without_its_hooks(work: Path, box: Sandbox) -> None:
    """Under Landlock nothing can be taken out of an open folder; there the program is trusted with all of it."""
    async with opened(work, box) as made:
        processes = made.build_call_processes(Demand(Effect.VCS_LOCAL, Profile.NORMAL), Profile.NORMAL)
        line = "echo x > .git/index; echo x >> .git/config; echo x > .git/hooks/new"
        await processes.run(Command(("bash", "-c", line), writable=(".git",)))
    assert (work / ".git" / "index").exists()
    if box.name == "bubblewrap":
        assert (work / ".git" / "config").read_text() == "what-is-here\n"
        assert not (work / ".git" / "hooks" / "new").exists()


async def test_nothing_is_written_outside(box: Sandbox, work: Path) -> None:
    beside = work.parent / "beside"
    homes = [one for one in HOMES if os.access(one, os.W_OK)]
    async with opened(work, box) as made:
        for place in (beside, "/etc", "/usr", "/var/tmp", "/", *homes):
            await sh(made, f"echo x > {place}/menugate-was-here")
            assert not Path(place, "menugate-was-here").exists(), place


TRY = """
import os, socket, sys
kind, address, pid = sys.argv[1], sys.argv[2], int(sys.argv[3])
if kind == "tcp":
    socket.create_connection(("127.0.0.1", int(address)), 1)
elif kind == "udp":
    socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", int(address)))
elif kind == "unix":
    socket.socket(socket.AF_UNIX).connect(address)
elif kind == "vsock":
    socket.socket(40, socket.SOCK_STREAM)
elif kind == "packet":
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
else:
    os.kill(pid, 0)
print("through")
"""


@pytest.mark.parametrize("kind", ["tcp", "udp", "unix", "vsock", "packet", "signal"])
async def test_no_network_no_socket_and_no_other_program_is_reached(box: Sandbox, work: Path, kind: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        udp.setblocking(False)
        with socket.socket(socket.AF_UNIX) as unix:
            # In the workspace, where it can be seen.
            unix.bind(str(work / "src" / "s"))
            unix.listen()
            address = {"tcp": tcp.getsockname()[1], "udp": udp.getsockname()[1]}.get(kind, "src/s")
            async with opened(work, box) as made:
                ran = await sh(made, f"/usr/bin/env python3 -I -c '{TRY}' {kind} {address} {os.getpid()}")
            if kind == "udp":
                # In a network of its own a datagram can be sent, and goes nowhere.
                with pytest.raises(BlockingIOError):
                    udp.recv(1)
            else:
                assert b"through" not in ran.out, ran.err


async def test_a_fork_bomb_ends_with_its_command(box: Sandbox, work: Path) -> None:
    """For root no bound of the kernel holds, and somebody counts."""
    async with opened(work, box) as made:
        line = "f() { f | f & }; f; sleep 3; echo over"
        try:
            ran = await sh(made, line)
        except Refusal as refused:
            assert "more than 64 processes" in refused.problem.message
        else:
            assert b"esource temporarily unavailable" in ran.err
        assert (await sh(made, "echo fine")).out == b"fine\n"


async def test_memory_and_files_have_an_end(box: Sandbox, work: Path) -> None:
    async with opened(work, box) as made:
        memory = await sh(made, "python3 -I -c 'x = bytearray(1 << 30); print(len(x))'")
        assert memory.out == b""
        assert b"MemoryError" in memory.err
        await sh(made, "head -c 104857600 /dev/zero > src/big")
    assert (work / "src" / "big").stat().st_size <= 50 << 20


async def test_nothing_of_our_environment_comes_along(
    box: Sandbox, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "what-is-here")
    async with opened(work, box) as made:
        assert b"what-is-here" not in (await sh(made, "env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'")).out


async def test_where_no_sandbox_is_a_command_needs_one_profile_more(work: Path) -> None:
    async with opened(work, None) as made:
        with pytest.raises(Refusal, match="no sandbox"):
            await sh(made, "echo x")
        assert (await sh(made, "echo x", Profile.TRUSTED)).out == b"x\n"
        with pytest.raises(Refusal, match="no sandbox"):
            processes = made.build_call_processes(Demand(Effect.EXEC, Profile.NORMAL), Profile.UNRESTRICTED)
            await processes.run(Command(("true",), read_only=True))
