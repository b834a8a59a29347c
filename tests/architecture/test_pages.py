"""Do the hand-written pages still say what is there?"""

import re
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[2]


def test_the_readme_shows_the_folders_that_are_there() -> None:
    tree = re.search(r"## Where things live\n\n```\n(.*?)```", (HOUSE / "README.md").read_text(), re.DOTALL)
    assert tree is not None
    lines = [line for line in tree[1].splitlines() if line.strip()]
    top = {line.split("/")[0] for line in lines if not line.startswith(" ")}
    inside = {line.split()[0].rstrip("/") for line in lines if line.startswith("  ")}
    folders = {path.name for path in HOUSE.iterdir() if path.is_dir() and not path.name.startswith(".")}
    assert top == folders - {"dist", "build"}
    rooms = {path.name for path in (HOUSE / "mcp_server").iterdir() if not path.name.startswith("__")}
    assert inside == rooms


def test_there_are_few_words_each_once() -> None:
    rows = re.findall(r"^\| \*\*(.+?)\*\* \|", (HOUSE / "docs" / "words.md").read_text(), re.MULTILINE)
    assert 0 < len(rows) == len(set(rows)) <= 20


def test_every_dependency_has_its_reason() -> None:
    declared = set(re.findall(r'^  "([a-z-]+)>=', (HOUSE / "pyproject.toml").read_text(), re.MULTILINE))
    given = (HOUSE / "DEPENDENCIES.md").read_text()
    named = {name for row in re.findall(r"^\| ([a-z, -]+) \|", given, re.MULTILINE) for name in row.split(", ")}
    for_work = {
        "build",
        "hatchling",
        "hypothesis",
        "import-linter",
        "markdown-it-py",
        "mutmut",
        "pytest",
        "pytest-xdist",
        "ruff",
        "uv",
    }
    assert declared - named == for_work


def anchors(page: Path) -> set[str]:
    """What a link may name after `#`: the headings, as GitHub writes them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_pages_name_files_and_headings_that_are_there() -> None:
    for page in [*sorted(HOUSE.glob("*.md")), *sorted((HOUSE / "docs").glob("*.md"))]:
        for target, anchor in re.findall(r"\]\((?!http)([^)#]*)#?([^)]*)\)", page.read_text()):
            there = page.parent / target if target else page
            assert there.exists(), f"{page.name} names {target}"
            assert not anchor or anchor in anchors(there), f"{page.name} names {target}#{anchor}"


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_the_files_in_the_text_are_there(page: str) -> None:
    """Capitals stand for a name to choose: `menus/MODE.yaml`."""
    named = set(re.findall(r"`([\w/]+/[\w.]+\.(?:py|yaml|md))`", (HOUSE / page).read_text()))
    chosen = {name for name in named if re.search(r"[A-Z]{2}", name)}
    tops = (HOUSE, HOUSE / "mcp_server")
    assert len(named) > 10
    assert [name for name in named - chosen if not any((top / name).is_file() for top in tops)] == []


def test_the_project_speaks_of_itself_alone() -> None:
    """No path of a machine it was made on, and no host it was installed from."""
    unwanted = re.compile(r"/work/(?:main|shared)|/tmp/wt|registry\.npmjs|pypi\.org|deb\.debian")
    written = {".py", ".md", ".yaml", ".toml", ".sh"}
    # What may be reached from a sandbox has to be named somewhere.
    named = {Path(__file__), *(HOUSE / path for path in ("mcp_server/model/destinations.py", "docs/network.md"))}
    elsewhere = {".venv", ".cache", ".hypothesis"}
    pages = [path for path in HOUSE.rglob("*") if path.suffix in written and not elsewhere & set(path.parts)]
    assert [path for path in pages if path not in named and unwanted.search(path.read_text())] == []
