"""Does lsp_tool hold, whatever its server does? Against a real program that misbehaves as its script says."""

import os
import socket
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import replace

from mcp_server.guards.processes.commands import CommandHost
from mcp_server.model.posture import Profile
from mcp_server.model.results import Code, Problem
from tests.clients.served import PATIENCE
from tests.tools.lsp.ground import LspWorkbench, Started, bench, problem

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("profile", [Profile.RESTRICTED, Profile.TRUSTED, Profile.UNRESTRICTED])
async def test_the_program_is_shut_in(started: Started, tmp_path: Path, profile: Profile) -> None:
    """What it tries is seen in what it says about it: nothing written, nobody reached."""
    async with started() as one:
        one.profile = profile
        listening = socket.create_server(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        trying = (tmp_path / "bin" / "ty").read_text().replace(
            "def main() -> None:\n",
            "def main() -> None:\n"
            "    import socket\n"
            f"    for path in ({str(one.root / 'canary')!r}, {str(tmp_path / 'canary')!r}):\n"
            "        try:\n"
            "            open(path, 'w').close()\n"
            "        except OSError:\n"
            "            continue\n"
            "    try:\n"
            f"        socket.create_connection(('127.0.0.1', {port}), 1)\n"
            "    except OSError as error:\n"
            "        print('no network', file=sys.stderr, flush=True)\n",
        )  # fmt: skip
        (tmp_path / "bin" / "ty").write_text(trying)
        assert (await one.text("hover_symbol", symbol="greet", line=1)).startswith("greet\n")
        assert not (one.root / "canary").exists()
        assert not (tmp_path / "canary").exists()
        (child,) = one.shop.registry.children
        with anyio.fail_after(PATIENCE):
            # Its errors come on a pipe of their own, which is read beside its answers.
            while not child.last_words:
                await anyio.lowlevel.checkpoint()
        assert child.last_words == "no network"
        listening.close()


class TestWhichServer:
    """The best of those that are installed, and none that may run the project's code unless the call was judged so."""

    async def test_none_is_installed(self, tmp_path: Path) -> None:
        (tmp_path / "a.go").write_text("package a\n")
        async with bench(tmp_path, elsewhere=False) as one:
            one.profile = Profile.TRUSTED
            ending = await one.call("document_symbols", "a.go")
            assert isinstance(ending, Problem)
            assert "No language server for Go is installed" in ending.message
            assert "`gopls` (go install golang.org/x/tools/gopls@latest)" in ending.way_out

    async def test_one_that_may_run_code_is_not_started_unasked(self, started: Started) -> None:
        async with started(name="jedi-language-server") as one:
            one.shop = alone(one)
            ending = await problem(one)
            assert ending.code is Code.NOT_GRANTED
            assert "may run the project's code" in ending.message
            assert '"server": "jedi-language-server"' in ending.way_out
            assert "pip install ty" in ending.way_out
            named = await problem(one, server="jedi-language-server")
            assert named.code is Code.PROFILE_TOO_LOW
            one.profile = Profile.TRUSTED
            text = await one.text("hover_symbol", symbol="greet", line=1, server="jedi-language-server")
            assert "`jedi-language-server` answered, and it reports syntax errors only." in text

    async def test_languages_whose_servers_all_may_are_for_trusted_projects(self, started: Started) -> None:
        async with started(name="gopls") as one:
            (one.root / "a.go").write_text("package greet\n")
            refused = await one.call("hover_symbol", "a.go", symbol="greet", line=1)
            assert isinstance(refused, Problem)
            assert refused.code is Code.PROFILE_TOO_LOW
            one.profile = Profile.TRUSTED
            assert "`gopls` answered" in await one.text("hover_symbol", "a.go", symbol="greet", line=1)

    async def test_one_of_another_language_is_not_asked(self, started: Started) -> None:
        async with started() as one:
            one.profile = Profile.TRUSTED
            ending = await problem(one, server="gopls")
            assert "`gopls` is not a server for Python." in ending.message

    async def test_one_that_lies_in_the_workspace_is_nobodys(self, started: Started, tmp_path: Path) -> None:
        async with started() as one:
            (tmp_path / "bin").rename(one.root / "bin")
            async with bench(one.root, one.root / "bin", elsewhere=False) as other:
                ending = await problem(other)
                assert "No language server for Python is installed" in ending.message


def alone(one: LspWorkbench) -> CommandHost:
    """The same workshop, where no better server is found than the test's own."""
    folders = [Path(folder) for folder in one.shop.paths.search_path.split(os.pathsep)]
    better = ("ty", "pyright-langserver")
    kept = [str(folder) for folder in folders if not any((folder / name).exists() for name in better)]
    return replace(one.shop, paths=replace(one.shop.paths, search_path=os.pathsep.join(kept)))
