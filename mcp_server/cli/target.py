"""Where is what the person says written down? In the state of the workspace, beside any number of running servers."""

import argparse
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from mcp_server.cli.output import CliError
from mcp_server.cli.servers import judging_to_choose
from mcp_server.views.posture import principal_meant, session_meant, tell_alone

if TYPE_CHECKING:
    from mcp_server.calls.stops import StopAnswers
    from mcp_server.settings import Settings
    from mcp_server.state.engine.transaction import Transaction
    from mcp_server.state.stops import OrderGiven
    from mcp_server.state.store import Store

T = TypeVar("T")


class NoStateYet(CliError):
    """The person's word could not be written down."""


def add_whom(one: argparse.ArgumentParser, default: str = "yours") -> None:
    """`default`: whose runs are meant where neither is named."""
    one.add_argument("--principal", metavar="NAME", help=f"whose runs (default: {default})")
    one.add_argument("--session", metavar="ID", help="one session of yours alone, or of the principal's")


def whom(arguments: argparse.Namespace, settings: "Settings") -> tuple[str, str | None]:
    """The principal, and the one session where one is named. Nobody is told that a run stopped which is not there."""
    session = session_meant(arguments.session, settings) if arguments.session is not None else None
    if arguments.principal in (None, settings.person):
        # What stops everything needs no law: it works beside a file with faults, too.
        return settings.person, session
    return principal_meant(arguments.principal, settings, judging_to_choose(arguments, settings).law), session


def written(settings: "Settings", work: "Callable[[Transaction], T]") -> T:
    """What a deed answers, once it is durable; every server of this workspace hears of it within half a second."""
    return with_store(settings, lambda store: store.write(work))


def halted(settings: "Settings", work: "Callable[[Transaction], tuple[T, OrderGiven]]") -> "tuple[T, StopAnswers]":
    """The same for a deed that gives an order, with what came of it in the servers."""
    from mcp_server.calls.stops import hear
    from mcp_server.model.results import Refusal

    async def done(store: "Store") -> "tuple[T, StopAnswers]":
        try:
            answer, given = await store.write(work)
        except Refusal as refused:
            raise NoStateYet(f"{refused.problem.message} {refused.problem.way_out}") from None
        return answer, await hear(store, given)

    return with_store(settings, done)


def refuse_others(settings: "Settings") -> None:
    """Before anything else is said: what a server started learns of no question, and its attempt is on record."""
    from mcp_server.person import barring

    async def nothing(_: "Store") -> None:
        return

    if barring(settings):
        with_store(settings, nothing)


def refuse_started(settings: "Settings") -> None:
    """What a server started says nothing in the person's name, also where that cannot be put on record."""
    from mcp_server.person import barring

    if barred := barring(settings):
        raise CliError(f"{barred[1].problem.message} {barred[1].problem.way_out}")


def with_store(settings: "Settings", use: "Callable[[Store], Awaitable[T]]") -> T:
    import asyncio

    from mcp_server.compose import prepare_folders
    from mcp_server.config.load import BuildError
    from mcp_server.model.results import Code, Refusal
    from mcp_server.person import opened_for_person
    from mcp_server.state.account import HOMELESS

    async def done() -> T:
        async with opened_for_person(settings) as store:
            return await use(store)

    try:
        if settings.secrets is None:
            refuse_started(settings)
            raise Refusal(HOMELESS)
        prepare_folders(settings)
        answer = asyncio.run(done())
    except BuildError as wrong:
        raise NoStateYet(str(wrong)) from None
    except Refusal as refused:
        # Who may not speak for the person is not helped by another way of saying it.
        kind = CliError if refused.problem.code is Code.BLOCKED else NoStateYet
        raise kind(f"{refused.problem.message} {refused.problem.way_out}") from None
    tell_alone(settings)
    return answer
