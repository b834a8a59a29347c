"""Does an option, a variable or another spelling make a known program do what its line does not show?"""

import pytest

from tools.shell.classify import classify_line
from tools.shell.verdicts import CommandKind

ASKED = {
    "a variable of make names the program that it starts": (
        "make test PYTEST='rm -rf src'",
        "make test CP=rm",
        "make DOCKER='rm -rf src'",
        "make CFLAGS=-fplugin=x",
        "make LDFLAGS=-fuse-ld=evil",
    ),
    "make expands its environment": (
        "DEBUG='$(shell touch x)' make",
        "env -i TERM='$(shell touch x)' make",
        "PYTHONPATH='$(shell touch x)' make",
        "export DEBUG='$(shell touch x)'; make",
    ),
    "an option starts what the line names": (
        "pytest -d --tx 'popen//python=sh -c \"touch x\"' tests",
        "pytest -d --tx=ssh=host tests",
        "cargo nextest run --debugger 'rm -rf src' t",
        "vitest run --typecheck.checker=./evil",
        "vitest run --execArgv=--require=./evil.js",
        "pnpm i --config.script-shell=./evil",
        "phpunit -d auto_prepend_file=evil.php",
        "meson compile --ninja-args=-tclean",
        "python -m cProfile -m http.server",
    ),
    "an option in another spelling": ("eslint --rulesDir=./evil src", "vitest run --setup-files ./x.js"),
    "it writes a file that other programs obey": (
        "pytest --junitxml=.envrc",
        "pytest --debug=.envrc",
        "coverage xml -o .npmrc",
        "ruff check --output-file .envrc .",
        "touch .envrc",
        "mkdir .vscode",
        "python -m venv .vscode",
        "tee .en{vrc,xx} < a.json",
        "touch .en{vrc,xx}",
        "cp a.json .en{vrc,xx}",
    ),
    "it runs code from elsewhere": (
        "pytest /opt/x",
        "python -m doctest /opt/x.py",
        "node --test /opt/x.mjs",
        "npm i /opt/x",
        "find /opt/x -name run.pl -execdir perl run.pl \\;",
        "find src -name a.py -execdir cp b.json a.py \\;",
        "FLASK_APP=../evil.py flask routes",
    ),
    "a file's name may be a command": ("perl -ne print src/*", "find src -type f -exec perl -ne print {} +"),
    "it leaves the project": (
        "gradle publish",
        "./gradlew deploy",
        "ninja install",
        "cmake --build build --target install",
        "meson compile -C build install",
        "tox -e publish",
        "nox -s publish",
        "zig build deploy",
        "rake db:reset",
    ),
    "a variable chooses what runs": (
        "BAZELISK_BASE_URL=https://example.org bazel build //x",
        "R_PROFILE_USER=x make",
        "WERKZEUG_DEBUG_PIN=off flask run --debug",
    ),
    "a program that reads has an option to write": (
        "xmllint --format a.xml --output src/x",
        "xmllint --shell a.xml --noout",
        "base64 -i a -o b",
        "pip inspect --log F",
        "pytest --cov-report=html:src",
    ),
}
UNASKED = (
    "make test TEST=tests/test_a.py",
    "make test ARGS='-k name'",
    "make CFLAGS=-O2 VERBOSE=1",
    "PYTHONPATH=src make test",
    "pytest --cov=src --cov-report=term-missing --cov-report html",
    "pytest --junitxml=reports/junit.xml",
    "pytest /tmp/x",
    "perl -ne 'print if /x/' src/*.py",
    "find src -name '*.py' -exec wc -l {} +",
    "python -m cProfile -m pytest",
    "FLASK_APP=app.py flask routes",
    "xmllint --xpath '//a/b' a.xml",
    "base64 -d a.b64",
    "tox -e py311",
    "touch .gitignore src/{a,b}.py",
)


@pytest.mark.parametrize(("why", "line"), [(why, line) for why, lines in ASKED.items() for line in lines])
def test_what_a_line_does_not_show_asks(why: str, line: str) -> None:
    assert classify_line(line).kind is CommandKind.ASKED, why


@pytest.mark.parametrize("line", UNASKED)
def test_ordinary_neighbours_run_unasked(line: str) -> None:
    assert classify_line(line).kind is not CommandKind.ASKED, classify_line(line).because
