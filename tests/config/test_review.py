"""Does it come out whom the operator lets look over a run, and is what cannot be meant named without being repeated?"""

from pathlib import Path

import pytest

from mcp_server.model.policy import Reviewing
from tests.config.samples import opened, refused

HOST = "https://models.example.org"


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (
            f"endpoint: {HOST}/v1/chat/completions, model: m",
            Reviewing(f"{HOST}/v1/chat/completions", "models.example.org", 443, "m"),
        ),
        (
            "endpoint: 'http://127.0.0.1:11434/v1/chat/completions', model: m, key: 'env:A_KEY', patience: 45",
            Reviewing("http://127.0.0.1:11434/v1/chat/completions", "127.0.0.1", 11434, "m", "A_KEY", 45),
        ),
        (f"endpoint: '{HOST}/m?v=1', model: m", Reviewing(f"{HOST}/m?v=1", "models.example.org", 443, "m")),
        ("endpoint: 'http://[::1]:80/v1', model: m", Reviewing("http://[::1]:80/v1", "::1", 80, "m")),
    ],
)
def test_who_is_meant(given: str, meant: Reviewing, tmp_path: Path) -> None:
    file = tmp_path / "menugate.yaml"
    file.write_text(f"review: {{{given}}}\n")
    assert opened(config=file).config.review == meant


def test_nobody_is_meant_unless_somebody_is_named(tmp_path: Path) -> None:
    file = tmp_path / "menugate.yaml"
    file.write_text("max_profile: trusted\n")
    assert opened(config=file).config.review is None


@pytest.mark.parametrize(
    ("given", "key", "says"),
    [
        ("model: m", "review.endpoint", "this key is missing"),
        (f"endpoint: '{HOST}'", "review.model", "this key is missing"),
        ("endpoint: models.example.org/v1, model: m", "review.endpoint", "this is not a web address"),
        ("endpoint: 'ftp://models.example.org/v1', model: m", "review.endpoint", "this is not a web address"),
        ("endpoint: 'https:///v1', model: m", "review.endpoint", "this is not a web address"),
        (f"endpoint: '{HOST}/v1#hunter2', model: m", "review.endpoint", "this is not a web address"),
        ("endpoint: 'https://h:99999/v1', model: m", "review.endpoint", "this is not a URL"),
        ("endpoint: 'https://[::1/v1', model: m", "review.endpoint", "this is not a URL"),
        ("endpoint: 'https://a..b/v1', model: m", "review.endpoint", "is not a host name"),
        (
            "endpoint: 'https://me:hunter2@h.example/v1', model: m",
            "review.endpoint",
            "contains a user name or password",
        ),
        (f"endpoint: '{HOST}', model: m, key: sk-hunter2", "review.key", "not the key itself"),
        (f"endpoint: '{HOST}', model: m, key: 'env:hunter2 x'", "review.key", "not the key itself"),
        (f"endpoint: '{HOST}', model: m, patience: 0", "review.patience", "from 1 to 50"),
        (f"endpoint: '{HOST}', model: m, patience: 51", "review.patience", "from 1 to 50"),
        (f"endpoint: '{HOST}', model: m, prompt: x", "review.prompt", "there is no key `prompt` here"),
    ],
)
def test_what_cannot_be_meant_is_named(given: str, key: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "menugate.yaml"
    file.write_text(f"review: {{{given}}}\n")
    (fault,) = refused(config=file)
    assert (fault.key, says in fault.message) == (key, True), fault
    assert "hunter2" not in str(fault)
