"""Is every closed list whole wherever something depends on its members, so that a new member is forgotten nowhere?

Every `Enum` of the program is found here by itself, and so is every dictionary with its members as keys, every `match`
over them, and every tuple of rows that begin with one. Each of these names all members; one that means to leave some
out stands in PARTIAL, with what holds for those. An enum that no table lists stands in UNLISTED, with what holds back
a new member that nobody thought about. Tables that spell members out, so that the enum need not be loaded, are in
SPELLED.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import pytest

from tests.architecture.test_rooms import HOUSE

BASES = {"Enum", "StrEnum", "IntEnum", "Flag", "IntFlag"}

TAKING_ALL = {"enumerate", "fromkeys", "frozenset", "join", "list", "map", "set", "sorted", "tuple"}

PARTIAL: Mapping[str, str] = {
    "mcp_server/calls/approval_form.py TRIES_USED FormAnswer": "with a proper answer, the client does not come back",
    "mcp_server/calls/runs.py AGAIN StageDuty": "a thought that has no duty lacks nothing",
    "mcp_server/cli/explain.py find_deciding_rule Layer": "in every other layer something else decides than a rule",
    "mcp_server/config/reader.py PLAIN ScalarKind": "what none of the patterns fits is a text",
    "mcp_server/policy/refusals.py DOES Effect": "`decision.ASKING` has these; with any other the tool itself asks",
    "mcp_server/policy/rule_match.py build_predicate_test PredicateOperator": "the three above have tests of their own",
    "mcp_server/state/posture_changes.py _find_open_intents RowKind": "no other row begins or ends a call",
    "mcp_server/state/posture_changes.py has_open_unit RowKind": "no other row begins or ends a unit",
    "mcp_server/state/verify.py find_unfinished_calls RowKind": "no other row begins or ends a call",
    "tools/phases/failing_test.py decide_verdict SingleTestOutcome": "any other outcome cannot tell",
}
UNLISTED: Mapping[str, str] = {
    "StepRole": "a step of a new kind is judged as a command",
    "RuleOwner": "it is shown beside the rule, and nothing is decided by it",
    "AnsweredBy": "an answer that is not the person's is treated as a client's",
    "ApprovalAnswer": "a call runs after YES and after nothing else",
    "ChangeSource": "a change from anywhere but TERMINAL waits for the person's yes where it widens",
    "Code": "its meaning is part of the member, and tests/model/test_results.py goes through all of them",
    "CatalogueChanges": "a changed tool waits for the person's yes under anything but ALLOW and ALLOW_NEW",
    "Confidence": "it is told beside the mode that was found, and decides nothing",
    "Confirmation": "the person is asked before a tool that is not in `decision.MAY_GO_UNASKED`",
    "CriterionVerdict": "a todo is verified if every criterion is PASSED",
    "FormAnswer": "YES is taken for a yes, and nothing else",
    "Holder": "a run is held under every run control by anything but UNIT",
    "LineEvidence": "a line shows that tests ran if it is EXIT_CODE or PROOF",
    "QuarantineReason": "a part is not offered whatever the reason, and the reason is shown as it is",
    "RowKind": "a row is chained, kept and shown whatever its kind",
    "RuleSubject": "what is neither a path nor a command nor a URL is matched as a text",
    "SandboxState": "in any state but THERE a tool needs the next higher profile, or does not run",
    "SingleTestOutcome": "a test that is neither PASSED nor FAILED cannot tell anything",
    "Surface": "it is recorded with every call and decides nothing",
    "WordRole": "rules look at a word in every role, and only a TARGET can be left out",
}
SPELLED: Mapping[str, tuple[str, ...]] = {
    "mcp_server/cli/approvals.py FLAGS": ("ApprovalScope",),
    "mcp_server/cli/badge.py COLOURS": ("WorkMode", "RunControl", "Profile"),
    "mcp_server/cli/doctor.py COLOURS": ("Grade",),
    "mcp_server/cli/explain.py COLOUR": ("Verdict",),
    "mcp_server/cli/explain.py format_headline": ("Verdict",),
    "mcp_server/cli/menus.py LISTINGS": ("Listing",),
    "mcp_server/cli/rules.py COLOURS": ("RuleKind",),
    "mcp_server/policy/rule_slips.py SYNONYMS": ("PredicateOperator",),
}


@dataclass(frozen=True)
class Table:
    """A dictionary or a `match`, with the members that it names of one enum."""

    file: str
    line: int
    name: str
    enum: str
    members: frozenset[str]

    @property
    def key(self) -> str:
        return f"{self.file} {self.name} {self.enum}"


@cache
def parsed() -> Mapping[str, ast.Module]:
    paths = sorted(path for top in ("mcp_server", "tools") for path in (HOUSE / top).rglob("*.py"))
    return {str(path.relative_to(HOUSE)): ast.parse(path.read_text()) for path in paths}


@cache
def enums() -> Mapping[str, Mapping[str, str]]:
    """The members of every enum with their values, by its name, which is unique (test_names.py)."""
    classes = [node for tree in parsed().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    found: dict[str, dict[str, str]] = {}
    kinds = set(BASES)
    while new := [one for one in classes if one.name not in found and kinds & set(map(ast.unparse, one.bases))]:
        for one in new:
            kinds.add(one.name)
            assigned = [(node.targets[0], node.value) for node in one.body if isinstance(node, ast.Assign)]
            found[one.name] = {ast.unparse(target): value_of(value) for target, value in assigned}
    return {name: members for name, members in found.items() if members}


def value_of(node: ast.expr) -> str:
    """A member's own value, which comes first where it brings more."""
    first = node.elts[0] if isinstance(node, ast.Tuple) else node
    return str(ast.literal_eval(first)) if isinstance(first, ast.Constant) else ast.unparse(first)


