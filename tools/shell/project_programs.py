"""Which programs build, test and check a project, besides those in `known_commands`, and with which words?

They run the project's own code, which is what the profile `normal` is for. Left out: subcommands that deploy, publish,
install elsewhere, run what the line names, or change a database.
"""

import re
from collections.abc import Sequence

from tools.shell.allowed_words import (
    allow_any_of,
    allow_exactly,
    allow_first_word,
    allow_names,
    allow_only,
    has_no_words,
    require_word,
)
from tools.shell.build_options import INSIDE, Options, stays_in_project
from tools.shell.program_arguments import Fits, is_certain, may_become_option

NODE_PROGRAMS = """
tsc eslint prettier jest vitest mocha playwright cypress vue-tsc svelte-check stylelint biome ava vite astro next
markdownlint cspell
"""
BY_NPX = frozenset(NODE_PROGRAMS.split())
"""What `npx` may start."""
PLAIN = r"[\w][\w./:@,+-]*"
RUN_NAME = re.compile(
    "(?:[a-z]+:)?(?:build|test|tests|lint|start|dev|format|fmt|check|typecheck|type-check|types|ci|docs|cov|coverage|unit"
    "|e2e|prettier|eslint|tsc|jest|mypy|ruff|pytest)(?:[:_-].*)?"
)
"""The name of a project's own script. Another one could be a program of the machine, as in `yarn run rm`."""
WRITES_INSIDE = re.compile(INSIDE.pattern)


def allow_inside(*options: str) -> Fits:
    """Allow these options, and names of files below the current folder, which may be written."""
    pattern = re.compile("|".join(options))
    return lambda words: all(
        pattern.fullmatch(word) if word.startswith("-") else is_certain(word) and WRITES_INSIDE.fullmatch(word)
        for word in words
    )


def is_running_own_script(words: Sequence[str]) -> bool:
    return bool(words) and is_certain(words[0]) and RUN_NAME.fullmatch(words[0]) is not None


def runs_own_script(name: str = "run") -> Fits:
    return lambda words: words[:1] == (name,) and is_running_own_script(words[1:])


def run_file(words: Sequence[str]) -> bool:
    return bool(words) and re.fullmatch(r"(?!/)[\w./-]+\.[cm]?[jt]sx?", words[0]) is not None


def allow_with(options: Options, *firsts: str) -> Fits:
    """Allow these first words, with every other word but the options that need approval."""
    return lambda words: bool(words) and words[0] in firsts and options.fit(words[1:])


def allow_checked(asked: str = "", letters: str = "", placed: str = "config c output o config-file") -> Fits:
    options = Options(asked, letters, placed)
    return options.fit


BUN = Options("preload require eval print shell cwd global", "reg", "config c outdir outfile", whole=True)
DENO = Options("preload import require eval ext", "r", "config c import-map output o", whole=True)
SWIFT = Options(
    "toolchain sdk swift-sdk destination triple disable-sandbox Xswiftc Xcc Xcxx Xlinker Xbuild-tools-swiftc",
    "X",
    "package-path build-path scratch-path cache-path",
    whole=True,
    single=True,
)
MIX = Options("require eval plugin", "re", "dot-formatter", whole=True)
RAKE = Options(
    "execute execute-print execute-continue require rakelibdir libdir system",
    "eEprRIg",
    "rakefile f",
    settings=True,
)
WEB = Options(
    "plugin plugins require loader resolve-plugins-relative-to emptyOutDir",
    "r",
    "config c o",
    "outDir output",
    whole=True,
)
BROWSER = Options("global-setup plugin require", "", "config c", "output", whole=True)
JUST = allow_exactly(rf"-[lnqv]+|--(?:list|summary|dry-run|quiet|verbose|evaluate|unstable|yes)|{PLAIN}")
PRE_COMMIT = Options("", "", "config c", first="run validate-config validate-manifest", whole=True)
ALEMBIC = Options("", "", "config c", first="history current heads branches show check", whole=True)
TERRAFORM_FORMATS = allow_inside("-(?:diff|recursive|check|list=false)")


def is_running_deno(words: Sequence[str]) -> bool:
    if words[:1] == ("task",):
        return is_running_own_script(words[1:])
    return allow_with(DENO, "test", "check", "lint", "fmt", "bench", "info", "doc")(words) or run_file(words)


def is_running_bun(words: Sequence[str]) -> bool:
    if words[:1] == ("run",):
        return is_running_own_script(words[1:]) or run_file(words[1:])
    return allow_with(BUN, "test", "install", "i", "ci", "add", "outdated", "build")(words) or run_file(words)


