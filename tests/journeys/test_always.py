"""Does `approve --always` write the narrowest rule, say first what it changes, and let exactly this call run?"""

import io
import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.clients.form import FORM, question
from tests.clients.pipe import Pipe, pipe
from tests.clients.raw import raw
from tests.clients.served import served
from tests.clients.tokens import hire
from tests.clients.typed import Answer, Typed, typed
from tests.clients.waiting import wait_until

LINE = "./release.sh --all"
RULE = 'bash(command eq "./release.sh --all" and exec_dir eq "." and nothing else)'
Menugate = Callable[..., Typed]


@pytest.fixture
def menugate(workspace: Path, home: Path) -> Menugate:
    script = workspace / "release.sh"
    script.write_text("#!/bin/sh\necho released\n")
    script.chmod(0o755)
    (workspace / "src").mkdir(exist_ok=True)
    shutil.copy(script, workspace / "src")

    def run(*words: str, answer: Answer = None) -> Typed:
        return typed(workspace, home, *words, answer=answer)

    return run


@pytest.fixture
def file(home: Path) -> Path:
    return home / ".config" / "menugate" / "menugate.yaml"


def said(answer: dict[str, Any]) -> str:
    return "\n".join(block["text"] for block in answer["content"])


def asks(one: Pipe, tool: str, **arguments: Any) -> str:
    """The id of the question about this call."""
    answer = said(one.call(tool, **arguments))
    assert "APPROVAL_REQUIRED" in answer, answer
    return answer.partition("menugate approve ")[2].split("`")[0]


def plain(text: str) -> str:
    return " ".join(text.split())


def rows(menugate: Menugate, *words: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in menugate("audit", "tail", "-n", "100", "--json", *words).out.splitlines()]


def test_the_call_runs_and_from_then_on_unasked(workspace: Path, home: Path, menugate: Menugate, file: Path) -> None:
    with pipe(workspace, home, "--mode", "swe") as one:
        one.hello()
        id = asks(one, "bash", command=LINE)
        done = menugate("approve", id, "--always", answer="always")
        assert done.code == 0, done.err
        shown = plain(done.out)
        assert f"allow: {RULE}" in shown
        assert f"It would apply in {os.path.realpath(workspace)}, and in no other workspace." in shown
        assert f"This file would be created: {file}" in shown
        assert "What it would have changed is unknown: no other calls are on record." in shown
        assert "Approved: `bash`, this call and, by a rule, every later one exactly like it in this workspace." in shown
        assert (stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(file.parent.stat().st_mode)) == (0o600, 0o700)
        # Once by the approval, and then by the rule, which the running server takes over.
        assert "released" in said(one.call("bash", command=LINE))
        wait_until(lambda: "released" in said(one.call("bash", command=LINE, timeout=5000)))
        for other in ({"command": f"{LINE} "}, {"command": f"{LINE}; id > x"}, {"command": "./release.sh"}):
            asks(one, "bash", **other)
        asks(one, "bash", command=LINE, exec_dir="src")
        asks(one, "bash", command=LINE, run_in_background=True)
        wait_until(lambda: [row["rules"] for row in rows(menugate, "--kind", "rules")] == [1])
    intents = [row for row in rows(menugate, "--kind", "intent") if row["tool"] == "bash"]
    # A server that took the rule over before the first call has no use for the approval.
    assert [bool(row.get("approval")) for row in intents] in ([True, False], [False, False])
    assert intents[-1]["rule"] == RULE
    assert RULE in plain(menugate("audit", "why", str(intents[-1]["seq"])).out)
    (answer,) = rows(menugate, "--kind", "answer")
    assert (answer["scope"], answer["way"]) == ("always", "person")
    assert answer["reason"] == "yes, at a terminal: from now on, by a rule"
    assert menugate("audit", "verify").code == 0
    assert RULE in menugate("rules", "list").out


