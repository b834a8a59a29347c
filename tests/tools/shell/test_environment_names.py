"""Which variables may a line give to the project's programs, and which values?"""

import pytest

from tools.shell.environment_names import (
    ENDINGS,
    HARMFUL_WORDS,
    SINGLE,
    is_ordinary_name,
    is_plain_value,
    names_nothing_to_run,
)


@pytest.mark.parametrize(
    "name", ["FOO", "DATABASE_URL", "APP_ENV", "API_TOKEN", "LDAP_URL", "GITHUB_ACTIONS", "x", "V"]
)
def test_a_name_that_only_the_project_knows_is_ordinary(name: str) -> None:
    assert is_ordinary_name(name)


@pytest.mark.parametrize("word", [*sorted(HARMFUL_WORDS), "PATH", "FLAGS", "OPTS", "CONFIG", "PRELOAD"])
def test_a_name_with_a_word_that_chooses_what_runs_is_not(word: str) -> None:
    for name in (word, f"APP_{word}", f"{word}_EXTRA", f"app_{word.lower()}"):
        assert not is_ordinary_name(name), name


def test_nor_one_that_ends_like_such_a_word_or_is_the_shells_own() -> None:
    assert ENDINGS.search("CLASSPATH")
    for name in (*SINGLE, "BASH_FUNC_x", "PS4", "_", "_JAVA_OPTIONS", "1X", "X-Y", "", "A__B", "x[0]", "FOO%%"):
        assert not is_ordinary_name(name), name


def test_a_value_is_plain_text() -> None:
    for value in ("", "1", "a b", "/tmp/x", "sqlite:///x.db", "http://h:1/p?a=1&b=2", "a=b,c:d@e%f+g"):
        assert is_plain_value(value), value
    for value in ("$x", "`x`", "a;b", "a|b", "a&b", "a\nb", "'a'", '"', "(a)", "a>b", "http://h?a&b", "\\", "*", "{a}"):
        assert not is_plain_value(value), value


SAYS = (
    "FOO=1",
    "FOO=",
    "X=-1.5",
    "FOO=True",
    "APP_ENV=test",
    "LOG_LEVEL=debug",
    "API_TOKEN=a.b-c",
    "db_url=mysql://h/x",
)
MAY_RUN = """
FOO=./x FOO=x Foo_DIR=evil GCCGO=./e PROTOC=e USE_BAZEL_VERSION=/w/e ASDF_NODEJS_VERSION=path:/w/e CscToolExe=./e
MPLBACKEND=module://e TEST=./e.rb MVNW_REPOURL=file:///w/e APP_URL=file:///w/e APP_ENV=../e APP_ENV=a/b DUNE_WORKSPACE=e
WEBPACK_PACKAGE=./e HOSTCC=./e CUDACXX=e NASM=e OCAMLPARAM=_,pp=./e APP_URL=e
"""


def test_a_value_names_nothing_to_run_unless_its_name_says_what_it_is() -> None:
    for setting in SAYS:
        assert names_nothing_to_run(*setting.split("=", 1)), setting
    for setting in MAY_RUN.split():
        assert not names_nothing_to_run(*setting.split("=", 1)), setting
