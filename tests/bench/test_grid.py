"""Does the grid in ARCHITECTURE.md follow the tree, and is a name that nobody explained reported?"""

from pathlib import Path

import pytest

from bench import grid

PAGE = f"before\n{grid.START}old\n{grid.END}\nafter\n"


def make_tree(root: Path, *files: str) -> Path:
    for file in files:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).touch()
    return root


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(grid, "ABOUT", {"todos": "work"})
    monkeypatch.setattr(grid, "NOT_SUBJECTS", frozenset[str]())
    return make_tree(tmp_path, "mcp_server/cli/todos.py", "mcp_server/state/todo_marks.py", "tools/todos/__init__.py")


def test_a_subject_is_shown_in_each_of_its_rooms(tree: Path) -> None:
    page = grid.fill_grid(PAGE, tree)
    assert page.startswith("before\n") and page.endswith("\nafter\n") and "old" not in page
    assert "| **todos** | work |  |  |  | `todo_marks` |  |  |  |  | ● | `todos/` |\n" in page


def test_a_name_in_two_rooms_has_to_be_explained(tree: Path) -> None:
    make_tree(tree, "mcp_server/cli/colours.py", "mcp_server/model/colours.py")
    with pytest.raises(SystemExit, match="colours"):
        grid.render_grid(tree)


def test_an_explanation_goes_with_its_subject(tree: Path) -> None:
    (tree / "mcp_server/cli/todos.py").unlink()
    with pytest.raises(SystemExit, match="todos"):
        grid.render_grid(tree)


def test_a_page_without_the_markers_is_refused(tree: Path) -> None:
    with pytest.raises(SystemExit, match="end of grid"):
        grid.fill_grid("no grid here", tree)