FLASK_RUNS = allow_exactly(r"--(?:debug|no-debug|reload|no-reload)|-[ph]|--(?:port|host)(?:=.*)?|\d+|[\d.]+|localhost")


def is_running_flask(words: Sequence[str]) -> bool:
    """The application is the project's, given by name."""
    at = 2 if words[:1] in (("--app",), ("-A",)) and allow_exactly(PLAIN, 1, 1)(words[1:2]) else 0
    command, rest = words[at : at + 1], words[at + 1 :]
    if command == ("run",):
        return FLASK_RUNS(rest)
    return command == ("routes",) and allow_only("--(?:sort|all-methods).*|-s.*")(rest)


CURL_SHORT = re.compile("-[sSfikIv]+")
CURL_LONG = re.compile("--(?:silent|show-error|fail|include|head|verbose|compressed|retry-connrefused)")
CURL_VALUED = re.compile(r"(?:-m|--max-time|--connect-timeout|--retry|--retry-delay) \d+|(?:-o|--output) /dev/null")
OWN_ADDRESS = re.compile(r"(?:https?://)?(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?(?:/[\w./?&=%+,:;@~-]*)?")


def is_asking_itself(words: Sequence[str]) -> bool:
    """`curl` gets a page of the line's own machine, which in a sandbox holds nothing but what the line started."""
    rest, asked = list(words), 0
    while rest:
        if not is_certain(rest[0]):
            return False
        if CURL_VALUED.fullmatch(" ".join(rest[:2])):
            del rest[:2]
            continue
        asked += OWN_ADDRESS.fullmatch(rest[0]) is not None
        if not any(one.fullmatch(rest[0]) for one in (CURL_SHORT, CURL_LONG, OWN_ADDRESS)):
            return False
        del rest[0]
    return asked == 1


