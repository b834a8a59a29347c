"""Can a mode be added or changed by one more file, and do the same files always make the same menu?"""

from pathlib import Path

import pytest

from tests.config.samples import mode_text, opened, refused


def folder(path: Path, **files: str) -> Path:
    path.mkdir(parents=True)
    for name, text in files.items():
        (path / f"{name}.yaml").write_text(text)
    return path


SHIPPED = [mode.name for mode in opened().menus]


def tools_of(name: str) -> list[str]:
    mode = opened().menus.by_name.get(name)
    assert mode is not None
    return list(mode.tools)


def modes_with(tool: str) -> list[str]:
    return [mode.name for mode in opened().menus.find_modes_with(tool)]


def test_a_mode_is_added_by_one_file(tmp_path: Path) -> None:
    menus = opened(folder(tmp_path / "own", mine=mode_text(tools="[glob, grep]", triggers="[tinkering]"))).menus
    assert [mode.name for mode in menus] == [*SHIPPED, "mine"]
    mine = menus.by_name.get("mine")
    assert mine is not None
    assert mine.tools == ("glob", "grep")
    assert mine.triggers == ("tinkering",)
    assert mine.description == ("You do one thing. It is done. One tool. Use it to try things out. Remember: Be brief.")
    assert [mode.name for mode in menus.find_modes_with("grep")] == [*modes_with("grep"), "mine"]


def test_a_mode_is_everywhere_only_if_it_says_so_itself(tmp_path: Path) -> None:
    files = {"a": mode_text() + "everywhere: true\n", "b": "name: b\nextends: mine\ntitle: B\nwhen: to try b\n"}
    menus = opened(folder(tmp_path / "own", **files)).menus
    assert [mode.name for mode in menus if mode.everywhere] == ["mine"]
    assert list(menus.tools_everywhere) == list(next(mode for mode in menus if mode.everywhere).tools)
    assert not opened().menus.tools_everywhere


def test_a_tool_taken_off_its_only_menu_is_missed(tmp_path: Path) -> None:
    only = next(tool for tool in tools_of("swe") if modes_with(tool) == ["swe"])
    faults = refused(folder(tmp_path / "own", change=f"extends: swe\nremove: [{only}, glob]\n"))
    assert [fault.key for fault in faults] == [only]
    assert "is on no menu" in str(faults)


def test_a_change_adds_removes_and_keeps_the_order(tmp_path: Path) -> None:
    change = "extends: swe\nadd: [fs_move, fs_delete]\nremove: [glob]\ntriggers: [hacking]\n"
    swe = opened(folder(tmp_path / "own", change=change)).menus.by_name.get("swe")
    assert swe is not None
    assert list(swe.tools) == [*(tool for tool in tools_of("swe") if tool != "glob"), "fs_move", "fs_delete"]
    assert swe.triggers[-1] == "hacking"


def test_a_mode_may_begin_with_anothers_tools(tmp_path: Path) -> None:
    child = "name: looking\nextends: swe\ntitle: Looking Around\nwhen: to look\norder: 20\nremove: [Edit, Write]\n"
    grandchild = (
        "name: reading\nextends: looking\ntitle: Reading\nwhen: to read\nremove: [grep, glob]\ngoal: To read.\n"
    )
    menus = opened(folder(tmp_path / "own", a=grandchild, b=child)).menus
    assert [mode.name for mode in menus] == ["swe", "looking", *SHIPPED[1:], "reading"]
    looking, reading, swe = menus.by_name.get("looking"), menus.by_name.get("reading"), menus.by_name.get("swe")
    assert looking and reading and swe
    assert list(looking.tools) == [tool for tool in tools_of("swe") if tool not in ("Edit", "Write")]
    assert list(reading.tools) == [tool for tool in looking.tools if tool not in ("grep", "glob")]
    assert (looking.goal, looking.when, reading.goal) == (swe.goal, "to look", "To read.")
    assert looking.triggers == ()