def member_of(node: ast.AST | None) -> tuple[str, str] | None:
    """The enum and the member that `Enum.MEMBER` names."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
        return None
    return (node.value.id, node.attr) if node.attr in enums().get(node.value.id, ()) else None


def keys_of(node: ast.AST) -> list[ast.AST | None]:
    """What the parts of a table are found by: a dictionary's keys, a match's values, the first thing in each row."""
    match node:
        case ast.Tuple() if len(node.elts) > 1 and all(isinstance(one, (ast.Tuple, ast.Call)) for one in node.elts):
            return [next(iter(one.elts if isinstance(one, ast.Tuple) else one.args), None)
                    for one in node.elts if isinstance(one, (ast.Tuple, ast.Call))]  # fmt: skip
        case ast.Dict():
            return list(node.keys)
        case ast.Match():
            return [value for case in node.cases for value in values_of(case.pattern)]
        case _:
            return []


def values_of(pattern: ast.pattern) -> list[ast.AST]:
    if isinstance(pattern, ast.MatchOr):
        return [value for one in pattern.patterns for value in values_of(one)]
    return [pattern.value] if isinstance(pattern, ast.MatchValue) else []


def named(tree: ast.AST, name: str = "") -> Iterator[tuple[ast.AST, str]]:
    """Every node with the name that it is assigned to, or of the function it is in."""
    for node in ast.iter_child_nodes(tree):
        inner = name
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inner = node.name
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            inner = target.id if isinstance(target, ast.Name) and not name else name
        yield node, inner
        yield from named(node, inner)


def tables_in(file: str, tree: ast.Module) -> Iterator[Table]:
    for node, name in named(tree):
        members = [found for key in keys_of(node) if (found := member_of(key))]
        for enum in dict.fromkeys(enum for enum, _ in members):
            own = frozenset(member for other, member in members if other == enum)
            yield Table(file, getattr(node, "lineno", 0), name, enum, own)


@cache
def tables() -> tuple[Table, ...]:
    return tuple(table for file, tree in parsed().items() for table in tables_in(file, tree))


def whole_by_itself(tree: ast.Module) -> Iterator[str]:
    """Enums that something is made of as a whole: `for one in Enum`, `tuple(Enum)`, `dict.fromkeys(Enum)`, `*Enum`."""
    for node in ast.walk(tree):
        match node:
            case ast.comprehension(iter=ast.Name(id=name)) | ast.Starred(value=ast.Name(id=name)):
                yield name
            case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called)) if called in TAKING_ALL:
                yield from (one.id for one in node.args if isinstance(one, ast.Name))
            case _:
                pass


def missing(table: Table) -> list[str]:
    return [f"{table.enum}.{member}" for member in enums()[table.enum] if member not in table.members]


@pytest.mark.parametrize("enum", enums())
def test_every_table_over_a_closed_list_is_whole(enum: str) -> None:
    partial = [table for table in tables() if table.enum == enum and missing(table) and table.key not in PARTIAL]
    assert [f"{table.file}:{table.line}: `{table.name}` lacks {', '.join(missing(table))}" for table in partial] == []


@pytest.mark.parametrize("enum", enums())
def test_every_closed_list_is_listed_somewhere(enum: str) -> None:
    whole = any(table.enum == enum and not missing(table) for table in tables())
    spelled = any(enum in enums_spelled for enums_spelled in SPELLED.values())
    listed = whole or spelled or any(enum in whole_by_itself(tree) for tree in parsed().values())
    assert listed or enum in UNLISTED, f"nothing lists the members of `{enum}`: say in UNLISTED what a new one meets"
    assert not (whole and enum in UNLISTED), f"`{enum}` is listed by now: take it out of UNLISTED"


@pytest.mark.parametrize("name", SPELLED)
def test_every_table_that_spells_members_out_is_whole(name: str) -> None:
    file, _, table = name.partition(" ")
    keys = [
        {str(ast.literal_eval(key)) for key in node.keys if isinstance(key, ast.Constant)}
        for node, owner in named(parsed()[file])
        if isinstance(node, ast.Dict) and owner == table
    ]
    values = {enum: set(enums()[enum].values()) for enum in SPELLED[name]}
    assert keys, f"{file} has no `{table}`"
    assert [f"{file}: `{table}` lacks {enum} `{value}`" for enum, own in values.items()
            for value in sorted(own - keys[-1])] == []  # fmt: skip


def test_a_planted_gap_is_found() -> None:
    source = "A = {Verdict.ALLOW: 1, Verdict.DENY: 2}\nB = ((Verdict.ASK, 1), (Verdict.DENY, 2))\n"
    source += "def c(one):\n    match one:\n        case Verdict.ALLOW | Verdict.ASK: return 1\n"
    planted = list(tables_in("x.py", ast.parse(source)))
    assert [(one.name, missing(one)) for one in planted] == [
        ("A", ["Verdict.ASK"]),
        ("B", ["Verdict.ALLOW"]),
        ("c", ["Verdict.DENY"]),
    ]


def test_no_exception_outlives_its_reason() -> None:
    assert [f"{name} is no enum: take it out of UNLISTED" for name in UNLISTED if name not in enums()] == []
    partial = {table.key for table in tables() if missing(table)}
    assert [f"{key} is whole, or gone: take it out of PARTIAL" for key in PARTIAL if key not in partial] == []
