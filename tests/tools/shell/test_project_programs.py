"""Which words of a program that builds or tests make it do something else?"""

import pytest

from tools.shell.project_programs import PROJECT, is_running_own_script


@pytest.mark.parametrize("name", ["test", "test:unit", "lint", "e2e", "dev:test", "build-docs"])
def test_a_script_of_the_project_is_known_by_its_name(name: str) -> None:
    assert is_running_own_script([name])


@pytest.mark.parametrize("name", ["rm", "deploy", "publish", "testify/../rm", "/bin/test", "-e"])
def test_another_one_may_be_a_program_of_the_machine(name: str) -> None:
    assert not is_running_own_script([name])


def test_no_program_takes_a_subcommand_that_nobody_knows() -> None:
    checkers = {
        name for name, fits in PROJECT.items() if fits(["everything"])
    }  # these take the names of files or of the project's own tasks
    for program in PROJECT.keys() - checkers:
        for words in (["publish", "x"], ["eval", "x"], ["exec", "x"], ["x", "install"]):
            assert not PROJECT[program](words), (program, words)
    assert {"rake", "just"} <= checkers
    assert not any(PROJECT[program](["deploy"]) for program in ("rake", "just"))
    assert (
        not {"bun", "deno", "mix", "swift", "npm", "terraform", "alembic", "flask", "hatch", "cargo", "go"} & checkers
    )
