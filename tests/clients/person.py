"""The person at another terminal, who changes what may be done while a server runs."""

import io
import os
from collections.abc import Generator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

from mcp_server.cli.main import main
from mcp_server.model.posture import PostureChange, PostureChoice
from mcp_server.settings import read_settings
from mcp_server.state import posture_changes
from mcp_server.state.engine.rows import WallClock
from mcp_server.state.ids import make_id_generator
from mcp_server.state.store import Store
from tests.clients.served import environment


async def choose(workspace: Path, home: Path, principal: str = "", **axes: Any) -> None:
    """Choose a posture: the values given, everything else as it was."""
    settings = read_settings({"workspace": str(workspace)}, environment(home))
    store = Store.open(settings.url, secrets=settings.secrets, clock=WallClock(), new_id=make_id_generator())
    try:
        who = principal or settings.person
        change = PostureChange("test", axes, reason="the person chose it")
        assert isinstance(
            await store.write(partial(posture_changes.request_posture_change, principal=who, change=change)),
            PostureChoice,
        )
    finally:
        await store.close()


def typed(workspace: Path, home: Path, *words: str, code: int = 0) -> str:
    """What a command says; in this process, which starts faster than one of its own."""
    out, err = io.StringIO(), io.StringIO()
    with at_home(home), redirect_stdout(out), redirect_stderr(err):
        ended = main([*words, "--workspace", str(workspace)])
    assert ended == code, err.getvalue()
    return out.getvalue() or err.getvalue()


@contextmanager
def at_home(home: Path) -> Generator[None]:
    """Nothing of what the person at this machine has set."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(environment(home))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
