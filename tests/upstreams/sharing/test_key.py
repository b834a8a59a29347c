"""Does a proof show that its maker can read the key, for one purpose only, and does a digest tell nothing?"""

from pathlib import Path

import pytest

from mcp_server.upstreams.sharing.key import ShareKey, make_nonce

KEY = ShareKey(b"k" * 43)
DIGEST = KEY.digest_definition(["definition"])


def test_a_proof_is_good_for_one_key_role_definition_and_connection() -> None:
    mine, theirs = make_nonce(), make_nonce()
    proof = KEY.prove("guest", DIGEST, mine, theirs)
    assert KEY.is_proven(proof, "guest", DIGEST, mine, theirs)
    other = ShareKey(b"l" * 43)
    wrong = [
        other.is_proven(proof, "guest", DIGEST, mine, theirs),
        KEY.is_proven(proof, "holder", DIGEST, mine, theirs),
        KEY.is_proven(proof, "guest", other.digest_definition(["definition"]), mine, theirs),
        KEY.is_proven(proof, "guest", DIGEST, mine, make_nonce()),
        KEY.is_proven(proof, "guest", DIGEST, theirs, mine),
        KEY.is_proven("", "guest", DIGEST, mine, theirs),
        KEY.is_proven("é", "guest", DIGEST, mine, theirs),
    ]
    assert not any(wrong)


@pytest.mark.parametrize("nonce", ["", "short"])
def test_a_challenge_that_is_no_challenge_is_not_met(nonce: str) -> None:
    mine = make_nonce()
    assert not KEY.is_proven(KEY.prove("guest", DIGEST, nonce, mine), "guest", DIGEST, nonce, mine)


def test_our_own_challenge_does_not_count_as_theirs() -> None:
    mine = make_nonce()
    assert not KEY.is_proven(KEY.prove("guest", DIGEST, mine, mine), "guest", DIGEST, mine, mine)


def test_without_the_key_nobody_can_try_out_what_a_digest_is_of() -> None:
    assert ShareKey(b"l" * 43).digest_definition(["definition"]) != DIGEST
    assert KEY.digest_definition(["other"]) != DIGEST


def test_the_key_is_made_once_and_a_broken_one_is_replaced(tmp_path: Path) -> None:
    made = ShareKey.load(tmp_path)
    assert ShareKey.load(tmp_path) == made and (tmp_path / "instances.key").stat().st_mode & 0o777 == 0o600
    (tmp_path / "instances.key").write_text("")
    assert ShareKey.load(tmp_path) not in (made, ShareKey(b""))
