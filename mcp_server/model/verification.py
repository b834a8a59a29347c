"""Did this shell line run the project's tests, and did they pass? Nothing else decides that.

A line runs tests if one of its commands is a program that does, judged by its words: `grep pytest notes.md` is not.
Whether they passed is judged by the exit code, and only if that is the tests' own: after `pytest | tail` or
`pytest || true` it is unknown. The phases of a run require more, a single plain command, because other commands in the
line may change what is tested.
"""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum

from mcp_server.model.results import Ending, Problem, Question, Relayed
from mcp_server.model.shell import ReadLine, ShellCommand, ShellLine, WordRole, get_program_name
from mcp_server.model.tools import Arguments, RuleSubject, Tool

PASSED, FAILED = "passed", "failed"
MAX_DEPTH = 4


class LineEvidence(StrEnum):
    """What the exit code of a line says about the tests."""

    NONE = "none"
    """No tests ran."""
    UNCLEAR = "unclear"
    """Some ran, or may have; the exit code may be that of another command."""
    EXIT_CODE = "exit code"
    """0 if they passed. Any other may come from another command in the line, but counts as a failure of the tests."""
    PROOF = "proof"
    """The line is the test run and nothing else."""


TEST_RUNNERS = frozenset(
    ("pytest", "py.test", "tox", "nox", "nose2", "jest", "vitest", "mocha", "rspec", "phpunit", "ctest")
)
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
"""Programs that run every target in their arguments."""
SCRIPTS = frozenset(("npm", "yarn", "pnpm", "bun"))
RUN_WRAPPERS = frozenset(("uv", "poetry", "pdm", "hatch", "pipenv", "rye"))
"""Programs that start the one after `run`."""
WRAPPERS = frozenset(("env", "timeout", "time", "nice", "command", "xvfb-run", "npx", "bunx", "uvx")) | RUN_WRAPPERS
"""Programs that start the one after them."""
SHELLS = frozenset(("bash", "sh", "zsh", "dash"))
OPTIONS_WITH_VALUE = frozenset(
    ("-C", "-n", "-k", "-s", "-u", "-p", "-w", "--prefix", "--dir", "--with", "--python", "--extra", "--group")
)
"""Options of such programs that take the next word as a value."""
NOT_TESTING = frozenset(
    ("--collect-only", "--co", "--version", "-V", "--help", "-h", "--fixtures", "--setup-plan", "--no-run")
) | frozenset(("--list", "--listTests", "--setup-only", "--cache-show", "--markers", "--trace-config"))
"""Options with which no test runs, or may not."""
NOT_TESTING_OF: Mapping[str, frozenset[str]] = {
    "make": frozenset(("-n", "--dry-run", "--just-print", "--recon", "-q", "--question", "-t", "--touch")),
    "ctest": frozenset(("-N", "--show-only")),
    **dict.fromkeys(("tox", "nox"), frozenset(("-l", "list"))),
    **dict.fromkeys(("gradle", "gradlew"), frozenset(("-m", "--dry-run"))),
    "mvn": frozenset(("-DskipTests", "-Dmaven.test.skip=true")),
    "vitest": frozenset(("list", "bench")),
}
PYTHON = re.compile(r"(python|pypy)[\d.]*")
STEERING = re.compile(r"\w*(?:OPTS|OPTIONS|FLAGS|ARGS)\+?=.*", re.DOTALL)
"""A setting that may make the test runner run no tests."""


def find_test_outcome(tool: Tool, arguments: Arguments, ending: Ending | None, read: ReadLine) -> str:
    """Return `passed` or `failed`; empty if no tests ran or the outcome is unknown."""
    if tool.subject is None or tool.subject[1] is not RuleSubject.COMMAND:
        return ""
    text = arguments.get(tool.subject[0])
    if ending is None or isinstance(ending, Question | Relayed) or not isinstance(text, str):
        return ""
    if judge_line(read(text), read) not in (LineEvidence.EXIT_CODE, LineEvidence.PROOF):
        return ""
    code = (ending.data or {}).get("exit_code")
    if isinstance(code, int):
        return PASSED if code == 0 else FAILED
    return FAILED if isinstance(ending, Problem) else ""