PROJECT: dict[str, Fits] = {
    "bun": is_running_bun,
    "deno": is_running_deno,
    "swift": allow_with(SWIFT, "build", "test"),
    "mix": allow_with(MIX, "test", "compile", "format", "credo", "deps.get", "deps.tree", "dialyzer", "help"),
    "rake": lambda words: RAKE.fit(words) and stays_in_project(words),
    "just": lambda words: JUST(words) and stays_in_project(words),
    **dict.fromkeys(("stack", "cabal", "dune", "zig"), lambda words: _is_plain_build(words)),
    "sbt": allow_exactly("compile|test|Test/compile|testOnly|[A-Z][\\w.*]*", 1),
    "bazel": lambda words: (
        words[:1] in (("build",), ("test",), ("query",)) and allow_exactly(r"//[\w./:+-]*|:[\w.-]+")(words[1:])
    ),
    "pre-commit": PRE_COMMIT.fit,
    "alembic": ALEMBIC.fit,
    "flask": is_running_flask,
    "rails": lambda words: (
        words[:1] in (("test",), ("t",), ("routes",), ("about",), ("stats",), ("notes",)) and allow_names(words[1:])
    ),
    "curl": is_asking_itself,
    "bandit": allow_checked(placed="configfile config c output o ini baseline b profile p"),
    **dict.fromkeys(
        ("vulture", "radon", "pydocstyle", "pycodestyle", "pyflakes", "yamllint", "deptry"), allow_checked()
    ),
    **dict.fromkeys(("codespell", "lint-imports", "interrogate", "markdownlint", "cspell"), allow_checked()),
    "basedpyright": allow_checked("pythonpath", placed="project p"),
    "ty": lambda words: words[:1] == ("check",) and allow_checked("python")(words[1:]),
    **dict.fromkeys(
        ("autopep8", "yapf", "autoflake", "pyupgrade", "djlint"), allow_inside(r"-[a-zA-Z]+", "--[a-z-]+(?:=\\w+)?")
    ),
    "clang-format": allow_inside("-i|--?(?:style=[A-Za-z]+|verbose|Werror)"),
    "gofmt": allow_inside("-[wlsd]+"),
    "shfmt": allow_inside("-[wdlsp]+|-i=?\\d*"),
    "terraform": allow_any_of(
        lambda words: words[:1] == ("validate",) and allow_exactly("-json|-no-color|-no-tests")(words[1:]),
        lambda words: words[:1] == ("fmt",) and TERRAFORM_FORMATS(words[1:]),
    ),
    **dict.fromkeys(("stylelint", "ava"), WEB.fit),
    **dict.fromkeys(("vue-tsc", "svelte-check"), allow_checked(placed="project p outDir tsconfig config c")),
    "biome": allow_with(WEB, "check", "lint", "format", "ci"),
    **dict.fromkeys(("vite", "astro"), allow_with(WEB, "build", "check")),
    "next": allow_with(WEB, "build", "lint"),
    "playwright": allow_with(BROWSER, "test"),
    "cypress": allow_with(BROWSER, "run", "verify"),
    "hatch": allow_any_of(
        runs_own_script(), allow_with(Options("env-dir", "", "config"), "test", "fmt", "build", "version")
    ),
    "pdm": allow_any_of(
        runs_own_script(),
        allow_with(Options("global", "gd", "project p", "dest"), "install", "sync", "lock", "build", "list"),
    ),
    "composer": allow_first_word(
        dict.fromkeys(
            ("validate", "show", "outdated", "why", "check-platform-reqs", "licenses", "diagnose", "dump-autoload"),
            allow_only("-[aoDiv]+|--(?:no-dev|strict|format|direct|tree|optimize|no-check-.*)(?:=.*)?"),
        )
    ),
    "npm": allow_any_of(
        allow_first_word(
            {
                **dict.fromkeys(
                    ("view", "info", "why", "explain", "query", "fund", "root", "prefix", "help"), allow_names
                ),
                "version": has_no_words,
                "pkg": lambda words: words[:1] == ("get",) and allow_names(words[1:]),
                "pack": require_word(allow_only("--(?:dry-run|json)"), "--dry-run"),
            }
        ),
    ),
    "cargo": lambda words: (
        words[:1] in (("metadata",), ("pkgid",), ("locate-project",), ("update",), ("add",), ("nextest",))
        and not any(
            may_become_option(word) or word.startswith(("--config", "--debugger", "--tracer", "@")) for word in words
        )
    ),
    "go": allow_first_word(
        {
            "env": allow_exactly("-json|-changed|[A-Z_0-9]+"),
            "version": has_no_words,
            "get": allow_exactly(rf"-[ut]|{PLAIN}"),
            "tool": lambda words: (
                words[:1] == ("cover",) and allow_exactly(r"-func(?:=[\w./-]+)?|[\w][\w./-]*")(words[1:])
            ),
        }
    ),
    "dotnet": allow_any_of(
        allow_first_word(
            {
                "format": allow_exactly("--(?:verify-no-changes|no-restore)|whitespace|style|analyzers"),
                "list": allow_exactly("package|--(?:outdated|vulnerable|include-transitive)"),
            }
        ),
        allow_exactly("--(?:info|list-sdks|list-runtimes)", 1, 1),
    ),
    "bundle": allow_first_word(dict.fromkeys(("list", "show", "check", "outdated", "info"), allow_names)),
    **dict.fromkeys(
        ("pip", "pip3"),
        lambda words: (
            (words[:1] in (("inspect",), ("debug",), ("help",)) and allow_names(words[1:]))
            or (words[:1] == ("config",) and words[1:] in (("list",), ("debug",)))
        ),
    ),
    "uv": lambda words: (
        words[:1] in (("tree",), ("version",)) and allow_only("--(?:depth|outdated|short)(?:=.*)?")(words[1:])
    ),
    "poetry": allow_first_word(
        {
            "show": allow_only("-[tlo]+|--(?:tree|latest|outdated|no-dev|top-level)"),
            "lock": allow_only("--(?:no-update|regenerate)"),
            "version": has_no_words,
            "env": allow_exactly("info|list|-p|--path", 1, 2),
        }
    ),
    "rustc": lambda words: _is_compiling_rust(words),
    "javac": lambda words: _is_compiling_java(words),
}


def _is_plain_build(words: Sequence[str]) -> bool:
    return (
        words[:1] in (("build",), ("test",), ("runtest",))
        and stays_in_project(words)
        and allow_exactly(rf"-v|-j\d*|--verbose|{PLAIN}")(words[1:])
    )


def _is_compiling_rust(words: Sequence[str]) -> bool:
    """`-C` and `-Z` can name a linker."""
    return bool(words) and allow_inside(r"-[Og]|-o|--(?:test|edition=\d+|crate-type=\w+|crate-name=\w+)")(words)


def _is_compiling_java(words: Sequence[str]) -> bool:
    """`-J` and a processor run code; `@FILE` holds more options."""
    return bool(words) and allow_inside(r"-d|-g|-Xlint(?::\w+)?|--?(?:release|source|target)|-Werror")(words)
