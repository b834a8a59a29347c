"""N3: a predicate with a slip in it was read as a text to match, never spoke, and `check` said that all was well."""

import json
from pathlib import Path

import pytest

from tests.clients import warm
from tests.clients.pipe import pipe
from tests.clients.served import PATIENCE, command, environment
from tests.clients.typed import typed

LISTS = ("block", "deny", "ask", "allow")
DEAD = [
    # rule, and the nearest right spelling that the fault names
    ("fs_list_directory(depth >= 3)", "gt"),
    ("fs_list_directory(depth>=3)", "gt"),
    ("fs_list_directory(depth == 3)", "eq"),
    ("fs_list_directory(depth > 3)", "gt"),
    ("Edit(replace_all is true)", "eq"),
    ("Edit(replace_all = true)", "eq"),
    ("grep(path exits)", "exists"),
    ('Write(file_path regx "^docs/")', "regex"),
    ('Write(file_path not_glob "docs/**")', "no operator `not_glob`"),
    ('Write(file_path matches "docs")', "regex"),
    ('Write(file_path Glob "docs/**")', "glob"),
    ('Write(not file_path glob "docs/**")', "neq"),
    ("fs_delete(permanent)", "permanent exists"),
    ("Read(docs/** and limit gt 3)", "docs/**"),
    ("Read(limit gt 3 and offset >= 1)", "gt"),
    # a bare word where a literal belongs
    ("Write(file_path eq docs)", '"docs"'),
    ("Write(file_path in [docs, src])", '"docs"'),
    ("Edit(replace_all eq yes)", "true"),
    ("Edit(replace_all eq True)", "true"),
    ("grep(path exists yes)", "exists"),
    ('fs_list_directory(depth gt "3")', "numbers"),
    # an argument that the tool does not have
    ("Edit(replaceall eq true)", "replace_all"),
    ('Write(flie_path glob "docs/**")', "file_path"),
    ("fs_list_directory(dept >= 3)", "depth"),
    ("*(replace_al eq true)", "replace_all"),
    ("bash(timeuot gt 5)", "timeout"),
    ("bash(timeout >= 5)", "gt"),
    # a value that its argument never has
    ('grep(output_mode in ["content", "file"])', "`files_with_matches`"),
    ('grep(output_mode eq "contnt")', "`content`"),
    ('grep(output_mode not_in ["contnt"])', "`content`"),
    # as other languages write it
    ('Read(file_path,eq,"a")', 'file_path eq "a"'),
    ('Read(file_path: "src/**")', 'file_path glob "src/**"'),
    ("Read(file_path: “a”)", 'file_path eq "a"'),
    ("Read(file_path eq “a”)", '`"a"`'),
    ("Read(re:^src)", "`src`"),
    ("Read(/^src/.*/)", "`src/**`"),
    ("Read(src\u200b/**)", "`src/**`"),
    ("Read(src/**) and Write(docs/**)", "`Write(docs/**)`"),
    ("bash(git push:*) or bash(rm:*)", "`bash(rm:*)`"),
    ("bash(git:push:*)", "`git push:*`"),
    ("Edit(replace_all: true)", "replace_all eq true"),
    ("Edit(not replace_all)", "replace_all exists false"),
    ("Edit(edits[0].old_string exists)", "no argument `edits`"),
    ("fs_list_directory(depth: 3)", "depth eq 3"),
    ("fs_list_directory(path: src)", 'path eq "src"'),
    ("fs_list_directory(3 lt depth)", "depth gt 3"),
    ("fs_list_directory(gt depth 3)", "depth gt 3"),
    ("fs_list_directory(exists depth)", "depth exists"),
    ("fs_list_directory({depth: 3})", "depth eq 3"),
    ("fs_list_directory($.depth gt 3)", "depth gt 3"),
    ('fs_list_directory("depth" gt 3)', "depth gt 3"),
    ("grep(path: src)", 'path eq "src"'),
    ("Read(file_path:*.env)", 'file_path glob "*.env"'),
    ("Read(no limit)", "limit exists false"),
    ("bash(timeout: 60)", "timeout eq 60"),
    ('bash("timeout" gt 60)', "timeout gt 60"),
    ("*(permanent: true)", "permanent eq true"),
    # a word, a bracket or a sign too much or too little
    ('bash(command starts "ls")', "ls:*"),
    ('bash(command begins with "git")', "git:*"),
    ("Read(and offset gt 3)", "offset gt 3"),
    ("Edit(if replace_all eq true)", "replace_all eq true"),
    ("Edit(where replace_all eq true)", "replace_all eq true"),
    ("Read(when limit gt 3)", "limit gt 3"),
    ("Read(src/**))", "`src/**`"),
    ("Read((src/**))", "`src/**`"),
    ("bash(git push:*))", "`git push:*`"),
    ("Read(src\\**)", "`src/**`"),
    ("Read(C:\\x)", "relative to the workspace"),
    ("Read($HOME/x)", "does not expand variables"),
    ("bash(git push:)", "git push:*"),
    ("Edit(replace_al)", "replace_all exists"),
    ("fs_list_directory(depth not exists)", "depth exists false"),
    ("fs_list_directory(depth not in [1, 2])", "depth not_in [1, 2]"),
    ('Read(file_path under "src")', "src/**"),
    ('Write(file_path is_in ["a"])', "did you mean `in`"),
    ('Write(file_path begins "a.b")', "file_path regex"),
    ('Write(file_path ends "a")', "a$"),
    ("fs_list_directory(depth ≥ 3)", "`gt` with the next lower number"),
    ("Read(limit ≤ 3)", "`lt` with the next higher number"),
    ("Read(limit gt 3 AND offset gt 1)", "`and offset gt 1`"),
    ("Read(limit gt 3 && offset gt 1)", "`and offset gt 1`"),
    ("Read(limit gt 3, offset gt 1)", "`and offset gt 1`"),
    ("Read(limit gt 3 or offset gt 1)", "write two rules"),
    ("Edit(replace_all eq ture)", "`true` if you mean that"),
    # several patterns in one, and patterns of another language
    ("bash(git push:*, git pull:*)", "`git push:*`, `git pull:*`"),
    ("bash(git push:* or git pull:*)", "`git push:*`, `git pull:*`"),
    ("bash(git push:* | git pull:*)", "`git push:*`, `git pull:*`"),
    ("bash(git push, git pull:*)", "a rule for each"),
    ('bash("git push":*)', "`git push:*`"),
    ("bash(git push:**)", "did you mean `git push:*`"),
    ("bash(^git push)", "did you mean `git push:*`"),
    ("bash(git push$)", "did you mean `git push:*`"),
    ("bash(git push.*)", "did you mean `git push:*`"),
    ("bash(git .*)", "did you mean `git:*`"),
    ("bash(“git push:*”)", "`git push:*`"),
    ("bash(“git push”:*)", "`git push:*`"),
    ("bash(`git push:*`)", "`git push:*`"),
    ("bash(command: git push:*)", "`git push:*`"),
    ("Read((docs/**)", "did you mean `docs/**`"),
    ("Read([a-z)", "did you mean `[a-z]`"),
    ("Read({src/**,docs/**)", "`{src/**,docs/**}`"),
    ("Read(src/**, docs/**)", "`src/**`, `docs/**`"),
    ("Read(src/**,docs/**)", "`src/**`, `docs/**`"),
    ("Read(src, docs/**)", "`src`, `docs/**`"),
    ("Read(src/** or docs/**)", "`src/**`, `docs/**`"),
    ("Read(src/** and docs/**)", "`src/**`, `docs/**`"),
    ("Read(src/**|docs/**)", "`src/**`, `docs/**`"),
    ("Read(src/**;docs/**)", "`src/**`, `docs/**`"),
    ("Read(.env, .envrc)", "`.env`, `.envrc`"),
    ('Read("src/**", "docs/**")', "`src/**`, `docs/**`"),
    ("Read(file:///etc/x)", "`/etc/x`"),
    ("Read(path: src/**)", "did you mean `src/**`"),
    ("Read(“src/**”)", "`src/**`"),
    ("Read(‘.env’)", "`.env`"),
    ("Read(`src/**`)", "`src/**`"),
    ("Read(^src/.*)", "did you mean `src/**`"),
    ("Read(except src/**)", "cannot have exceptions"),
    ("Read(all but src/**)", "cannot have exceptions"),
]
ALIVE = [
    "fs_list_directory(depth gt 2)",
    "Edit(replace_all eq true)",
    "grep(path exists)",
    'Write(file_path regex "^docs/")',
    "Read('limit >= 3')",
    "Read(my notes.md)",
    "Read(a=b.txt)",
    "bash(timeout 5 make:*)",
    "*(permanent eq true)",
    "grep(-i eq true)",
    # an argument's name is a program's or a folder's too
    "bash(timeout:*)",
    "bash(command:*)",
    "bash(test -f x)",
    'bash(echo "timeout": 3)',
    "Read(docs/a: b.md)",
    "Read(note: a.md)",
    "Read(path/limit: 3)",
    "Read(no limits.md)",
    "Read(a[0] b.md)",
    "Read(.limit/**)",
    "Read('depth gt 3')",
    'Read("limit: 3")',
    "Read(src/(group)/**)",
    "Read('(src/**)')",
    'Read("$HOME/x")',
    "Read('and offset gt 3')",
    "Read(src/\\[id\\].ts)",
    "Read(if.md)",
    "Read(my_file)",
    "bash(test command starts:*)",
    # a name holds what a list does
    "Read(a, b.md)",
    "Read(Tom and Jerry.md)",
    "Read(this or that.txt)",
    "Read(*,v)",
    "Read(Tom’s notes.md)",
    "Read({a,b}/*.{ts,tsx})",
    "Read(app/[id]/page.tsx)",
    "Read(app/(group)/*.tsx)",
    "Read(src/.*)",
    "Read(not a word.md)",
    "Read('src/**, docs/**')",
    "Read('[a-z')",
    "Read('^src')",
    'bash(git log --grep "a or b":*)',
    "bash(git commit -m 'a, b':*)",
    "bash(echo a or b:*)",
    "bash(cat notes.*)",
    "bash(ls *.py)",
    'bash("/opt/my tool/run":*)',
    "bash('git pull:*')",
    "bash(path:*)",
    "bash(grep ^x notes:*)",
]


