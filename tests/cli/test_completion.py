"""Does Tab offer what may come next?"""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from mcp_server.cli.commands import COMMANDS
from mcp_server.cli.topics import TOPICS
from mcp_server.model.posture import WorkMode
from tests.cli.conftest import Type
from tests.clients.served import PATIENCE, command, environment
from tests.config.samples import opened

MODES = " ".join(mode.name for mode in opened().menus)


@pytest.mark.parametrize(
    ("typed", "offers"),
    [
        ("''", " ".join(COMMANDS)),
        ("m", "menus messages mode model memory"),
        ("h", "help"),
        ("help ''", " ".join([*COMMANDS, *TOPICS])),
        ("help pro", "profile profiles"),
        ("version --j", "--json"),
        ("audit ''", "tail show why verify export"),
        ("audit t", "tail"),
        ("audit tail --k", "--kind"),
        ("audit tail --kind ref", "refusal"),
        ("audit tail --kind refusal --kind al", "alarm"),
        ("audit tail --follow --fo", "--follow"),
        ("menus ''", MODES),
        ("menus swe ''", ""),
        ("menus --to", "--tokens"),
        ("explain R", "Read"),
        ("explain Read --stage micro", "micro_step"),
        ("explain Read --mode d", "data"),
        ("explain Read --profile t", "trusted"),
        ("explain Read '{}' ''", ""),
        ("mode ''", " ".join(WorkMode)),
        ("mode re", "review repair research"),
        ("mode plan --sc", "--scope"),
        ("mode plan --scope n", "now next-milestone"),
        ("mode repair --autonomous --permission-profile n", "normal"),
        ("reasoning ''", "on off"),
        ("steer pro", "profile"),
        ("steer profile tr", "trusted"),
        ("steer profile trusted fo", "for-next-unit"),
        ("doctor ''", "fix"),
        ("call --workspace ''", ""),
        ("call --workspace src menu_e", "menu_enter menu_exit"),
        ("serve --listing ''", "auto masked carried stable flat"),
        ("completion ''", "bash zsh fish"),
        ("completion --w", ""),
        ("cook ''", ""),
    ],
)
def test_what_is_offered(typed: str, offers: str, menugate: Type) -> None:
    said = menugate(f"completion --words {typed}")
    assert (said.code, said.out.split()) == (0, offers.split())


def test_faults_on_disk_are_no_answer_to_tab(place: Path, home: Path, menugate: Type) -> None:
    folder = home / ".config" / "menugate"
    folder.mkdir(parents=True)
    (folder / "menugate.yaml").write_text("oops: 1\n")
    said = menugate("completion --words explain R")
    assert (said.code, said.out, said.err) == (0, "", "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_a_real_shell_completes(place: Path, home: Path) -> None:
    programs = place / "bin"
    programs.mkdir()
    (programs / "menugate").write_text(f'#!/bin/sh\nexec {shlex.join(command())} "$@"\n')
    (programs / "menugate").chmod(0o755)
    script = """
        source <(menugate completion bash)
        COMP_WORDS=(menugate explain --mode "" Read); COMP_CWORD=3; _menugate; echo "${COMPREPLY[*]}"
        complete -p menugate
    """
    around = environment(home)
    said = subprocess.run(
        ["bash", "-c", script],
        env=around | {"PATH": f"{programs}:{around['PATH']}"},
        cwd=place,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert said.stdout.splitlines() == [MODES, "complete -o default -F _menugate menugate"]
