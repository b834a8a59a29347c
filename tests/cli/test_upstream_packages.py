"""Is a server's package fetched once, kept, and replaced only when you approve?"""

import json
import shutil
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Said, Type
from tests.clients.pipe import pipe
from tests.clients.served import state_home
from tests.upstreams.registry import TOOL, Registry, serve_registry

LINES = {"npm": "npx -y @acme/greeter --loud", "PyPI": "uvx acme-greeter --loud"}
WAVE = {**TOOL, "name": "wave", "description": "Waves."}


@pytest.fixture
def registry(home: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """A registry with one version of each package, which the account's package managers use."""
    monkeypatch.setenv("PATH", f"/usr/local/bin:/usr/bin:/bin:{sysconfig.get_path('scripts')}")
    with serve_registry() as served:
        served.configure(home)
        attested = {"attestations": {"provenance": {"predicateType": "https://slsa.dev/provenance/v1"}}}
        served.publish_npm("@acme/greeter", "1.0.0", _npmUser={"name": "acme-bot", "email": "bot@acme"}, dist=attested)
        built = {"attestation_bundles": [{"publisher": {"kind": "GitHub", "repository": "acme/greeter"}}]}
        served.pages["/integrity/acme-greeter"] = built
        served.publish_wheel("acme-greeter", "1.0.0", provenance="/integrity/acme-greeter")
        yield served


def approve(menugate: Type) -> None:
    shown = json.loads(menugate("upstreams approve greeter --json").out)
    said = menugate(f"upstreams approve greeter --digest {shown['digest']}")
    assert said.code == 0, said.err


def list_places(home: Path) -> list[str]:
    return sorted(path.name for path in state_home(home).glob("servers/*/*") if path.is_dir())


def greet(place: Path, home: Path) -> Any:
    with pipe(place, home, "--profile", "trusted") as client:
        client.hello()
        client.call("menu_enter", mode="greeter")
        return json.loads(client.call("greeter_hello")["content"][0]["text"])


def assert_facts(source: str, said: str) -> None:
    """What the registry says, and what nobody checked."""
    who = "by acme-bot" if source == "npm" else "by an account that PyPI does not name"
    built = "https://slsa.dev/provenance/v1" if source == "npm" else "GitHub acme/greeter"
    for words in (who, f"attestation of where it was built ({built})", "signature was not checked", "days ago"):
        assert words in " ".join(said.split()), said


@pytest.mark.slow
@pytest.mark.parametrize("source", LINES)
def test_a_package_is_fetched_once_and_starts_without_its_registry(
    source: str, registry: Registry, menugate: Type, place: Path, home: Path
) -> None:
    said = menugate(f"upstreams add greeter -- {LINES[source]}")
    assert said.code == 0, said.err
    assert "greeter 1.0.0" in said.err and source in said.err
    assert_facts(source, said.err)
    asked = len(registry.asked)
    said = menugate("upstreams test greeter")
    assert "1.0.0" in said.out, said.err
    approve(menugate)
    assert "kept with all its hashes" in menugate("upstreams show greeter").out
    # Whatever is published now, the one that you approved runs, and nobody asks the registry.
    registry.publish_npm("@acme/greeter", "2.0.0", (TOOL, WAVE))
    registry.publish_wheel("acme-greeter", "2.0.0", (TOOL, WAVE))
    assert greet(place, home) == ["--loud", "1.0.0"]
    assert len(registry.asked) == asked
    shown = json.loads(menugate("upstreams update greeter --json").out)
    assert shown["update"] == {"from": "1.0.0", "to": "2.0.0"}
    assert [(one["what"], one["name"]) for one in shown["changes"]] == [("new", "wave")]
    assert greet(place, home) == ["--loud", "1.0.0"]
    assert "no longer offers what you were shown" in menugate(f"upstreams update greeter --digest {'0' * 16}").err
    said = menugate(f"upstreams update greeter --digest {shown['digest']}")
    assert said.code == 0, said.err
    assert greet(place, home) == ["--loud", "2.0.0"]
    assert "up to date" in menugate("upstreams update greeter").out
    assert len(list_places(home)) == 2, "the version before may still run"
    menugate("upstreams remove greeter")
    assert list_places(home) == []


def test_what_is_written_by_hand_is_fetched_at_the_first_approval(
    registry: Registry, menugate: Type, place: Path, home: Path
) -> None:
    file = home / ".config" / "menugate" / "menugate.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("mcpServers: {greeter: {command: npx, args: [-y, '@acme/greeter']}}\n")
    assert "npm" in menugate("upstreams show greeter").out
    assert registry.asked == []
    approve(menugate)
    assert greet(place, home) == ["1.0.0"]
    changed = next(state_home(home).glob("servers/*/*/node_modules/@acme/greeter/server.js"))
    changed.write_text(changed.read_text().replace("1.0.0", "6.6.6"))
    said = menugate("upstreams test greeter")
    assert "menugate upstreams update greeter" in said.err, said
    shown = json.loads(menugate("upstreams update greeter --json").out)
    assert "were changed since they were fetched" in said.err or shown["update"] == {"from": "1.0.0", "to": "1.0.0"}


FAULTS = {
    "upstreams add greeter -- npx -y @acme/nowhere": "nothing was changed, because the package of greeter was not",
    "upstreams update plain": "its entry names no package",
    "upstreams update far": "its entry names no package",
    "upstreams update git": "because its package comes from an address or folder",
    "upstreams update image": "fetches it by itself",
    "upstreams update nowhere": "there is no server nowhere",
}


@pytest.mark.parametrize("line", FAULTS)
def test_what_cannot_be_fetched_or_updated_is_said(line: str, registry: Registry, menugate: Type, home: Path) -> None:
    file = home / ".config" / "menugate" / "menugate.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        "mcpServers:\n  plain: {command: sh}\n  far: {url: 'http://127.0.0.1:9/mcp'}\n"
        "  git: {command: npx, args: ['github:a/b']}\n  image: {command: docker, args: [run, -i, x]}\n"
    )
    if not shutil.which("docker"):
        file.write_text(file.read_text().replace("docker", "/usr/bin/env"))
    before = file.read_text()
    said: Said = menugate(line)
    if "image" in line and "env" in before:
        return
    assert (said.code, FAULTS[line] in said.err) == (1, True), said.err
    assert file.read_text() == before
