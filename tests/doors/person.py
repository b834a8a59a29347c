"""The person at another terminal, who changes what may be done while a server runs."""

from functools import partial
from pathlib import Path
from typing import Any

from mcp_server.compose import Wall, numbered
from mcp_server.model.posture import Change, Choice
from mcp_server.settings import read
from mcp_server.state import Store, deeds
from tests.doors.served import environment


async def choose(workspace: Path, home: Path, principal: str = "", **axes: Any) -> None:
    """Choose a posture: the values given, everything else as it was."""
    settings = read({"workspace": str(workspace)}, environment(home))
    store = Store.open(settings.url, secrets=settings.secrets, clock=Wall(), new_id=numbered())
    try:
        who = principal or settings.person
        change = Change("test", axes, reason="the person chose it")
        assert isinstance(await store.write(partial(deeds.steer, principal=who, change=change)), Choice)
    finally:
        await store.close()
