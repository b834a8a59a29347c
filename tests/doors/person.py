"""The person at another terminal, who changes what may be done while a server runs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from mcp_server.compose import Wall, numbered
from mcp_server.model.posture import Posture
from mcp_server.settings import read
from mcp_server.state import Store
from tests.doors.served import environment


async def choose(workspace: Path, home: Path, principal: str = "", **axes: Any) -> None:
    """Choose a posture: the values given, everything else as it was, or as it is where nobody ever chose."""
    settings = read({"workspace": str(workspace)}, environment(home))
    store = Store.open(settings.url, secrets=settings.secrets, clock=Wall(), new_id=numbered())
    try:
        who = principal or settings.person
        before = await store.posture(who) or Posture()
        after = await store.set_posture(who, replace(before, **axes), "the person chose it")
        assert isinstance(after, Posture)
    finally:
        await store.close()
