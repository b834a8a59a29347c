"""`menugate serve` for tests that cannot wait: its patience and its clock as the arguments say, a tool that
waits, and one that fetches.

python -m tests.clients.tuned [--settle SECONDS] [--answer SECONDS] [--hours FILE] [--crossing FILE] [serve's own
arguments]
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from msgspec.structs import replace

from mcp_server import compose
from mcp_server.app import App
from mcp_server.calls.approvals import ApprovalGrant
from mcp_server.calls.ledger import LedgerRecorder
from mcp_server.calls.request import ResolvedCall
from mcp_server.cli import main as cli_main
from mcp_server.model.context import Context
from mcp_server.model.network import Request
from mcp_server.model.policy import Decision
from mcp_server.model.posture import Posture, Profile
from mcp_server.model.results import Done, Ending
from mcp_server.model.tool_packs import Pack
from mcp_server.model.tools import ACTING, REVIEWING, WARMUP, Arguments, Effect, Hints, RuleSubject, Tool
from mcp_server.settings import Settings
from mcp_server.state.engine.rows import Begun

HOUR_NS = 3600 * 10**9


@dataclass
class Late:
    """The clock on the wall, and the hours that a file says have passed since."""

    hours: Path

    def now_ns(self) -> int:
        return time.time_ns() + int(float(self.hours.read_text()) * HOUR_NS)


async def _wait(_ctx: Context, args: Any) -> Ending:
    """Says that it runs, and runs until it is told to end."""
    folder = anyio.Path(args["folder"])
    await (folder / "running").write_text("")
    while not await (folder / "end").exists():
        await anyio.sleep(0.01)
    return Done("Waited.")


WAIT = Tool(
    name="lab_wait",
    title="Wait",
    description="Wait until the file `end` is in the folder.",
    arguments={
        "type": "object",
        "properties": {"folder": {"type": "string"}},
        "required": ["folder"],
        "additionalProperties": False,
    },
    profile=Profile.RESTRICTED,
    effect=Effect.READ_LOCAL,
    hints=Hints(read_only=True, destructive=False, idempotent=True, open_world=False),
    stages=ACTING,
    run=_wait,
)


async def _fetch(ctx: Context, args: Any) -> Ending:
    response = await ctx.network.fetch(Request(args["url"], redirects=5))
    return Done(f"{response.status} {response.url}\n{response.body.decode()}")


FETCH = Tool(
    name="lab_fetch",
    title="Fetch",
    description="Fetch a page.",
    arguments={
        "type": "object",
        "properties": {"url": {"type": "string"}},
        "required": ["url"],
        "additionalProperties": False,
    },
    profile=Profile.RESTRICTED,
    effect=Effect.READ_REMOTE,
    hints=Hints(read_only=True, destructive=False, idempotent=True, open_world=True),
    stages=WARMUP | ACTING | REVIEWING,
    run=_fetch,
    subject=("url", RuleSubject.URL),
)
LAB = Pack("lab", tools=(WAIT, FETCH), menus=(str(Path(__file__).parent / "menus"),))


def tuned(**options: Any) -> list[str]:
    """The command for `served` and `pipe`."""
    flags = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    return [sys.executable, "-m", "tests.clients.tuned", *flags]


def _cross(path: Path) -> None:
    """Somebody makes this file after a call was decided on, while its row is written."""
    record = LedgerRecorder.record_intent

    async def record_and_cross(
        self: LedgerRecorder,
        call: ResolvedCall,
        posture: Posture,
        decision: Decision,
        yes: ApprovalGrant | None,
        leads: Arguments,
    ) -> Begun:
        begun = await record(self, call, posture, decision, yes, leads)
        if call.tool.name == "bash":
            await anyio.Path(path).write_text("somebody else's")
        return begun

    LedgerRecorder.record_intent = record_and_cross


def main() -> int:
    options = argparse.ArgumentParser(allow_abbrev=False)
    options.add_argument("--settle", type=float)
    options.add_argument("--answer", type=float)
    options.add_argument("--hours", type=Path)
    options.add_argument("--crossing", type=Path)
    chosen, rest = options.parse_known_args()
    build = compose.build_app

    def built(settings: Settings, packs: Sequence[Pack] = ()) -> App:
        given = {"settle_seconds": chosen.settle, "answer_seconds": chosen.answer}
        changed = replace(settings, **{name: value for name, value in given.items() if value is not None})
        return build(changed, packs, Late(chosen.hours) if chosen.hours else None)

    if chosen.crossing:
        _cross(chosen.crossing)
    # The command line asks `compose` for the house by this name, each time.
    compose.build_app = built
    return cli_main.main(["serve", *rest], packs=(LAB,))


if __name__ == "__main__":
    sys.exit(main())
