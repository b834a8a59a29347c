"""Does the operator's list of places on the network come out as it was meant?"""

from pathlib import Path

import pytest

from mcp_server.model.destinations import USUAL, Destinations, parse_destinations
from tests.config.samples import opened, refused


def listed(folder: Path, text: str) -> Destinations:
    file = folder / "menugate.yaml"
    file.write_text(text)
    return opened(config=file).config.network


@pytest.mark.parametrize("text", ["max_profile: trusted\n", "network: {}\n"])
def test_without_a_list_the_usual_places_are_on_it(text: str, tmp_path: Path) -> None:
    assert listed(tmp_path, text) == parse_destinations(USUAL)


def test_a_list_takes_their_place(tmp_path: Path) -> None:
    found = listed(tmp_path, 'network:\n  allow: ["*.example.org", "git.example:22", 10.1.0.0/16]\n')
    assert found == parse_destinations(["*.example.org", "git.example:22", "10.1.0.0/16"])
    assert not found.is_host_allowed("github.com", 443)


def test_an_empty_list_leaves_nothing(tmp_path: Path) -> None:
    assert listed(tmp_path, "network: {allow: []}\n") == Destinations()


def test_what_is_no_place_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "menugate.yaml"
    file.write_text("network:\n  allow:\n    - github.com\n    - https://github.com\n    - a.*.org\n")
    faults = refused(config=file)
    assert [(fault.line, fault.key) for fault in faults] == [(4, "network.allow[1]"), (5, "network.allow[2]")]
    assert "a URL is not allowed" in str(faults)