def written(tmp_path: Path, kind: str, *rules: str) -> str:
    path = tmp_path / f"{kind}.yaml"
    path.write_text(f"rules:\n  {kind}:\n" + "".join(f"    - {json.dumps(rule)}\n" for rule in rules))
    return str(path)


@pytest.mark.parametrize("kind", LISTS)
def test_every_slip_is_a_fault_with_its_line_and_the_right_spelling(
    workspace: Path, home: Path, tmp_path: Path, kind: str
) -> None:
    config = written(tmp_path, kind, *(rule for rule, _ in DEAD))
    checked = typed(workspace, home, "check", "--json", "--config", config)
    assert checked.code == 1
    faults = {fault["file"]: fault["message"] for fault in json.loads(checked.out)["faults"]}
    said = {rule: (meant, faults[f"{config}:{line}"].partition(": ")[2]) for line, (rule, meant) in enumerate(DEAD, 3)}
    assert {rule: both for rule, both in said.items() if both[0] not in both[1]} == {}
    assert len(faults) == len(DEAD)


@pytest.mark.parametrize("words", [("rules", "test"), ("rules", "list"), ("explain", "Read")], ids=" ".join)
def test_no_command_judges_by_a_dead_rule(workspace: Path, home: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    config = written(tmp_path, "deny", "fs_list_directory(depth >= 3)")
    said = typed(workspace, home, *words, "--config", config)
    assert said.code == 1
    assert "did you mean `gt`" in said.err
    assert f"{config}:3" in said.err


def test_no_server_starts_with_one_in_the_operators_file_or_the_folders(
    workspace: Path, home: Path, tmp_path: Path
) -> None:
    config = written(tmp_path, "deny", "Edit(replace_all is true)")
    for flags in (["--config", config], []):
        if not flags:
            (workspace / "menugate.yaml").write_text(Path(config).read_text())
        ended = warm.run(
            [*command("serve"), "--workspace", str(workspace), *flags],
            environment(home),
            cwd=home,
            text=True,
            timeout=3 * PATIENCE,
        )
        assert ended.returncode == 1
        assert "did you mean `eq`" in ended.stderr


@pytest.mark.parametrize("kind", LISTS)
def test_what_can_be_meant_is_no_fault(workspace: Path, home: Path, tmp_path: Path, kind: str) -> None:
    checked = typed(workspace, home, "check", "--config", written(tmp_path, kind, *ALIVE))
    assert checked.code == 0, checked.out


def test_put_right_the_rules_speak(workspace: Path, home: Path, tmp_path: Path) -> None:
    config = written(tmp_path, "deny", "fs_list_directory(depth gt 2)", "grep(-i eq true)")
    with pipe(workspace, home, "--config", config) as one:
        one.hello("mcp")
        for tool, mode, arguments in [
            ("fs_list_directory", "data", {"depth": 3}),
            ("grep", "swe", {"pattern": "x", "-i": True}),
        ]:
            answer = one.call("menu_call", tool=tool, arguments=arguments, mode=mode)
            assert answer["content"][0]["text"].startswith("Error RULE_DENIED")