@pytest.mark.parametrize("width", [40, 80])
def test_the_question_comes_first_and_no_row_is_the_models(
    workspace: Path, home: Path, menugate: Menugate, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    forged = "This rule would allow only `ls`."
    line = './release.sh "' + " " * 8 + "".join(f"{forged:{width}}" for _ in range(3)) + '\u0430"'
    with pipe(workspace, home, "--mode", "swe") as one:
        one.hello()
        id = asks(one, "bash", command=line)
        monkeypatch.setattr("mcp_server.cli.output.read_columns", lambda: width)
        shown = menugate("approve", id, "--always", answer="no").out
    question, _, rule = shown.partition("This rule would allow the same")
    words = plain(question.replace("\n> ", " ").replace("\n+ ", ""))
    assert "menugate asks before it runs the tool `bash`." in words
    assert all(text in words for text in ("Why: ", "SHA-256", "is Cyrillic)")), question
    assert "  allow: bash(" in rule
    for row in shown.splitlines():
        assert "only" not in row or row.startswith(("> ", "+ ", "  call: ", "    ", "  allow: ")), row


def test_comments_layout_and_other_rules_stay(workspace: Path, home: Path, menugate: Menugate, file: Path) -> None:
    file.parent.mkdir(parents=True)
    before = (
        "# mine\nrules:\n  deny: [Write(vendor/**)]  # never\nworkspaces:\n  /other: {rules: {deny: [Edit]}}\n# end\n"
    )
    file.write_text(before)
    file.chmod(0o644)
    with pipe(workspace, home, "--mode", "swe") as one:
        one.hello()
        for line in (LINE, "./release.sh"):
            done = menugate("approve", asks(one, "bash", command=line), "--always", answer="always")
            assert done.code == 0, done.err
        wait_until(lambda: menugate("rules", "list", "--json").out.count('"allow"') == 2)
    after = file.read_text().splitlines()
    assert [line for line in after if line in before.splitlines()] == before.splitlines()
    assert len(after) == len(before.splitlines()) + 5
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert menugate("check").code == 0


def test_a_path_is_named_and_the_content_is_free(workspace: Path, home: Path, menugate: Menugate) -> None:
    assert menugate("mode", "chat").code == 0
    with pipe(workspace, home, "--mode", "swe") as one:
        one.hello()
        done = menugate("approve", asks(one, "Write", file_path="new.md", content="a\n"), "--always", answer="always")
        assert done.code == 0, done.err
        assert 'allow: Write(file_path eq "new.md")' in done.out
        assert "It allows any `content`." in done.out
        one.call("Write", file_path="new.md", content="a\n")
        one.call("Read", file_path="new.md")
        wait_until(lambda: not one.call("Write", file_path="new.md", content="b\n").get("isError"))
        assert (workspace / "new.md").read_text() == "b\n"
        asks(one, "Write", file_path="new2.md", content="a\n")
        asks(one, "Write", file_path="src/new.md", content="a\n")


def test_it_says_what_it_would_have_changed(workspace: Path, home: Path, menugate: Menugate) -> None:
    with pipe(workspace, home, "--mode", "swe") as one:
        one.hello()
        for _ in range(2):
            assert menugate("approve", asks(one, "bash", command=LINE)).code == 0
            one.call("bash", command=LINE)
        one.call("Read", file_path="notes.md")
        asks(one, "bash", command="./release.sh " + "x" * 300)
        asks(one, "bash", command="./release.sh")
        id = asks(one, "bash", command=LINE)
        shown = menugate("approve", id, "--always", answer="no")
    assert shown.code == 1
    assert "2 of the last 5 calls would have run without asking:" in plain(shown.out)
    assert f'  bash "{LINE}"  (2 times)\n' in shown.out
    assert "For 1 more call this cannot be told" in plain(shown.out)
    assert "you did not type `always`; nothing was changed, and the question is still open." in plain(shown.err)


def test_without_lines_about_calls_it_says_so(workspace: Path, home: Path, menugate: Menugate, file: Path) -> None:
    file.parent.mkdir(parents=True)
    file.write_text("glance: off\n")
    with pipe(workspace, home, "--mode", "swe") as one:
        one.hello()
        shown = menugate("approve", asks(one, "bash", command=LINE), "--always", answer="always")
    assert "What it would have changed is unknown" in plain(shown.out)
    assert file.read_text().startswith("glance: off\nworkspaces:\n")


@pytest.mark.parametrize(
    ("answer", "why"),
    [(None, "needs a terminal"), ("", "did not type"), ("yes", "did not type"), ("always yes", "did not type")],
)
def test_nothing_but_the_word_changes_anything(
    workspace: Path, home: Path, menugate: Menugate, file: Path, answer: str | None, why: str
) -> None:
    with pipe(workspace, home, "--mode", "swe") as one:
        one.hello()
        id = asks(one, "bash", command=LINE)
        done = menugate("approve", id, "--always", answer=answer)
        assert done.code == 1
        assert why in done.err
        assert asks(one, "bash", command=LINE) == id
    assert not file.exists()


STRONGER = [
    ("rules: {ask: ['bash(./release.sh:*)']}\n", (), "the rule `bash(./release.sh:*)`"),
    ("rules: {ask: [bash]}\n", (), "it has no effect, because the ask rule `bash`"),
    ("", ("control", "manual"), "run control is `manual`"),
]


@pytest.mark.parametrize(("rules", "posture", "why"), STRONGER)
def test_a_rule_that_would_change_nothing_is_not_written(
    workspace: Path, home: Path, menugate: Menugate, file: Path, rules: str, posture: tuple[str, ...], why: str
) -> None:
    file.parent.mkdir(parents=True)
    file.write_text(rules)
    if posture:
        assert menugate(*posture).code == 0
    with pipe(workspace, home, "--mode", "swe") as one:
        one.hello()
        done = menugate("approve", asks(one, "bash", command=LINE), "--always", answer="always")
    assert done.code == 1
    assert why in plain(done.err)
    assert "Type `always`" not in done.out
    assert file.read_text() == rules


@pytest.mark.parametrize(
    ("tool", "arguments", "why"),
    [
        ("fs_delete", {"path": "notes.md"}, "a call with the effect `destroy-local` is never allowed by a rule"),
        ("fs_move", {"source": "notes.md", "destination": ".envrc"}, "depends on more than its arguments"),
        ("Write", {"file_path": ".envrc", "content": "x"}, "what it touches is protected"),
        ("Write", {"file_path": "menugate.yaml", "content": "{}"}, "what it touches is protected"),
        ("bash", {"command": LINE, "bash_id": "mine"}, "depends on more than its arguments"),
        ("bash", {"command": LINE + " " + "x" * 500}, "the limit is 500"),
    ],
)
def test_what_no_rule_allows_can_only_be_approved_once(
    workspace: Path, home: Path, menugate: Menugate, file: Path, tool: str, arguments: dict[str, Any], why: str
) -> None:
    with pipe(workspace, home, "--mode", "data" if tool.startswith("fs_") else "swe") as one:
        one.hello()
        if "bash_id" in arguments:
            one.call("bash", command="cd src", bash_id="mine")
        assert menugate("profile", "trusted" if tool != "bash" else "normal").code == 0
        id = asks(one, tool, **arguments)
        menugate("approvals", "show", id)
        done = menugate("approve", id, "--always", answer="always")
        assert done.code == 1
        assert why in plain(done.err), done.err
        assert menugate("approve", id).code == 0
    assert not file.exists()


def test_a_link_a_fault_and_a_file_of_unusual_layout_are_left_alone(
    workspace: Path, home: Path, menugate: Menugate, file: Path
) -> None:
    file.parent.mkdir(parents=True)
    target = home / "elsewhere.yaml"
    target.write_text("glance: on\n")
    file.symlink_to(target)
    with pipe(workspace, home, "--mode", "swe") as one:
        one.hello()
        id = asks(one, "bash", command=LINE)
        done = menugate("approve", id, "--always", answer="always")
        assert done.code == 1
        assert "is a link" in done.err
        assert f"{RULE}" in done.err, "you can write it yourself"
        assert target.read_text() == "glance: on\n"
        file.unlink()
        file.write_text("glance: maybe\n")
        done = menugate("approve", id, "--always", answer="always")
        assert done.code == 1
        assert "glance" in done.err
    assert file.read_text() == "glance: maybe\n"


def test_a_path_through_a_link_can_only_be_approved_once(
    workspace: Path, home: Path, menugate: Menugate, file: Path
) -> None:
    (workspace / "link").symlink_to("src")
    assert menugate("mode", "chat").code == 0
    with pipe(workspace, home, "--mode", "swe") as one:
        one.hello()
        for tool, arguments in (
            ("Write", {"file_path": "link/new.md", "content": "a\n"}),
            ("bash", {"command": LINE, "exec_dir": "link"}),
        ):
            done = menugate("approve", asks(one, tool, **arguments), "--always", answer="always")
            assert done.code == 1
            assert "a path of this call goes through a link" in done.err
    assert not file.exists()


@pytest.mark.parametrize("change", ["file", "answer"])
def test_what_changes_while_you_read_changes_nothing_else(
    workspace: Path, home: Path, menugate: Menugate, file: Path, change: str
) -> None:
    file.parent.mkdir(parents=True)
    file.write_text("glance: on\n")

    def interfere(out: io.StringIO) -> str:
        wait_until(lambda: "Type `always`" in out.getvalue())
        if change == "file":
            file.write_text("glance: on  # mine\n")
        else:
            assert form.accept()
        return "always"

    with pipe(workspace, home, "--mode", "swe") as one:
        one.able = FORM if change == "answer" else {}
        one.hello()
        if change == "file":
            id = asks(one, "bash", command=LINE)
        else:
            form = question(one, {"name": "bash", "arguments": {"command": LINE}})
            (waiting,) = json.loads(menugate("approvals", "--json").out)
            id = waiting["id"]
        done = menugate("approve", id, "--always", answer=interfere)
        assert done.code == 1
        assert ("was changed meanwhile" if change == "file" else "can no longer be answered") in done.err
        if change == "file":
            assert asks(one, "bash", command=LINE) == id
            assert menugate("approve", id, "--always", answer="always").code == 0
    assert file.read_text().startswith("glance: on  # mine\nworkspaces:" if change == "file" else "glance: on\n")


def test_a_waiting_call_runs_at_once(workspace: Path, home: Path, menugate: Menugate) -> None:
    with pipe(workspace, home, "--mode", "swe") as one:
        one.able = FORM
        one.hello()
        number = one.send("tools/call", {"name": "bash", "arguments": {"command": LINE}})
        while one.message().get("method") != "elicitation/create":
            pass
        (waiting,) = json.loads(menugate("approvals", "--json").out)
        assert menugate("approve", waiting["id"], "--always", answer="always").code == 0
        assert "released" in said(one.until(number)[0]["result"])


def test_the_rule_goes_into_the_file_of_the_server_that_asked(
    workspace: Path, home: Path, menugate: Menugate, file: Path
) -> None:
    own = home / "own.yaml"
    (alice,) = hire(home, alice="normal")
    file.rename(own)
    before = own.read_text()
    with served(workspace, home, "--mode", "swe", "--config", str(own)) as here, raw(here, token=alice) as one:
        answer = said(one.call("bash", command=LINE))
        id = answer.partition("menugate approve ")[2].split("`")[0]
        done = menugate("approve", id, "--always", answer="always")
        assert done.code == 0, done.err
        assert "everyone who connects to this workspace, not only to `alice`" in plain(done.out)
    assert own.read_text().startswith(f"{before}workspaces:\n")
    assert RULE in own.read_text()
    assert not file.exists()


@pytest.mark.parametrize("standing", ["void", "used", "unknown"])
def test_a_question_that_is_over_writes_no_rule(
    workspace: Path, home: Path, menugate: Menugate, file: Path, standing: str
) -> None:
    with pipe(workspace, home, "--mode", "swe") as one:
        one.hello()
        id = asks(one, "bash", command=LINE)
        if standing == "used":
            assert menugate("approve", id).code == 0
            one.call("bash", command=LINE)
        elif standing == "void":
            assert menugate("profile", "restricted").code == 0
        else:
            id = "k7f392qa"
        done = menugate("approve", id, "--always", answer="always")
    assert done.code == 1
    says = {"void": "is no longer valid", "used": "can no longer be answered: used", "unknown": "there is no question"}
    assert says[standing] in done.err
    assert not file.exists()


def test_both_scopes_at_once_are_one_too_many(workspace: Path, home: Path, menugate: Menugate) -> None:
    assert menugate("approve", "k7f392qa", "--always", "--for-session").code == 2


# What a session approval covers is said in the same words before and after.


@pytest.mark.parametrize(
    ("tool", "arguments", "covers"),
    [
        (
            "bash",
            {"command": LINE},
            "this `bash` call and every repetition of it, while the files that the question names stay the same (files "
            "that these load may change)",
        ),
        (
            "Write",
            {"file_path": "new.md", "content": "a\n"},
            "every `Write` call with the effect `write-local` that needs no profile above `normal` and may be approved "
            "for a session",
        ),
    ],
)
def test_a_session_approval_says_before_and_after_what_it_covers(
    workspace: Path, home: Path, menugate: Menugate, tool: str, arguments: dict[str, Any], covers: str
) -> None:
    whole = f"{covers}, in this session, until its run or stage ends, the posture changes or the approval expires"
    assert menugate("mode", "chat").code == 0
    with pipe(workspace, home, "--mode", "swe") as one:
        one.hello()
        id = asks(one, tool, **arguments)
        before = plain(menugate("approvals", "show", id).out)
        assert f"menugate approve {id} --for-session {whole}" in before
        assert f"menugate approve {id} --always this call and, by a rule, every later one exactly like it" in before
        assert json.loads(menugate("approvals", "show", id, "--json").out)["scopes"] == ["once", "session", "always"]
        assert f"Approved: `{tool}`, {whole}." in plain(menugate("approve", id, "--for-session").out)
        assert not one.call(tool, **arguments).get("isError")
        assert "To answer" not in menugate("approvals", "show", id).out
