"""Did this call run tests, and how did they end? Told by the command and its exit code; the ledger keeps that much."""

import re

from mcp_server.model.results import Ending, Problem, Question
from mcp_server.model.tools import Arguments, RuleSubject, Tool

TESTING = re.compile(
    r"(?:^|[\s;&|(/])(?:"
    r"pytest|py\.test|tox|nox|unittest|jest|vitest|mocha|ctest|rspec|phpunit|"
    r"(?:npm|yarn|pnpm|bun|deno)\s+(?:run\s+)?test|"
    r"(?:go|cargo|dotnet|swift|mvn|mix|flutter|dart)\s+(?:nextest|test)|"
    r"(?:make|just|gradle|\./gradlew)\s+(?:\S+\s+)*?(?:test|check)"
    r")(?=$|[\s;&|):])"
)
PASSED, FAILED = "passed", "failed"


def find_test_outcome(tool: Tool, arguments: Arguments, ending: Ending | None) -> str:
    """`passed` or `failed`; empty if no tests ran, or if their outcome is unknown."""
    if (
        tool.subject is None
        or tool.subject[1] is not RuleSubject.COMMAND
        or ending is None
        or isinstance(ending, Question)
    ):
        return ""
    command = arguments.get(tool.subject[0])
    if not isinstance(command, str) or not TESTING.search(command):
        return ""
    code = (ending.data or {}).get("exit_code")
    if isinstance(code, int):
        return PASSED if code == 0 else FAILED
    return FAILED if isinstance(ending, Problem) else ""
