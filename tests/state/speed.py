"""How fast is a durable intent on this machine? `python -m tests.state.speed`"""

import asyncio
import tempfile
import time
from pathlib import Path

from tests.state.neighbours import opened
from tests.state.parts import Place, intended, intent, outcome

ALONE, TOGETHER, EACH = 3000, 64, 500


async def main(folder: Path) -> None:
    store = await opened(folder)
    taken: list[float] = []
    for _ in range(ALONE):
        begun = time.perf_counter()
        seq = await intended(store, intent())
        taken.append(time.perf_counter() - begun)
        store.record_outcome(outcome(seq))
    taken.sort()
    print(f"one caller: p50 {taken[ALONE // 2] * 1e3:.3f} ms, p99 {taken[ALONE * 99 // 100] * 1e3:.3f} ms")

    async def caller() -> None:
        for _ in range(EACH):
            await intended(store, intent())

    begun = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(TOGETHER)))
    print(f"{TOGETHER} callers: {TOGETHER * EACH / (time.perf_counter() - begun):,.0f} rows/s")
    await store.close()
    with Place(folder).reader() as state:
        begun = time.perf_counter()
        report = state.verify()
        print(
            f"verify: {report.rows / (time.perf_counter() - begun):,.0f} rows/s, {'ok' if report.ok else report.faults}"
        )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
