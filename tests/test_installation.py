"""Is the person told what menugate runs from, and what holds of it?"""

from mcp_server.installation import describe_installation, find_linked_files


def test_one_outside_of_the_workspace_is_said_to_be() -> None:
    assert describe_installation([]).endswith(", outside the workspace")


def test_one_inside_is_named_with_the_way_out() -> None:
    text = describe_installation([".venv", "src/menugate"])
    assert text.startswith(".venv, src/menugate: ")
    assert "install menugate outside the workspace" in text
    assert describe_installation(["."]).startswith("the whole workspace: ")


def test_files_with_a_second_name_are_counted() -> None:
    assert "1 file with a second name" in describe_installation([], 1)
    text = describe_installation([".venv"], 3)
    assert "3 files with a second name" in text
    assert "calls can only read .venv" in text


def test_every_file_that_is_found_has_one() -> None:
    assert all(device >= 0 and node > 0 for device, node in find_linked_files())
