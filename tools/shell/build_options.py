"""With which options does a build or test tool still do only what the project says?

Such tools run the project's own code, which is what the profile `normal` is for. Options can make them run what the
line names instead, delete, or write elsewhere; with one of these, the line needs approval.
"""

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from tools.shell.compiler_flags import holds_plain_flags
from tools.shell.program_arguments import Fits, PartlyKnown, is_certain, may_become_option

INSIDE = re.compile(r"(?!.*(?:^|/)\.\.(?:/|$))[\w.][\w./@+-]*")
"""A file or folder below the current folder."""
OUTPUT = re.compile(
    r"(?:[\w-]+/)*(?:dist|build|out|output|coverage|htmlcov|reports?|(?:test-)?results|target|public|_?site|tmp)"
    r"(?:[/._-][\w./-]*)?"
)
"""The usual names of folders that a tool fills, and may empty first."""
LEAVING = re.compile(
    r"(?:.*[:._/-])?(?:un)?(?:install|deploy|publish|release|push|upload|ship|drop|reset|purge|destroy|wipe)(?:[:._-].*)?",
    re.IGNORECASE,
)
"""A target or script with such a name says that it leaves the project, or destroys."""
SETTING = re.compile(r"(\.?\w[\w.-]*)(?::\w+)?[:?+]?=(.*)", re.DOTALL)
PLAIN_VALUE = re.compile(
    r"|\d[\w.]*|yes|no|true|false|on|off|[Dd]ebug|[Rr]elease|RelWithDebInfo|MinSizeRel|gcc|g\+\+|clang|clang\+\+|cc|c\+\+"
    r"|python[\d.]*|\.?venv/bin/python[\d.]*|-[OgW][\w=+.-]*|-f(?!plugin|use-ld)[\w=-]+|-m[\w=.-]+",
    re.IGNORECASE,
)
"""A value that names no program except a compiler or an interpreter."""
TELLING = re.compile(
    r"(?:[A-Z0-9]+_)*(?:TESTS?|NAME|VERSION|FILTER|MATCH|PATTERN|MESSAGE|MSG|TITLE|APP|SERVICE|MODULES?|PACKAGES?|PKG|SUITE|CASE"
    r"|TESTCASE|ENV|LEVEL|REGION|TAG|BRANCH|SEED|PORT|HOST|K|T|V|N)",
    re.IGNORECASE,
)
"""Names that a project gives to a text. With others, such as `PYTEST` or `CP`, it names a program that it starts."""
GIVEN_WORD = r"-{0,2}\w[\w.:@%+,=-]*(?:/\w[\w.:@+-]*)*/?"
GIVEN_WORDS = re.compile(rf"(?:{GIVEN_WORD}(?: +{GIVEN_WORD})*)?")
"""Plain words for what the project starts, such as `-k name` or `tests/test_a.py`."""
ARGUMENTS = re.compile("(?:[A-Z]+_?)?ARGS")
PROGRAM_SETTING = re.compile(r"\.?SHELL|\.SHELLFLAGS|MAKE.*|.*(?:LAUNCHER|COMMAND|PROGRAM|TOOLCHAIN|INCLUDE).*")


