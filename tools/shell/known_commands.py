"""Which programs may run unasked, and with which arguments?

What is missing here is asked about, not refused. A program that can start another one, or write where its arguments
say, is listed with the options that do neither.
"""

import re
from collections.abc import Sequence
from functools import partial
from itertools import dropwhile, takewhile

from tools.shell.allowed_words import (
    allow_among,
    allow_any_of,
    allow_exactly,
    allow_only,
    allow_version,
    has_no_words,
)
from tools.shell.build_options import BUILD_OPTIONS, CMAKE, NINJA, allow_options, is_plain_definition, stays_in_project
from tools.shell.git_reads import is_reading_with_git
from tools.shell.interpreters import read_python_call, runs_in_plain_sight
from tools.shell.looking_programs import LOOKING
from tools.shell.program_arguments import (
    Fits,
    is_certain,
    may_become_option,
    may_have_any_words,
)
from tools.shell.project_programs import PROJECT
from tools.shell.shell_builtins import BUILTINS
from tools.shell.variables import is_own_variable


def is_plain_printf(words: Sequence[str]) -> bool:
    """`printf -v` sets a variable, and bash runs what is in brackets after its name."""
    if words[:1] == ("-v",):
        is_known = len(words) > 2 and is_certain(words[1]) and not words[2].startswith("-")
        return is_known and is_own_variable(words[1])
    return not (words and words[0].startswith("-"))


TAR_LISTS = re.compile("-?(?:t[vzjJ]*f|[vzjJ]+tf)")
READS: dict[str, Fits] = {
    **dict.fromkeys(
        ("cat", "head", "tail", "wc", "nl", "tac", "rev", "fold", "cut", "tr", "comm", "cmp"), may_have_any_words
    ),
    **dict.fromkeys(("ls", "stat", "du", "df", "basename", "dirname", "sleep", "expr"), may_have_any_words),
    # Elsewhere than on Linux, `-o` names the output file.
    "base64": allow_only("-[dDi]+|-w ?[0-9]*|--(?:decode|ignore-garbage|wrap=[0-9]+)"),
    "printf": is_plain_printf,
    **dict.fromkeys(
        ("realpath", "readlink", "uname", "whoami", "id", "nproc", "seq", "column", "paste"), may_have_any_words
    ),
    **BUILTINS,
    **dict.fromkeys(("cksum", "md5sum", "sha1sum", "sha256sum", "sha512sum"), may_have_any_words),
    **dict.fromkeys(
        ("grep", "egrep", "fgrep", "diff", "strings", "od", "hexdump", "ps", "uptime", "free"), may_have_any_words
    ),
    "col": allow_exactly("-[bfpx]+"),
    **dict.fromkeys(("expand", "unexpand"), allow_only("-[ait0-9,]+|--(?:tabs=.*|initial|all|first-only)")),
    "fmt": allow_only("-[0-9]+|-[csutw0-9]+|--(?:width=.*|split-only|uniform-spacing)"),
    "join": allow_only("-[12jatvoe0-9.,]+.?|-i|--(?:header|nocheck-order|check-order|ignore-case)"),
    "clear": has_no_words,
    "printenv": may_have_any_words,
    **dict.fromkeys(("env", "hostname", "tty", "arch", "groups", "logname"), has_no_words),
    "file": allow_only(r"-[bhiLkprsz0]+", "--mime.*", "--brief"),
    # A word without a sign would be the time to set.
    "date": lambda words: all(re.fullmatch(r"\+.*|-[uI]|-I[a-z]+|--utc|--(?:iso-8601|rfc-).*", word) for word in words),
    "sort": allow_only(
        r"-[bdfghiMnrRsuVzc]+|--", "-[kt].*", "--(?:unique|reverse|(?:human-)?numeric-sort|version-sort)"
    ),
    # A second name would be the output file.
    "uniq": lambda words: all(re.fullmatch(r"-[cdDiuz]+|-[fsw][0-9]+", word) for word in words),
    "jq": allow_only(r"-[rcnesSaRjM]+", "--(?:arg|argjson|raw-output|compact-output|tab|sort-keys|slurp|null-input)"),
    "tree": allow_only(r"-[adfilpsughDFvtcrUCnAS]+", "-[LPI]", "--(?:noreport|dirsfirst|gitignore|du|prune)"),
    "rg": allow_only(
        r"-[inwvclLoFsSUuxNHhp0]+|-[ABCmgtTejE].*|-[0-9]+|--",
        r"--(?:files|hidden|no-ignore|count|files-with-matches|type|glob|ignore-case|line-number|json|stats|multiline|sort)"
        r"(?:=.*)?",
    ),
    "fd": allow_only(
        r"-[HIuagsipL0]+|-[etdE]", "--(?:hidden|no-ignore|absolute-path|glob|type|extension|max-depth|exclude)(?:=.*)?"
    ),
    # Lists an archive and nothing else: other options start programs.
    "tar": lambda words: (
        len(words) == 2
        and TAR_LISTS.fullmatch(words[0]) is not None
        and not words[1].startswith("-")
        and is_certain(words[1])
        and ":" not in words[1]
    ),
    "gzip": lambda words: (
        words[:1] in (("-dc",), ("-cd",), ("-l",)) and not any(one.startswith("-") for one in words[1:])
    ),
    "zcat": lambda words: not any(one.startswith("-") for one in words),
    # A second name would be the output file.
    "xxd": lambda words: len(words) == 1 and is_certain(words[0]) and not words[0].startswith(("-", "+")),
    "unzip": lambda words: words[:1] in (("-l",), ("-Z1",)) and not any(word.startswith("-") for word in words[1:]),
    "git": is_reading_with_git,
    # Exactly these words: others would be a file to run or a target, and Python runs its input.
    **dict.fromkeys(("python", "python3", "pip", "cargo", "rustc"), allow_version("--version", "-V")),
    **dict.fromkeys(("node", "npm", "yarn", "pnpm", "make"), allow_version("--version", "-v")),
    "go": allow_version("version"),
    **LOOKING,
}

