"""Whose runs does a command apply to, and how does it change the state that running servers share?"""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from mcp_server.cli.output import CliError, note
from mcp_server.cli.posture import load_choice_context
from mcp_server.views.posture import describe_other_account, find_principal, find_session

if TYPE_CHECKING:
    from mcp_server.calls.stops import StopAnswers
    from mcp_server.settings import Settings
    from mcp_server.state.engine.transaction import Transaction
    from mcp_server.state.stops import IssuedOrder

T = TypeVar("T")


class NoStateYet(CliError):
    """The state could not be written."""


def add_target_flags(one: argparse.ArgumentParser, default: str = "yours") -> None:
    """Add the options that choose runs. `default` describes whose runs are meant without them."""
    one.add_argument("--principal", metavar="NAME", help=f"only the runs of this principal (default: {default})")
    one.add_argument("--session", metavar="ID", help="only this session")


def find_target(arguments: argparse.Namespace, settings: "Settings") -> tuple[str, str | None]:
    """Find the principal, and the session if one is named; an unknown name is an error."""
    session = find_session(arguments.session, settings) if arguments.session is not None else None
    if arguments.principal in (None, settings.person):
        # Stopping everything must not need a configuration, so that it works despite faults in the files.
        return settings.person, session
    return find_principal(arguments.principal, settings, load_choice_context(arguments).limits), session


def write_to_state(settings: "Settings", work: "Callable[[Transaction], T]") -> T:
    """Run the change and return its result once it is on disk; running servers notice within half a second."""
    from mcp_server.calls.terminal import change_as_person

    return act_for_person(settings, lambda: change_as_person(settings, work))


def give_order_and_wait(
    settings: "Settings", work: "Callable[[Transaction], tuple[T, IssuedOrder]]"
) -> "tuple[T, StopAnswers]":
    """Run a change that gives servers an order, and return its result with their answers."""
    import asyncio

    from mcp_server.calls.stops import collect_stop_answers
    from mcp_server.calls.terminal import open_store_for_person
    from mcp_server.model.results import Refusal

    async def write_and_collect() -> "tuple[T, StopAnswers]":
        async with open_store_for_person(settings) as store:
            try:
                answer, given = await store.write(work)
            except Refusal as refused:
                raise NoStateYet(f"{refused.problem.message} {refused.problem.way_out}") from None
            return answer, await collect_stop_answers(store, given)

    return act_for_person(settings, lambda: asyncio.run(write_and_collect()))


def act_for_person(settings: "Settings", act: "Callable[[], T]") -> T:
    """Prepare the state's folders, act, and say in a sentence why the state could not be written."""
    from mcp_server.calls.terminal import refuse_inside_server
    from mcp_server.config.folders import prepare_folders
    from mcp_server.model.results import Code, Refusal
    from mcp_server.settings import BuildError
    from mcp_server.state.account import NO_KEY_FOLDER

    try:
        if settings.secrets is None:
            refuse_inside_server(settings)
            raise Refusal(NO_KEY_FOLDER)
        prepare_folders(settings)
        answer = act()
    except BuildError as wrong:
        raise NoStateYet(str(wrong)) from None
    except Refusal as refused:
        # A program that may not act for the user must not learn of another way to do it.
        kind = CliError if refused.problem.code is Code.BLOCKED else NoStateYet
        raise kind(f"{refused.problem.message} {refused.problem.way_out}") from None
    if other := describe_other_account(settings):
        note(other)
    return answer
