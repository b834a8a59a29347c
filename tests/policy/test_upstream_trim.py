"""Is of a result kept what the operator wants, and an error kept whole?"""

import json
from typing import Any

import pytest

from mcp_server.model.results import Relayed
from mcp_server.model.upstreams import ResultTrim
from mcp_server.policy.upstream_trim import trim_json, trim_result

VALUE: dict[str, Any] = {"items": [{"id": 1, "html": "<a>"}, {"id": 2, "html": "<b>"}], "next": "x", "n": {"html": 1}}
CASES: list[tuple[ResultTrim, Any]] = [
    (ResultTrim(), VALUE),
    (ResultTrim(keep=("items.*.id",)), {"items": [{"id": 1}, {"id": 2}]}),
    (ResultTrim(keep=("items.id", "next")), {"items": [{"id": 1}, {"id": 2}], "next": "x"}),
    (ResultTrim(keep=("items.0",)), {"items": [{"id": 1, "html": "<a>"}]}),
    (ResultTrim(keep=("nothing",)), {}),
    (ResultTrim(drop=("items.*.html", "n")), {"items": [{"id": 1}, {"id": 2}], "next": "x"}),
    (ResultTrim(drop=("*.html",)), {"items": [{"id": 1}, {"id": 2}], "next": "x", "n": {}}),
    (ResultTrim(keep=("items",), drop=("items.html",)), {"items": [{"id": 1}, {"id": 2}]}),
]


@pytest.mark.parametrize(("trim", "left"), CASES)
def test_paths_choose_what_is_left(trim: ResultTrim, left: Any) -> None:
    assert trim_json(VALUE, trim) == left


def test_structured_content_and_its_text_are_trimmed_alike() -> None:
    texts = (json.dumps(VALUE), "no JSON", '{"broken": ')
    given = Relayed(tuple({"type": "text", "text": text} for text in texts), VALUE)
    shown = trim_result(given, ResultTrim(keep=("next",)))
    assert shown.data == {"next": "x"}
    assert [block["text"] for block in shown.blocks] == ['{"next": "x"}', *texts[1:]]


def test_an_error_stays_whole() -> None:
    failed = Relayed(({"type": "text", "text": json.dumps(VALUE)},), VALUE, failed=True)
    assert trim_result(failed, ResultTrim(keep=("next",))) == failed
