"""What do all four tools of the project have in common? They read, here, and may do so in every stage that reads."""

from collections.abc import Callable
from typing import Annotated, Any

from mcp_server.model.posture import Profile
from mcp_server.model.schema import Is, schema_of
from mcp_server.model.tool import ACTING, REVIEWING, WARMUP, Arguments, Demand, Effect, Hints, Run, Subject, Tool

MOST = 100
AnyPath = Annotated[str, "Only in this file or folder", Is(longest=4096)]
Globs = Annotated[str, "Only these files: `*.py`, `src/**/*.{ts,tsx}`, `*.c;!test_*`", Is(longest=1000)]
Most = Annotated[int, "At most so many", Is(default=20, at_least=1, at_most=MOST)]
Skipped = Annotated[int, "Skip so many", Is(default=0, at_least=0, at_most=1_000_000)]


def reading(
    name: str,
    words: tuple[str, str],
    arguments: type,
    run: Run,
    subject: tuple[str, Subject],
    demand: Callable[[Arguments], Demand] | None = None,
) -> Tool:
    """A tool of this pack; `words` are its title and its description."""
    options: dict[str, Any] = {"demand": demand} if demand else {}
    return Tool(
        name=name,
        title=words[0],
        description=words[1],
        arguments=schema_of(arguments),
        profile=Profile.RESTRICTED,
        effect=Effect.READ_LOCAL,
        hints=Hints(read_only=True, destructive=False, idempotent=True, open_world=False),
        stages=WARMUP | ACTING | REVIEWING,
        run=run,
        subject=subject,
        **options,
    )
