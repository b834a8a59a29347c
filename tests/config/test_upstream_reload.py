"""Which servers are mounted after an edit: valid entries as they are, wrong ones as they last were, none too early?"""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mcp_server.config.faults import ConfigFault
from mcp_server.config.load import Configuration, load_configuration
from mcp_server.config.upstream_reload import find_missing_servers, keep_valid_entries, remount_servers
from mcp_server.config.upstreams import ConfiguredUpstreams, UpstreamFault
from mcp_server.model.menus import Menus, Mode
from mcp_server.model.upstreams import Mount, StdioTarget
from mcp_server.settings import Settings

OLD = Mount("git", "git", StdioTarget(("old",)))
NEW = Mount("git", "git", StdioTarget(("new",)))
OTHER = Mount("time", "time", StdioTarget(("time",)))


def wrong(server: str) -> UpstreamFault:
    return UpstreamFault(server, ConfigFault("c.yaml", 3, server, "it is wrong"))


def configured(*mounts: Mount, broken: tuple[str, ...] = ()) -> ConfiguredUpstreams:
    return ConfiguredUpstreams(mounts, tuple(map(wrong, broken)))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(workspace=tmp_path, state=tmp_path / ".menugate", secrets=tmp_path / "keys")


KEPT: Mapping[str, tuple[ConfiguredUpstreams | None, ConfiguredUpstreams | None, tuple[str, ...]]] = {
    "a valid file": (configured(NEW), configured(OLD), ("new",)),
    "no section any more": (None, configured(OLD), ()),
    "the first section": (configured(NEW, broken=("time",)), None, ("new",)),
    "a wrong entry": (configured(OTHER, broken=("git",)), configured(OLD), ("time", "old")),
    "a wrong entry that is new": (configured(OTHER, broken=("git",)), configured(OTHER), ("time",)),
    "a place that is taken": (
        configured(dataclasses.replace(NEW, name="Git"), broken=("git",)),
        configured(OLD),
        ("new",),
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_a_wrong_entry_keeps_its_last_valid_form(name: str, settings: Settings) -> None:
    now, before, targets = KEPT[name]
    kept = keep_valid_entries(now, before, settings)
    mounts = kept.upstreams.mounts if kept.upstreams else ()
    assert tuple(mount.target.argv[0] for mount in mounts if isinstance(mount.target, StdioTarget)) == targets
    assert bool(kept.faults) == ("old" in targets)
    assert all("c.yaml:3" in fault and "`git` stays as it was" in fault for fault in kept.faults)


def test_a_secret_that_was_removed_is_not_used_any_longer(settings: Settings) -> None:
    before = configured(dataclasses.replace(OLD, secrets=("GONE",)))
    kept = keep_valid_entries(configured(broken=("git",)), before, settings)
    assert kept.upstreams is not None and not kept.upstreams.mounts and not kept.faults


def test_a_mode_needs_the_servers_that_it_names() -> None:
    texts = dict.fromkeys(("title", "role", "goal", "offers", "when", "remember"), "x")
    menus = Menus((Mode("mixed", **texts, tools=("Read", "git:*", "time:now")),))
    assert list(find_missing_servers(menus, configured(OLD, broken=("time",)))) == []
    [missing] = find_missing_servers(menus, configured(OLD))
    assert "`mixed` names the server `time`" in missing
    assert len(list(find_missing_servers(menus, None))) == 2


@pytest.fixture
def mount(settings: Settings) -> Callable[..., Configuration]:
    loaded = load_configuration(settings, bare=True)
    assert isinstance(loaded, Configuration)

    def mount(start: Configuration | None, *mounts: Mount, settled: bool = True) -> Configuration:
        base: Any = start or loaded
        config = replace(base.library.config, upstreams=configured(*mounts))
        return remount_servers(replace(base, library=replace(base.library, config=config)), settings, settled)

    return mount


def names(configuration: Configuration) -> tuple[Mount, ...] | None:
    return configuration.mounted and configuration.mounted.mounts


def test_while_a_file_may_be_half_written_servers_only_go(mount: Callable[..., Configuration]) -> None:
    assert names(mount(None, OLD, settled=False)) is None
    first = mount(None, OLD, OTHER)
    assert names(first) == (OLD, OTHER)
    assert names(mount(first, NEW, OTHER, settled=False)) == (OTHER,), "one that changes goes until it is known"
    assert names(mount(first, NEW, OTHER)) == (NEW, OTHER)
    assert names(mount(first, dataclasses.replace(OLD, disabled=True), settled=False)) == ()
    assert mount(first, dataclasses.replace(OLD, source="c.yaml:9"), OTHER).mounted is first.mounted, (
        "a moved line is no change"
    )