class Options(Struct, frozen=True):
    """The options of one program that need approval, written without dashes and separated by blanks."""

    asked: str = ""
    """Long ones."""
    letters: str = ""
    """Short ones: single letters, also if they stand behind others."""
    placed: str = ""
    """Options, long or a letter, whose value has to be a place below the current folder."""
    emptied: str = ""
    """Options whose value has to be a folder that is meant for output, because what is in it may be deleted."""
    fine: str = "(?!)"
    """A pattern for what is harmless all the same: an option, with its value behind a blank."""
    first: str = ""
    """What the first word has to be, unless it is an option."""
    whole: bool = False
    """It takes no abbreviations of long options."""
    single: bool = False
    """Its long options may begin with one dash."""
    settings: bool = False
    """It takes variables as `NAME=VALUE`."""
    ends: bool = False
    """Behind `--` it takes no options. Others look for some there all the same, such as `pytest` for `-p`."""

    def fit(self, words: Sequence[str]) -> bool:
        fine, first = re.compile(self.fine), self.first.split()
        names = [word for word in words if not word.startswith("-")]
        if first and (not words or (words[0] not in first and words[0] not in ("--version", "-V", "--help"))):
            return False
        if self.settings and not all(map(_is_plain_setting, names)):
            return False
        for at, word in enumerate(words):
            if may_become_option(word):
                return False
            if word == "--" and self.ends:
                # What follows goes to the project's own script, or to another program.
                return not self.settings or all(re.fullmatch(r"-j\d*", one) for one in words[at + 1 :])
            value = next(iter(words[at + 1 : at + 2]), "")
            is_fine = is_certain(word) and (
                fine.fullmatch(word) or (is_certain(value) and fine.fullmatch(f"{word} {value}"))
            )
            harmless = word[:1] != "-" or is_fine
            if not harmless and self._is_asked(word, value):
                return False
        return True

    def _is_asked(self, word: str, value: str) -> bool:
        name, given, joined = word.lstrip("-").partition("=")
        value = joined if given else value
        long = word.startswith("--") or (self.single and len(word) > 2)
        if long:
            if self._names(name, self.emptied) and not (OUTPUT.fullmatch(value) and _is_inside(value)):
                return True
            return self._names(name, self.asked) or (self._names(name, self.placed) and not _is_inside(value))
        return self._has_asked_letter(word, value)

    def _names(self, name: str, longs: str) -> bool:
        short = len(name) > 1 and not self.whole
        # Tools of Node also take `--rulesDir` for `--rulesdir`, and `--x.setup-files`.
        spelled = {_spell(name), _spell(name.rpartition(".")[2])}
        names = [_spell(one) for one in longs.split() if len(one) > 1]
        return any(one in spelled or (short and one.startswith(_spell(name))) for one in names)

    def _has_asked_letter(self, word: str, value: str) -> bool:
        letters = re.match(r"-([A-Za-z]*)", word)
        for letter in letters[1] if letters else "":
            if letter in self.letters:
                return True
            if letter in self.placed.split():
                rest = word.partition(letter)[2].removeprefix("=")
                return not _is_inside(rest or value)
        return False


def _spell(option: str) -> str:
    return option.replace("-", "").lower()


def _is_inside(path: str) -> bool:
    return INSIDE.fullmatch(path) is not None and not isinstance(path, PartlyKnown)


def _is_plain_setting(word: str) -> bool:
    match = SETTING.fullmatch(word)
    if match is None:
        if "=" in word and not isinstance(word, PartlyKnown):
            return False  # `make` also takes `X!=COMMAND`, `X::=VALUE` and `X =VALUE`
        # No name of a variable that matters has a slash in it.
        return not isinstance(word, PartlyKnown) or "/" in re.split(r"[*?\[{$]", word)[0]
    if PROGRAM_SETTING.fullmatch(match[1]):
        return False
    if holds_plain_flags(match[1], match[2]) and is_certain(word):
        return True
    is_text = TELLING.fullmatch(match[1]) or ARGUMENTS.fullmatch(match[1])
    return (GIVEN_WORDS if is_text and is_certain(word) else PLAIN_VALUE).fullmatch(match[2]) is not None


def stays_in_project(words: Sequence[str]) -> bool:
    """True unless a target or script says by its name that it leaves the project."""
    return not any(LEAVING.fullmatch(word) for word in words if not word.startswith("-") and "=" not in word)


def is_plain_definition(words: Sequence[str]) -> bool:
    """Judge what `cmake` is told with `-D`."""
    given = [
        word[2:] or next(iter(words[at + 1 : at + 2]), "") for at, word in enumerate(words) if word.startswith("-D")
    ]
    return all(SETTING.fullmatch(one) and _is_plain_setting(one) for one in given)


def allow_options(known: Fits, options: Options) -> Fits:
    return lambda words: known(words) and options.fit(words)