def test_a_child_begins_with_the_mode_as_it_was_changed(tmp_path: Path) -> None:
    files = {
        "z": "extends: swe\nadd: [fs_move]\n",
        "a": "name: looking\nextends: swe\ntitle: Looking\nwhen: to look\n",
    }
    looking = opened(folder(tmp_path / "own", **files)).menus.by_name.get("looking")
    assert looking and looking.tools[-1] == "fs_move"


def test_several_folders_each_have_their_say(tmp_path: Path) -> None:
    one = folder(tmp_path / "one", mine=mode_text())
    two = folder(tmp_path / "two", more="extends: mine\nadd: [Read]\n")
    mine = opened(one, two).menus.by_name.get("mine")
    assert mine and mine.tools == ("grep", "Read")
    again = refused(one, folder(tmp_path / "three", mine=mode_text()))
    assert "there is already a mode `mine`" in str(again)
    assert str(one / "mine.yaml") in str(again)


def test_modes_that_extend_each_other_in_a_circle_are_named(tmp_path: Path) -> None:
    def link(name: str, parent: str) -> str:
        return f"name: {name}\nextends: {parent}\ntitle: The {name}\nwhen: to go round\n"

    faults = refused(folder(tmp_path / "own", a=link("aa", "bb"), b=link("bb", "cc"), c=link("cc", "aa")))
    assert len(faults) == 1
    assert "aa -> bb -> cc -> aa" in str(faults)


def test_what_is_no_menu_file_is_left_alone(tmp_path: Path) -> None:
    own = folder(tmp_path / "own", mine=mode_text())
    (own / "README.md").write_text("{{{")
    (own / ".mine.yaml").write_text("{{{")
    (own / "mode.schema.json").write_text("{}")
    (own / "deeper").mkdir()
    (own / "deeper" / "x.yaml").write_text("{{{")
    assert opened(own).menus.by_name.get("mine")


def test_a_file_named_yml_is_a_menu_file_too(tmp_path: Path) -> None:
    own = folder(tmp_path / "own")
    (own / "mine.yml").write_text(mode_text())
    assert opened(own).menus.by_name.get("mine")


def test_a_description_has_a_longest(tmp_path: Path) -> None:
    long = "x" * 150 + "."
    assert opened(folder(tmp_path / "fits", mine=mode_text(role=long, goal=long)))
    faults = refused(folder(tmp_path / "own", mine=mode_text(role=long, goal=long, offers=long, remember=long)))
    assert "the limit is 600" in str(faults)


def test_one_broken_file_hides_nothing_that_is_wrong_in_another(tmp_path: Path) -> None:
    own = folder(
        tmp_path / "own",
        a="name: [\n",
        b=mode_text(tools="[gerp]", goal="endless"),
        c="extends: nowhere\nadd: [grep]\n",
    )
    config = tmp_path / "menugate.yaml"
    config.write_text("profil: normal\n")
    faults = refused(own, config=config)
    assert [(Path(fault.file).name, fault.nearest) for fault in faults] == [
        ("menugate.yaml", "profile"),
        ("a.yaml", ""),
        ("b.yaml", ""),
        ("b.yaml", "grep"),
        ("c.yaml", ""),
    ]


@pytest.mark.parametrize("names", [("b", "a", "c"), ("c", "b", "a")])
def test_the_same_files_make_the_same_menu_in_whatever_order_they_were_written(
    names: tuple[str, ...], tmp_path: Path
) -> None:
    files = {
        "a": mode_text(name="one", title="One"),
        "b": mode_text(name="two", title="Two"),
        "c": "extends: one\nadd: [Read]\n",
    }
    own = folder(tmp_path / "own", **{name: files[name] for name in names})
    library = opened(own)
    assert [mode.name for mode in library.menus] == [*SHIPPED, "one", "two"]
    assert library == opened(own)


def test_a_menus_folder_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    assert "the menus folder cannot be read" in str(refused(tmp_path / "gone"))
