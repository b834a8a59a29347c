"""Which variables may a line set unasked?"""

import re

from mcp_server.model.shell import ShellWord
from mcp_server.model.text import quote_text
from tools.shell.environment_names import PROJECT_LOADS, is_ordinary_name, is_plain_value, names_nothing_to_run
from tools.shell.verdicts import CommandKind, NeedsApproval

LOADING = frozenset(("PYTHONPATH", "NODE_PATH"))
"""They decide which code an interpreter loads, so nothing that sets one only reads."""
DISPLAYING = """
CI NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE COLUMNS TERM LANG LC_ALL LC_CTYPE LC_COLLATE LC_MESSAGES LC_NUMERIC
LC_TIME TZ DEBUG VERBOSE NODE_ENV PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED PYTHONHASHSEED PYTHONIOENCODING PYTHONUTF8
RUST_BACKTRACE RUST_LOG
"""
ENVIRONMENT = LOADING.union(DISPLAYING.split())
"""What programs may be told by their environment. A closed list: `LD_PRELOAD`, `PATH`, `BASH_ENV` or `GIT_SSH_COMMAND`
would choose what runs."""
OWN = re.compile(r"(?!_$)[a-z_][a-z0-9_]*|[A-Z][0-9]?|(?:[A-Z]+_)?PID")
"""Variables of the line itself: neither bash nor our environment gives such a name a meaning, and none is exported."""
OWN_WORDS = frozenset(
    "FILE FILES DIR DIRS NAME COUNT OUT OUTPUT RESULT BRANCH SRC DEST MSG REPLY ROOT HERE".split()  # noqa: SIM905
)
NODE_SWITCH = (
    r"--(?:max-old-space-size=\d+|experimental-vm-modules|no-warnings|enable-source-maps|openssl-legacy-provider)"
)
EXACT = re.compile(
    rf"(?:GIT_)?PAGER=cat|GIT_OPTIONAL_LOCKS=0|NODE_OPTIONS=(?:{NODE_SWITCH}|([\"']){NODE_SWITCH}(?: {NODE_SWITCH})*\1)"
)


def is_own_variable(name: str) -> bool:
    return OWN.fullmatch(name) is not None or name in OWN_WORDS


def may_be_set(name: str) -> bool:
    """True if a line may give it to programs, at least with some values."""
    return name in ENVIRONMENT or is_ordinary_name(name)


def require_own_variable(name: str) -> None:
    if not is_own_variable(name):
        raise NeedsApproval(f"setting {quote_text(name)} may change which code runs")


def judge_assignment(word: ShellWord, exported: bool) -> CommandKind:
    """`exported` if a program sees it."""
    if EXACT.fullmatch(word.source):
        return CommandKind.READS
    name, given, value = word.text.partition("=")
    return judge_variable(name.removesuffix("+"), value if given and word.known else None, exported)


def judge_variable(name: str, value: str | None, exported: bool) -> CommandKind:
    """The value is None if it is unknown, or the one that the variable has already."""
    if name in ENVIRONMENT:
        # `make` expands what it finds in its environment: `$(shell …)` would run.
        if value is not None and "$" in value:
            raise NeedsApproval(f"what {quote_text(name)} is set to is more than plain text")
        return CommandKind.BUILDS if name in LOADING else CommandKind.READS
    if not exported and is_own_variable(name):
        return CommandKind.READS
    if not is_ordinary_name(name):
        raise NeedsApproval(f"setting {quote_text(name)} may change which code runs")
    if value is None or not is_plain_value(value):
        raise NeedsApproval(f"what {quote_text(name)} is set to is more than plain text")
    if not names_nothing_to_run(name, value):
        raise NeedsApproval(f"{quote_text(f'{name}={value}')} may name what runs")
    # An exported one may be set again without `export`.
    return CommandKind.BUILDS if exported or name in PROJECT_LOADS else CommandKind.READS


def judge_export(word: ShellWord) -> CommandKind:
    """A later part may set an exported variable again, and those of the line itself may be set to anything."""
    name = word.text.partition("=")[0].removesuffix("+")
    if is_own_variable(name):
        raise NeedsApproval(f"setting {quote_text(name)} may change which code runs")
    return judge_assignment(word, exported=True)