PYTEST = Options(
    # `--tx` and `--px` name the program that pytest-xdist starts.
    "override-ini basetemp pdbcls pastebin tx px rsyncdir clean-alluredir cov-report",
    "po",
    "rootdir config-file confcutdir c junitxml junit-xml log-file report-log html json-report-file cov-config alluredir"
    " durations-path resultlog",
    fine=r"--co|--cov(?:=[\w./-]*)?|-[kmrnW].*|-p ?no:.*|-o log_.*|-o addopts="
    r"|--cov-report[ =](?:term|term-missing|xml|html|json|lcov)"
    r"(?::(?:skip-covered|(?:htmlcov|coverage)[\w./-]*))?",
)
PIP = Options(
    "target user prefix root src python break-system-packages system",
    "t",
    "log",
    fine=r"--pre|--python[ =][\d.]+",
    ends=True,
)
NODE_PACKAGES = Options(
    "global location prefix script-shell node-options userconfig globalconfig git global-pnpmfile pnpmfile"
    " config.script-shell config.node-options",
    "gC",
    ends=True,
)
JEST = """
globalSetup globalTeardown setupFiles setupFilesAfterEnv testRunner runner reporters resolver transform testEnvironment
preset filter watchPlugins testSequencer snapshotSerializers cacheDirectory clearCache env setupFilesAfterEach
global-setup global-teardown setup-files setup-files-after-env test-runner test-environment watch-plugins test-sequencer
snapshot-serializers cache-directory clear-cache
"""
CMAKE = Options(
    "install toolchain graphviz",
    "PEC",
    fine="-[DGj].*|-E (?:echo|cat|capabilities|sha256sum|touch|make_directory)",
    settings=True,
    ends=True,
)
NINJA = Options("", "", "f C")
BUILD_OPTIONS: Mapping[str, Options] = {
    **dict.fromkeys(("pytest", "py.test"), PYTEST),
    "tox": Options("override workdir root result-json installpkg discover", "x", "conf c", ends=True),
    "nox": Options("envdir force-python", "", "noxfile f", ends=True),
    "mypy": Options(
        "python-executable install-types custom-typeshed-dir",
        "",
        "config-file cache-dir",
        fine="--cache-dir[ =]/dev/null",
    ),
    "pyright": Options("pythonpath", "", "project p", whole=True),
    "ruff": Options(
        "", "", "cache-dir output-file o", first="check format rule linter config version .", whole=True, ends=True
    ),
    "black": Options("", "", "config", ends=True),
    "isort": Options("", "", "settings-path settings-file"),
    "flake8": Options("", "", "config append-config output-file"),
    "pylint": Options("init-hook load-plugins", "", "rcfile output"),
    "make": Options("eval", "E", "directory file makefile C f", settings=True, ends=True),
    "ctest": Options(
        "script build-and-test build-makeprogram test-command overwrite",
        "SDMTO",
        "test-dir",
        fine="-[RELj].*",
        ends=False,
    ),
    "meson": Options(
        "wrapper gdb-path wipe native-file cross-file ninja-args vs-args xcode-args",
        "",
        "C",
        first="setup compile test configure introspect",
    ),
    "tsc": Options("clean", "", "outFile project p", "outDir declarationDir", whole=True, single=True),
    "eslint": Options(
        "resolve-plugins-relative-to rulesdir plugin parser format",
        "f",
        "config c output-file o cache-location",
        fine="(?:-f|--format)[ =](?:stylish|json|html|json-with-metadata|compact|unix|junit|checkstyle|tap)",
        whole=True,
    ),
    "prettier": Options("plugin plugin-search-dir", "", "config cache-location", whole=True),
    "jest": Options(
        JEST,
        "",
        "config c rootDir outputFile",
        "coverageDirectory coverage-directory",
        fine="--reporters[ =]default",
        whole=True,
    ),
    "vitest": Options(
        "globalSetup setupFiles runner environment execArgv checker",
        "",
        "config c root dir outputFile",
        "coverage.reportsDirectory",
        whole=True,
    ),
    "mocha": Options("require node-option ui import loader", "rn", "config", fine="-g.*", whole=True),
    "phpunit": Options("bootstrap printer extension loader include-path", "d", "configuration c"),
    "rspec": Options("require options init", "rIO", "out o", fine="-[fet].*"),
    "rubocop": Options("require plugin", "r", "config c"),
    "gradle": Options(
        "init-script include-build system-prop gradle-user-home",
        "IDg",
        "build-file settings-file project-dir b c p",
        fine="-P.*",
    ),
    **dict.fromkeys(("npm", "pnpm", "yarn"), NODE_PACKAGES),
    **dict.fromkeys(("pip", "pip3", "uv"), PIP),
    "poetry": Options("directory project", "CPo", "", "output"),
    "cargo": Options("config open debugger", "Z", "manifest-path target-dir config-path", whole=True, ends=True),
    "go": Options(
        "exec toolexec vettool overlay modfile ldflags gcflags gccgoflags",
        "",
        "C o",
        fine="-(?:ldflags|gcflags)[ =](?!.*-ext).*|-run.*",
        whole=True,
        single=True,
    ),
    "dotnet": Options("test-adapter-path diag", "", "project settings results-directory", whole=True),
    "bundle": Options("path system gemfile"),
    "composer": Options("working-dir", "d"),
}
"""A program that is not here may have any words."""
