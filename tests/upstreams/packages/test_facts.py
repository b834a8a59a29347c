"""Is a registry's answer read whatever form it has, and the right registry asked?"""

from pathlib import Path
from typing import Any

import pytest

from mcp_server.model.destinations import USUAL_INDEX
from mcp_server.model.upstream_packages import Installer, LockedPackage, PackageLock, PackageRequest
from mcp_server.upstreams.packages.facts import ask_index, find, find_index, name_person, read_date
from tests.upstreams.registry import serve_registry


def test_the_registry_of_the_account_is_asked(tmp_path: Path) -> None:
    plain = PackageRequest(Installer.UV, ("a",), "a")
    assert find_index(plain, {}, tmp_path) == USUAL_INDEX
    (tmp_path / ".config" / "uv").mkdir(parents=True)
    (tmp_path / ".config" / "uv" / "uv.toml").write_text('[[index]]\nurl = "http://own/simple/"\ndefault = true\n')
    assert find_index(plain, {}, tmp_path) == "http://own/simple/"
    assert find_index(plain, {"UV_INDEX_URL": "http://variable"}, tmp_path) == "http://variable/"
    option = PackageRequest(Installer.UV, ("a",), "a", options=("--prerelease", "allow", "-i", "http://option"))
    assert find_index(option, {"UV_INDEX_URL": "http://variable"}, tmp_path) == "http://option/"


def test_people_and_dates_are_read_in_every_form() -> None:
    assert name_person("ann <ann@example.org>") == name_person({"name": "ann", "email": "x"}) == "ann"
    assert name_person(None) == name_person({}) == name_person([1]) == ""
    assert read_date("2001-09-09T01:46:40.000Z") == read_date("2001-09-09T01:46:40+00:00") == 10**9
    assert read_date(None) == read_date("") == read_date(5) == 0
    assert find({"a": {"b": 1}}, "a", "b") == 1
    assert find({"a": [1]}, "a", "b") is find(None, "a") is None


ANSWERS: dict[str, tuple[Any, str]] = {
    "no files": ({"files": []}, "no longer has the file"),
    "another file": ({"files": [{"hashes": {"sha256": "other"}}]}, "no longer has the file"),
    "another form": ([1, 2], "no longer has the file"),
    "nothing": (None, "does not say when"),
}


@pytest.mark.anyio
@pytest.mark.parametrize("what", ANSWERS)
async def test_an_odd_answer_is_no_fault(what: str) -> None:
    lock = PackageLock((LockedPackage("a", "1", "sha256:abc"),), "f", "", "p", "c", "s", 0)
    answer, words = ANSWERS[what]
    with serve_registry() as registry:
        registry.pages["/simple/a/"] = answer
        assert words in (await ask_index(f"{registry.url}/simple/", lock)).unknown
        yanked = {"hashes": {"sha256": "abc"}, "yanked": "broken", "upload-time": "2001-09-09T01:46:40Z"}
        registry.pages["/simple/a/"] = {"files": [yanked]}
        facts = await ask_index(f"{registry.url}/simple/", lock)
        assert (facts.withdrawn, facts.published_at, facts.attested) == ("broken", 10**9, "")
