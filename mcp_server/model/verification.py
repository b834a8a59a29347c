"""Did this line of shell run the project's tests, and how did they end? Nobody else judges that.

A line runs tests where one of its commands is a program that does, told by its words: `grep pytest notes.md` is none.
How they ended is told by the exit code alone, and only where that is the tests' own: of `pytest | tail` and of
`pytest || true` nobody knows. A phase of a run asks for more, one plain command, since what stands beside it may have
changed what was tested.
"""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum

from mcp_server.model.results import Ending, Problem, Question
from mcp_server.model.shell import ReadLine, ShellCommand, ShellLine, WordRole
from mcp_server.model.tools import Arguments, RuleSubject, Tool

PASSED, FAILED = "passed", "failed"
DEEPEST = 4


class LineEvidence(StrEnum):
    """What does the exit code of a line say about the tests?"""

    NONE = "none"
    """No tests ran."""
    UNCLEAR = "unclear"
    """Some ran, or may have; the exit code may be that of something else."""
    EXIT_CODE = "exit code"
    """0 where they passed. Another one may be that of what stands beside them, and counts as theirs."""
    PROOF = "proof"
    """The line is the test run and nothing else."""


EVERY = frozenset(("pytest", "py.test", "tox", "nox", "nose2", "jest", "vitest", "mocha", "rspec", "phpunit", "ctest"))
"""Programs that do nothing but run tests."""
MODULES = frozenset(("pytest", "unittest", "tox", "nox", "nose2"))
BY_COMMAND: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(
        ("go", "dotnet", "swift", "mix", "flutter", "dart", "bazel", "stack", "deno"), frozenset(("test",))
    ),
    **dict.fromkeys(("bun", "yarn", "pnpm"), frozenset(("test",))),
    "npm": frozenset(("test", "t")),
    "cargo": frozenset(("test", "nextest")),
}
"""Programs whose first word says what they do."""
BY_TARGET: Mapping[str, frozenset[str]] = {
    "make": frozenset(("test", "check")),
    "just": frozenset(("test", "check")),
    "rake": frozenset(("test", "spec")),
    "mvn": frozenset(("test", "verify")),
    **dict.fromkeys(("gradle", "gradlew"), frozenset(("test", "check"))),
}
"""Programs that do everything they are told to."""
SCRIPTS = frozenset(("npm", "yarn", "pnpm", "bun"))
THROUGH = frozenset(("uv", "poetry", "pdm", "hatch", "pipenv", "rye"))
"""Behind `run` they start what is named."""
AHEAD = frozenset(("env", "timeout", "time", "nice", "command", "xvfb-run", "npx", "bunx", "uvx")) | THROUGH
"""Programs that start the one behind them."""
SHELLS = frozenset(("bash", "sh", "zsh", "dash"))
VALUED = frozenset(
    ("-C", "-n", "-k", "-s", "-u", "-p", "-w", "--prefix", "--dir", "--with", "--python", "--extra", "--group")
)
"""Options of theirs that take the next word with them."""
LOOKING = frozenset(
    ("--collect-only", "--co", "--version", "-V", "--help", "-h", "--fixtures", "--setup-plan", "--no-run")
) | frozenset(("--list", "--listTests", "--setup-only", "--cache-show", "--markers", "--trace-config"))
"""With one of these nothing is tested, or may not be."""
SHOWING: Mapping[str, frozenset[str]] = {
    "make": frozenset(("-n", "--dry-run", "--just-print", "--recon", "-q", "--question", "-t", "--touch")),
    "ctest": frozenset(("-N", "--show-only")),
    **dict.fromkeys(("tox", "nox"), frozenset(("-l", "list"))),
    **dict.fromkeys(("gradle", "gradlew"), frozenset(("-m", "--dry-run"))),
    "mvn": frozenset(("-DskipTests", "-Dmaven.test.skip=true")),
    "vitest": frozenset(("list", "bench")),
}
PYTHON = re.compile(r"(python|pypy)[\d.]*")
STEERING = re.compile(r"\w*(?:OPTS|OPTIONS|FLAGS|ARGS)\+?=.*", re.DOTALL)
"""A setting that may tell the tests to run none."""


