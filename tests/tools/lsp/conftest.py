"""A workspace with one Python file, and a language server that does what a script says."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.tools.lsp.ground import SOURCE, LspWorkbench, Started, bench, server


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def started(tmp_path: Path) -> Started:
    @asynccontextmanager
    async def start(name: str = "ty", source: str | bytes = SOURCE, **script: Any) -> AsyncGenerator[LspWorkbench]:
        root = tmp_path / "work"
        root.mkdir(exist_ok=True)
        (root / "a.py").write_bytes(source.encode() if isinstance(source, str) else source)
        async with bench(root, server(tmp_path / "bin", name, script)) as one:
            yield one

    return start
