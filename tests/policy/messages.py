"""The words of every refusal, kept in tests/tables/messages.yaml. Writes them anew, to be read in the diff:

python -m tests.policy.messages
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from mcp_server.model.policy import Decision, Rules
from mcp_server.policy.rules import compile_rules
from tests.policy.test_decision import answer
from tests.policy.world import TABLES, known, table
from tests.policy.world import texts as listed
from tools.catalog import READ_LINE

HEAD = """\
# What is said, word for word: to whoever wrote a rule that cannot hold, and to whoever made a call that may not run.
# `python -m tests.policy.messages` writes the words anew for the cases that stand here; read the diff.
"""


def fault(case: Mapping[str, Any]) -> str:
    got = compile_rules(listed(case["rules"]), known(), READ_LINE, roots=("/work",))
    assert not isinstance(got, Rules)
    return got[0].message


def refusal(case: Mapping[str, Any]) -> Decision:
    return answer(case["case"])


def written() -> Iterator[str]:
    page = table("messages")
    yield HEAD + "faults:\n"
    for case in page["faults"]:
        yield f"  - rules: {quoted(case['rules'])}\n    says: {quoted(fault(case))}\n"
    yield "refusals:\n"
    for case in page["refusals"]:
        got = refusal(case)
        yield f"  - case: {quoted(case['case'])}\n"
        yield f"    reason: {quoted(got.reason)}\n    way_out: {quoted(got.way_out)}\n"


def quoted(value: Any) -> str:
    """JSON, which is YAML too."""
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    (TABLES / "messages.yaml").write_text("".join(written()))
