"""What happens on a disk of 3 MB? Run on one that was made for it; says nothing where all is well."""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

from mcp_server.model.results import Code, Refusal
from mcp_server.model.sessions import Session
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
    with place.reader() as state:
        kept = {row.seq for row in state.read_rows() if row.kind == "intent"}
        assert kept >= set(acknowledged), set(acknowledged) - kept
        report = state.verify()
        assert report.ok, report.faults


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
