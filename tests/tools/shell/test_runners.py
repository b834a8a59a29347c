"""Which lines may run files that they do not name? What only sets something or treats files as data does not."""

import pytest

from tools.shell.lines import read_line
from tools.shell.runners import judge_run_line


@pytest.mark.parametrize(
    "line", ["shopt -s globstar; rm x", "set -o pipefail; rm x", "set +e; rm x", "col -b < x; rm x"]
)
def test_it_runs_only_what_it_names(line: str) -> None:
    read = read_line(line)
    assert read is not None
    assert judge_run_line(read).untold == ""


@pytest.mark.parametrize(
    "line", ["set -k; rm x", "set -a; rm x", "set -o allexport; rm x", "alias rm=x; rm x", "canary x"]
)
def test_it_may_run_more(line: str) -> None:
    read = read_line(line)
    assert read is not None
    assert "may load files" in judge_run_line(read).untold