MODULES = frozenset(
    [
        "pytest",
        "unittest",
        "mypy",
        "ruff",
        "black",
        "isort",
        "flake8",
        "pylint",
        "pyright",
        "compileall",
        "py_compile",
        "build",
        "tox",
        "nox",
        "coverage",
        "venv",
        "doctest",
        "timeit",
        "cProfile",
        "json.tool",
        "bandit",
        "flask",
        "alembic",
        "pycodestyle",
        "pydocstyle",
        "pyflakes",
        "tabnanny",
        "yamllint",
        "vulture",
    ]
)
PACKAGES = tuple("install ci i add list ls outdated audit test t start run build lint".split())  # noqa: SIM905
PIP = frozenset(("install", "list", "show", "freeze", "check"))
NODE_TOOLS = frozenset("tsc eslint prettier jest vitest mocha".split())  # noqa: SIM905
COVERAGE_OPTION = re.compile("--branch|--parallel-mode|-p|-a|--append|--(?:source|include|omit)=.*")
NINJA_TOOLS = frozenset("query targets commands graph compdb deps list".split())  # noqa: SIM905
MAVEN_WORD = re.compile(
    "(?:clean|validate|compile|test-compile|test|package|verify|dependency:tree)|-v|-[qoBeUX]|-(?:pl|am|T)|-D(?:skipTests|test|it.test)(?:=.*)?|[0-9]+C?"
)
SCRIPT = re.compile(
    "(?:build|test|lint|start|dev|format|fmt|check|typecheck|type-check|ci|docs|prettier|eslint|tsc|jest)(?:[:-].*)?"
)
runs_python_code = runs_in_plain_sight("python")
runs_node_code = runs_in_plain_sight("node")


def is_running_python(words: Sequence[str]) -> bool:
    call = read_python_call(words)
    return runs_python_code(words) or (
        call is not None and bool(call.module) and is_known_module(call.module, call.rest)
    )


def is_known_module(name: str, words: Sequence[str]) -> bool:
    if name == "json.tool" and (len([one for one in words if one[:1] != "-"]) > 1 or not all(map(is_certain, words))):
        return False  # the second file is written
    if name == "venv" and any(may_become_option(word) or word.startswith("--c") for word in words):
        return False  # `--clear` deletes the folder
    if name == "cProfile" and "-m" in words and not is_running_python(words[words.index("-m") :]):
        return False
    known = name in MODULES or (name == "pip" and words[:1] != () and words[0] in PIP)
    # A module is the program of the same name.
    return known and (name not in BUILDS or BUILDS[name](words))


def is_running_coverage(words: Sequence[str]) -> bool:
    """`coverage run` starts a file or a module; `coverage erase` deletes."""
    if words[:1] != ("run",):
        return bool(words) and words[0] in ("report", "html", "xml", "json", "lcov", "combine", "--version")
    rest = tuple(dropwhile(COVERAGE_OPTION.fullmatch, words[1:]))
    return is_running_python(rest) and rest[:1] != ("-c",)


def is_building_with_cmake(words: Sequence[str]) -> bool:
    return CMAKE.fit(words) and is_plain_definition(words) and stays_in_project(words)


def is_running_ninja(words: Sequence[str]) -> bool:
    """Its tools are other programs; `-t clean` deletes."""
    tools = [words[at + 1 : at + 2] for at, word in enumerate(words) if word == "-t"]
    hidden = any(re.fullmatch("-[a-zA-Z]*t.*", word) for word in words if word != "-t")
    return (
        NINJA.fit(words)
        and stays_in_project(words)
        and not hidden
        and NINJA_TOOLS.issuperset("".join(one) for one in tools)
    )


