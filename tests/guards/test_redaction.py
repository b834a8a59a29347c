"""Is every secret hidden, in every spelling and at every edge, and nothing else?"""

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.guards import redaction
from mcp_server.guards.redaction import REDACTED, Redactor, is_secret_key
from mcp_server.guards.spill import MAX_WORD_CHARS, cut_into_parts, cut_middle
from tests.sizes import scale
from tests.yaml_text import load_yaml

HOUSE = Path(__file__).parents[2]
TABLE: dict[str, list[dict[str, str]]] = load_yaml((HOUSE / "tests" / "tables" / "redaction.yaml").read_text())
CASES = [
    pytest.param(row["given"], row.get("shown", row["given"]).replace("...", REDACTED), id=f"{kind}-{at}")
    for kind, rows in TABLE.items()
    for at, row in enumerate(rows)
]
SECRET = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zs", "Zl", "Zp"]), min_size=8, max_size=30)


@pytest.mark.parametrize(("text", "shown"), CASES)
def test_table(text: str, shown: str) -> None:
    redactor = Redactor()
    assert redactor.redact(text) == shown
    assert redactor.redact(shown) == shown


@pytest.mark.parametrize("shape", redaction.SHAPES, ids=lambda shape: shape.needles[0])
def test_each_shape_is_there_for_something(shape: redaction.Shape, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any one of the shapes the table above would fail."""
    monkeypatch.setattr(redaction, "SHAPES", tuple(one for one in redaction.SHAPES if one is not shape))
    assert any(Redactor().redact(str(case.values[0])) != case.values[1] for case in CASES)


def spellings(secret: str) -> list[str]:
    raw = secret.encode()
    return [
        secret,
        raw.hex(),
        raw.hex().upper(),
        quote(secret, safe=""),
        quote_plus(secret),
        json.dumps(secret),
        json.dumps(secret, ensure_ascii=False),
        json.dumps({"deep": json.dumps({"er": secret}, ensure_ascii=False)}, ensure_ascii=False)
        if '"' not in secret and "\\" not in secret
        else secret,
    ]


@given(SECRET, st.text(max_size=10), st.text(max_size=10))
def test_a_known_value_is_hidden_in_every_spelling(secret: str, before: str, after: str) -> None:
    redactor = Redactor([secret])
    for spelling in spellings(secret):
        assert spelling.strip('"') not in redactor.redact(before + spelling + after).replace(REDACTED, "\0")


@given(SECRET, st.binary(max_size=7), st.binary(max_size=7), st.booleans())
def test_a_known_value_is_hidden_inside_any_base64(secret: str, before: bytes, after: bytes, urlsafe: bool) -> None:
    encode = base64.urlsafe_b64encode if urlsafe else base64.b64encode
    blob = encode(before + secret.encode() + after).decode()
    shown = Redactor([secret]).redact(blob)
    assert REDACTED in shown
    # What is left beside it are the characters that the neighbours had a part in.
    assert len(shown) - len(REDACTED) <= len(encode(before)) + len(encode(after)) + 4


def test_short_values_hide_nothing() -> None:
    assert Redactor(["dev", "1234567", ""]).redact("dev 1234567") == "dev 1234567"


def test_the_lines_of_a_long_value_are_hidden_one_by_one() -> None:
    redactor = Redactor(["first line of the key\nsecond line of the key\nend"])
    assert redactor.redact("12: second line of the key") == f"12: {REDACTED}"
    assert redactor.redact("the end") == "the end"


def test_the_longer_of_two_values_wins() -> None:
    assert Redactor(["abcdefgh", "abcdefghij"]).redact("abcdefghij") == REDACTED


@given(st.text() | st.lists(st.sampled_from([str(case.values[0]) for case in CASES]), max_size=4).map(" ".join))
def test_a_second_time_changes_nothing(text: str) -> None:
    redactor = Redactor(["exact-value-1"])
    once = redactor.redact(text)
    assert redactor.redact(once) == once


NAMING = "password apiKey client_secret X-Auth-Token accessToken Authorization private_key passwords set-cookie"
OTHERS = "nextPageToken progressToken max_tokens tokenizer secretary path csrf_token"


@pytest.mark.parametrize(
    ("key", "secret"), [(key, True) for key in NAMING.split()] + [(key, False) for key in OTHERS.split()]
)
def test_keys_that_name_a_secret(key: str, secret: bool) -> None:
    assert is_secret_key(key) is secret


def test_a_value_keeps_its_shape() -> None:
    value = {
        "password": "x",
        "count": 3,
        "ok": True,
        "nothing": None,
        "secrets": ["a", {"name": "n"}],
        "list": ["plain", "AKIAIOSFODNN7EXAMPLE"],
        "ghp_0123456789abcdefghijABCDEFGHIJ012345": 1,
        "token": {"value": "v"},
        "empty_password": "",
    }
    assert Redactor().redact_value(value) == {
        "password": REDACTED,
        "count": 3,
        "ok": True,
        "nothing": None,
        "secrets": [REDACTED, {"name": "n"}],
        "list": ["plain", REDACTED],
        REDACTED: 1,
        "token": {"value": "v"},
        "empty_password": "",
    }


def test_a_bottomless_value_ends() -> None:
    deep: Any = "AKIAIOSFODNN7EXAMPLE"
    for _ in range(100_000):
        deep = [deep]
    assert "AKIA" not in str(Redactor().redact_value(deep))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@given(JSON)
def test_a_value_without_secrets_is_the_same_value(value: Any) -> None:
    assert Redactor().redact_value(value) == value


WORDS = st.lists(st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=40), max_size=60)


@given(WORDS, st.sampled_from([" ", "\n"]), st.integers(0, 700))
def test_a_cut_leaves_whole_words(words: list[str], gap: str, limit: int) -> None:
    text = gap.join(words)
    whole = cut_into_parts(text, limit)
    assert set(whole.head.split()) | set(whole.tail.split()) <= set(words)
    assert len(cut_middle(text, limit)) <= max(limit, 0)
    assert len(whole.head) + len(whole.tail) + whole.left_out == len(text)
    assert text.startswith(whole.head) and text.endswith(whole.tail)


@given(st.integers(0, 4000), st.integers(0, 1500))
def test_no_half_of_a_secret_at_any_edge(place: int, limit: int) -> None:
    token = "ghp_" + "Zq" * 20
    text = ("word " * 1000)[:place] + f" {token} " + ("word " * 1000)[place:]
    assert "Zq" not in Redactor().redact_and_cut(text, limit)
    assert "Zq" not in cut_middle(text, limit).replace(token, "")


def test_a_cut_says_what_it_left_out() -> None:
    text = "\n".join(f"line {number}" for number in range(1000))
    shown = cut_middle(text, 500)
    assert shown.startswith("line 0\n") and shown.endswith("line 999")
    whole = cut_into_parts(text, 500)
    assert f"[... {whole.left_out:,} characters in {whole.lines_left_out:,} lines left out ...]" in shown


def test_one_endless_word_is_cut_where_the_room_ends() -> None:
    assert len(cut_middle("x" * 10**6, 10_000)) > 9_800
    assert cut_into_parts("x" * MAX_WORD_CHARS, 300).head == ""


# Anything worse than linear would take hours on these; the processor time is rationed instead of the clock watched.
FLOODS = [
    *("password=", "password='", 'password="', 'password=\\"', "passwordpassword", "token: ", "secret\\", "password_"),
    *(
        "a:b@",
        "://",
        "://a:",
        "://a:b",
        "sk-",
        "sk-a",
        "ghp_",
        "github_pat_",
        "eyJ",
        "eyJaaaaaaaaa.",
        "eyJaaaaaaaaa.eyJ",
    ),
    *(
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN RSA PRIVATE KEY-----\n-",
        "PRIVATE KEY",
        "BEGIN ",
        "bearer ",
        "Bearer a",
    ),
    *("bearer\t \t", "authorization: basic ", "AKIA", "ya29.", "xoxb-", "npm_", "AIza", "sk_live_", "[redacted]", "\n"),
    *(" ", "=", "-", "a", '\\"', "api_key", 'password="\\'),
]
RATION = """
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, ({seconds}, {seconds}))
sys.path.insert(0, {house!r})
from mcp_server.guards.redaction import Redactor
redactor = Redactor(["exact-value-1", "aaaaaaaaab"])
needles = " PRIVATE KEY token pass :// bearer authorization: sk- eyJ "
for flood in {floods!r}:
    redactor.redact(flood * ({length} // len(flood)) + needles)
print("done")
"""


@pytest.mark.heavy
def test_no_flood_costs_more_than_its_length() -> None:
    code = RATION.format(house=str(HOUSE), floods=FLOODS, length=scale(400_000, 60_000), seconds=scale(8, 3))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "done\n", done.stderr
