"""Which lines cannot succeed, whatever the user says?"""

import pytest

from tools.shell.lines import read_line
from tools.shell.surroundings import Surroundings
from tools.shell.vain_lines import find_failure

KINDS = {"a.txt": "file", "run.sh": "program", "src": "directory", "src/run.sh": "program", "link": "link"}
PROGRAMS = {
    "npx",
    "ls",
    "cat",
    "rm",
    "mv",
    "cp",
    "bash",
    "python3",
    "timeout",
    "env",
    "sudo",
    "node",
    "touch",
    "/usr/bin/ls",
}.union(["git", "curl", "wget", "ssh", "scp", "rsync", "ping", "gh", "npm", "kubectl", "pytest", "jq", "xargs"])


def find(line: str, folder: str = ".", root: bool = False) -> str:
    read = read_line(line)
    assert read
    around = Surroundings(PROGRAMS.__contains__, lambda path: KINDS.get(path.removeprefix("./"), ""), root)
    vain = find_failure(read, folder, around)
    return vain.because if vain else ""


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("nosuch x", "there is no program `nosuch`"),
        ("timeout 5 env A=1 nosuch", "there is no program `nosuch`"),
        ("/usr/bin/nosuch", "there is no program `/usr/bin/nosuch`"),
        ("./nosuch && ls", "there is no file `./nosuch`"),
        ("./a.txt", "`./a.txt` is not executable"),
        ("./src", "`./src` is a folder"),
        ("bash nosuch.sh | cat", "there is no file `nosuch.sh`"),
        (". ./nosuch", "there is no file `./nosuch`"),
        ("cd nosuch && rm a.txt", "there is no folder `nosuch`"),
        ("rm -r nosuch other", "there is no file `nosuch`"),
        ("mv nosuch a.txt", "there is no file `nosuch`"),
        ("node nosuch.js", "there is no file `nosuch.js`"),
        ("rm nosuch 2>/dev/null", "there is no file `nosuch`"),
        ("rm", "`rm` names no file"),
        ("sudo ls", "`sudo` cannot get other privileges in a sandbox"),
    ],
)
def test_a_line_whose_first_command_fails_cannot_succeed(line: str, why: str) -> None:
    assert find(line) == why


@pytest.mark.parametrize(
    "line",
    [
        *(
            "nosuch; ls",
            "nosuch || ls",
            "nosuch & ls",
            "touch x && ./x",
            "./run.sh",
            "./link",
            "rm a.txt nosuch",
            "rm -f nosuch",
        ),
        *(
            "rm new > new",
            "mv new a.txt >new",
            "bash ls src",
            "CDPATH=src cd inner && rm x",
            "node nosuch",
            "rm *",
            "rm $x",
            "rm ../x",
            "rm /etc/x",
            "rm -- nosuch",
            "mv -t src nosuch",
            "cd - && ls",
            "cd && ls",
            "$x",
            "x() { ls; }",
        ),
        *(
            "$(nosuch)",
            "env PATH=src run.sh",
            "bash -c nosuch",
            "bash < nosuch",
            "/tmp/nosuch",
            "(nosuch)",
            "if nosuch; then ls; fi",
        ),
    ],
)
def test_what_may_succeed_is_asked_about(line: str) -> None:
    assert find(line) == ""


def test_it_looks_in_the_folder_where_the_line_starts() -> None:
    assert find("./run.sh", "src") == ""
    assert find("./a.txt", "src") == "there is no file `./a.txt`"


def test_root_needs_no_other_privileges() -> None:
    assert find("sudo ls", root=True) == ""