def is_own_task(words: Sequence[str]) -> bool:
    """`npm run deploy` says that it leaves the project."""
    return words[:1] != ("run",) or stays_in_project(words[1:2])


def is_running_maven(words: Sequence[str]) -> bool:
    return all(MAVEN_WORD.fullmatch(word) for word in words)


PACKAGE_NAME = r"(?!\S*\.\.)(?:\./)?[\w@*][\w@/.*-]*"
WORKSPACE_OPTIONS = {
    "npm": re.compile(rf"-ws|--workspaces|(?:-w |--workspace[ =]){PACKAGE_NAME}"),
    "pnpm": re.compile(rf"-r|--recursive|-w|--workspace-root|(?:-F |--filter[ =]){PACKAGE_NAME}"),
}


def is_packaging(name: str, words: Sequence[str]) -> bool:
    words = skip_workspace_options(name, words)
    return allow_among(*PACKAGES)(words) and is_own_task(words)


def skip_workspace_options(name: str, words: Sequence[str]) -> Sequence[str]:
    """Leave out which packages of the project it is about, as in `pnpm --filter web test`."""
    options = WORKSPACE_OPTIONS[name]
    while words:
        length = next((size for size in (1, 2) if options.fullmatch(" ".join(words[:size]))), 0)
        if not length or not all(map(is_certain, words[:length])):
            break
        words = words[length:]
    return words


def is_running_script(words: Sequence[str]) -> bool:
    """`yarn run rm` runs the machine's program if the project has no script of that name."""
    return words[:1] != ("run",) or (len(words) > 1 and SCRIPT.fullmatch(words[1]) is not None)


def is_testing_with_tox(words: Sequence[str]) -> bool:
    """Its other commands run what the line names (`exec`), or install elsewhere (`devenv`)."""
    ahead = [*takewhile(lambda word: word != "--", words)]
    return (
        all(map(is_certain, ahead)) and stays_in_project(ahead) and not {"exec", "e", "devenv", "d"}.intersection(ahead)
    )


KNOWN: dict[str, Fits] = {
    **dict.fromkeys(("pytest", "py.test", "mypy", "pyright", "ruff", "black", "isort"), may_have_any_words),
    **dict.fromkeys(("flake8", "pylint", "ctest"), may_have_any_words),
    **dict.fromkeys(("make", "nox", "meson"), stays_in_project),
    "tox": is_testing_with_tox,
    "coverage": is_running_coverage,
    "cmake": is_building_with_cmake,
    "ninja": is_running_ninja,
    **dict.fromkeys(NODE_TOOLS, may_have_any_words),
    **dict.fromkeys(("phpunit", "rspec", "rubocop"), may_have_any_words),
    "gradle": stays_in_project,
    "mvn": is_running_maven,
    **dict.fromkeys(("python", "python3"), is_running_python),
    "node": runs_node_code,
    **{name: runs_in_plain_sight(name) for name in ("ruby", "php", "perl")},
    **{name: partial(is_packaging, name) for name in ("npm", "pnpm")},
    "yarn": lambda words: allow_among(*PACKAGES)(words) and is_running_script(words) and is_own_task(words),
    **dict.fromkeys(("pip", "pip3"), allow_among(*PIP)),
    "uv": lambda words: (
        allow_among("sync", "lock", "build")(words) or (words[:1] == ("pip",) and allow_among(*PIP)(words[1:]))
    ),
    "poetry": allow_among("install", "build", "check"),
    "cargo": allow_among("build", "check", "test", "run", "fmt", "clippy", "bench", "doc", "fetch", "tree"),
    "go": allow_among("build", "test", "vet", "fmt", "run", "mod", "list", "doc", "generate"),
    # A property can replace any program that it starts.
    "dotnet": lambda words: (
        allow_among("build", "test", "restore", "run")(words)
        and not any(re.match("(?:--?|/)(?:p|property|t|target):|@", word) or may_become_option(word) for word in words)
    ),
    "bundle": allow_among("install"),
    "composer": allow_among("install", "test"),
    "mkdir": allow_only("-p", "-v", "-pv", "--parents"),
    "touch": allow_only("-[acm]+"),
    # Other modes can open a file or a whole folder to everybody.
    "chmod": lambda words: (
        len(words) > 1 and words[0] in ("+x", "u+x", "a+x") and not any(word.startswith("-") for word in words[1:])
    ),
}
_WITH_OPTIONS = {
    name: allow_options(fits, BUILD_OPTIONS[name]) if name in BUILD_OPTIONS else fits for name, fits in KNOWN.items()
}
BUILDS: dict[str, Fits] = _WITH_OPTIONS | {
    name: allow_any_of(_WITH_OPTIONS[name], fits) if name in _WITH_OPTIONS else fits for name, fits in PROJECT.items()
}