def find_test_outcome(tool: Tool, arguments: Arguments, ending: Ending | None, read: ReadLine) -> str:
    """`passed` or `failed`; nothing where no tests ran, or nobody can tell how."""
    if tool.subject is None or tool.subject[1] is not RuleSubject.COMMAND:
        return ""
    text = arguments.get(tool.subject[0])
    if ending is None or isinstance(ending, Question) or not isinstance(text, str):
        return ""
    if judge_line(read(text), read) not in (LineEvidence.EXIT_CODE, LineEvidence.PROOF):
        return ""
    code = (ending.data or {}).get("exit_code")
    if isinstance(code, int):
        return PASSED if code == 0 else FAILED
    return FAILED if isinstance(ending, Problem) else ""


def judge_line(line: ShellLine | None, read: ReadLine, depth: int = 0) -> LineEvidence:
    if line is None or depth > DEEPEST:
        return LineEvidence.NONE
    found = [_judge_command(command, read, depth) for command in line.commands]
    if line.plain:
        return found[0]
    if all(_judge_command(one, read, depth) is LineEvidence.NONE for one in line.list_commands()):
        return LineEvidence.NONE
    return LineEvidence.EXIT_CODE if line.listed and _is_deciding(line, found) else LineEvidence.UNCLEAR


def _is_deciding(line: ShellLine, found: Sequence[LineEvidence]) -> bool:
    """Does the line end well only where the last of its test runs did?"""
    joins = [command.joined for command in line.commands]
    last = max((at for at, one in enumerate(found) if one is not LineEvidence.NONE), default=None)
    if last is None or found[last] is LineEvidence.UNCLEAR:
        return False
    # Behind `||` they may not have run at all.
    before = "".join(";" if join == "\n" else join for join in joins[:last]).rpartition(";")[2]
    return "||" not in before and all(join == "&&" for join in joins[last:-1])


def _judge_command(command: ShellCommand, read: ReadLine, depth: int) -> LineEvidence:
    settings = [word.text for word in command.words if word.role is WordRole.ASSIGNMENT]
    words = [word.text for word in command.words if word.role is WordRole.WORD]
    odd = any(word.role is WordRole.KEYWORD for word in command.words)
    if odd or any(STEERING.fullmatch(setting) for setting in settings):
        return LineEvidence.UNCLEAR if _is_test_run(words) else LineEvidence.NONE
    if _is_test_run(words):
        # What else a program is told by its environment may be to test something else.
        return LineEvidence.PROOF if all(one.startswith("PYTHON") for one in settings) else LineEvidence.EXIT_CODE
    while words and _get_program(words) in AHEAD:
        words = _skip_options(words[1:])
        if words[:1] == ["run"]:
            words = _skip_options(words[1:])
    if len(words) > 2 and _get_program(words) in SHELLS and re.fullmatch("-[a-z]*c", words[1]):
        inner = judge_line(read(words[2]), read, depth + 1)
        return LineEvidence.EXIT_CODE if inner is LineEvidence.PROOF else inner
    return LineEvidence.EXIT_CODE if _is_test_run(words) else LineEvidence.NONE


def _get_program(words: Sequence[str]) -> str:
    return words[0].rsplit("/", 1)[-1]


def _skip_options(words: list[str]) -> list[str]:
    """From the first word on that is no option, no setting and no time."""
    at = 0
    while at < len(words) and re.fullmatch(r"-.*|\w+=.*|\d+[smhd]?", words[at], re.DOTALL):
        at += 2 if words[at] in VALUED else 1
    return [*words[at:]]


def _is_test_run(words: list[str]) -> bool:
    """Is this program, with these words, one that runs tests?"""
    if not words or LOOKING.intersection(words[1:]):
        return False
    name, rest = _get_program(words), words[1:]
    if SHOWING.get(name, frozenset()).intersection(rest):
        return False
    if name in EVERY:
        return True
    if PYTHON.fullmatch(name):
        return len(rest) > 1 and ((rest[0] == "-m" and rest[1] in MODULES) or rest[:2] == ["manage.py", "test"])
    if name == "node":
        return "--test" in rest
    if name in THROUGH:
        return rest[:1] == ["run"] and _is_test_run(rest[1:])
    if name in BY_TARGET:
        return bool(BY_TARGET[name].intersection(rest))
    plain = _skip_options(rest)
    if name in SCRIPTS and plain[:1] in (["run"], ["run-script"], ["exec"]):
        return len(plain) > 1 and (re.fullmatch("test(?::.*)?", plain[1]) is not None or plain[1] in EVERY)
    first = plain[0] if plain else ""
    return first in BY_COMMAND.get(name, frozenset()) or (name in SCRIPTS and first in EVERY)
