"""What happens on a disk of 3 MB? Run on one that was made for it; says nothing where all is well."""

import asyncio
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

from mcp_server.model.results import Code, Refusal
from mcp_server.model.sessions import Session
from mcp_server.state.ledger import record_health
from mcp_server.state.terminal import change_state
from tests.state.parts import Place, intended, intent


async def main(folder: Path) -> None:
    place = Place(folder)
    store = place.store()
    await store.wait_until_ready()
    session = await store.put_session(Session("s1", "me"))
    ballast = folder / "ballast"
    ballast.write_bytes(bytes(600_000))
    acknowledged: list[int] = []
    try:
        for _ in range(20_000):
            acknowledged.append(await intended(store, intent()))
        raise AssertionError("the disk did not fill")
    except Refusal as refusal:
        assert refusal.problem.code is Code.STORE_FULL, refusal.problem
    for _ in range(20):
        try:
            acknowledged.append(await intended(store, intent()))
        except Refusal as refusal:
            assert refusal.problem.code is Code.STORE_FULL, refusal.problem
    assert await store.find_session("s1") == session
    ballast.unlink()
    acknowledged.append(await intended(store, intent()))
    await store.close()
    # And a start on a full disk: it says so or works, and it heals.
    ballast.write_bytes(b"")
    with ballast.open("ab", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    store = place.store()
    try:
        await store.wait_until_ready()
        await intended(store, intent())
    except Refusal as refusal:
        assert refusal.problem.code is Code.STORE_FULL, refusal.problem
    ballast.unlink()
    acknowledged.append(await intended(store, intent()))
    await store.close()
    await asyncio.to_thread(change_on_full_disk, folder, ballast)
    with place.reader() as state:
        kept = {row.seq for row in state.read_rows() if row.kind == "intent"}
        assert kept >= set(acknowledged), set(acknowledged) - kept
        report = state.verify()
        assert report.ok, report.faults


def change_on_full_disk(folder: Path, ballast: Path) -> None:
    """A change from a terminal does not use up the reserve, however often it is tried, and none is half done."""
    path, keys = Path(Place(folder).url.removeprefix("sqlite:///")), Place(folder).secrets
    reserve = path.with_suffix(".reserve")
    record_change = partial(record_health, reason="x" * 900, policy="ask")
    change_state(path, keys, record_change)
    assert reserve.exists()
    with ballast.open("ab", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    for _ in range(10):
        try:
            change_state(path, keys, record_change)
            raise AssertionError("a change was made on a full disk")
        except Refusal as refusal:
            assert refusal.problem.code is Code.STORE_FULL, refusal.problem
    ballast.unlink()
    change_state(path, keys, record_change)
    assert reserve.exists()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