def judge_line(line: ShellLine | None, read: ReadLine, depth: int = 0) -> LineEvidence:
    if line is None or depth > MAX_DEPTH:
        return LineEvidence.NONE
    evidence = [_judge_command(command, read, depth) for command in line.commands]
    if line.plain:
        return evidence[0]
    if all(_judge_command(one, read, depth) is LineEvidence.NONE for one in line.list_commands()):
        return LineEvidence.NONE
    return LineEvidence.EXIT_CODE if line.listed and _is_deciding(line, evidence) else LineEvidence.UNCLEAR


def _is_deciding(line: ShellLine, evidence: Sequence[LineEvidence]) -> bool:
    """True if the line succeeds only if its last test run did."""
    joins = [command.joined for command in line.commands]
    last = max((at for at, one in enumerate(evidence) if one is not LineEvidence.NONE), default=None)
    if last is None or evidence[last] is LineEvidence.UNCLEAR:
        return False
    # After `||` they may not have run at all.
    before = "".join(";" if join == "\n" else join for join in joins[:last]).rpartition(";")[2]
    return "||" not in before and all(join == "&&" for join in joins[last:-1])


def _judge_command(command: ShellCommand, read: ReadLine, depth: int) -> LineEvidence:
    settings = [word.text for word in command.words if word.role is WordRole.ASSIGNMENT]
    words = [word.text for word in command.words if word.role is WordRole.WORD]
    has_keyword = any(word.role is WordRole.KEYWORD for word in command.words)
    if has_keyword or any(STEERING.fullmatch(setting) for setting in settings):
        return LineEvidence.UNCLEAR if _is_test_run(words) else LineEvidence.NONE
    if _is_test_run(words):
        # Other settings may make the program test something else.
        return (
            LineEvidence.PROOF if all(setting.startswith("PYTHON") for setting in settings) else LineEvidence.EXIT_CODE
        )
    while words and get_program_name(words[0]) in WRAPPERS:
        words = _skip_options(words[1:])
        if words[:1] == ["run"]:
            words = _skip_options(words[1:])
    if len(words) > 2 and get_program_name(words[0]) in SHELLS and re.fullmatch("-[a-z]*c", words[1]):
        inner = judge_line(read(words[2]), read, depth + 1)
        return LineEvidence.EXIT_CODE if inner is LineEvidence.PROOF else inner
    return LineEvidence.EXIT_CODE if _is_test_run(words) else LineEvidence.NONE


def _skip_options(words: list[str]) -> list[str]:
    """Return the words from the first one that is not an option, a setting or a duration."""
    at = 0
    while at < len(words) and re.fullmatch(r"-.*|\w+=.*|\d+[smhd]?", words[at], re.DOTALL):
        at += 2 if words[at] in OPTIONS_WITH_VALUE else 1
    return [*words[at:]]


def _is_test_run(words: list[str]) -> bool:
    """True if these words run tests."""
    if not words or NOT_TESTING.intersection(words[1:]):
        return False
    name, rest = get_program_name(words[0]), words[1:]
    if NOT_TESTING_OF.get(name, frozenset()).intersection(rest):
        return False
    if name in TEST_RUNNERS:
        return True
    if PYTHON.fullmatch(name):
        return len(rest) > 1 and ((rest[0] == "-m" and rest[1] in MODULES) or rest[:2] == ["manage.py", "test"])
    if name == "node":
        return "--test" in rest
    if name in RUN_WRAPPERS:
        return rest[:1] == ["run"] and _is_test_run(rest[1:])
    if name in BY_TARGET:
        return bool(BY_TARGET[name].intersection(rest))
    if name not in SCRIPTS and name not in BY_COMMAND:
        return False
    plain = _skip_options(rest)
    if name in SCRIPTS and plain[:1] in (["run"], ["run-script"], ["exec"]):
        return len(plain) > 1 and (re.fullmatch("test(?::.*)?", plain[1]) is not None or plain[1] in TEST_RUNNERS)
    first = plain[0] if plain else ""
    return first in BY_COMMAND.get(name, frozenset()) or (name in SCRIPTS and first in TEST_RUNNERS)
