"""Where does one agent stand? Its mode, its stage, its run."""

from dataclasses import dataclass

from mcp_server.model.posture import Stage


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is calling, as far as it was proved. The OS user on stdio, the token's label over HTTP."""

    name: str


@dataclass(frozen=True, slots=True)
class Session:
    id: str
    principal: str
    mode: str | None = None
    stage: Stage | None = Stage.ACT
    """None stands for a stage nobody knows, which allows reading only."""
    run: str = ""
    steps: int = 0
    version: int = 0
    flat: bool = False
    """Its list shows the tools of every mode at once, so that no mode is the wrong one."""
    phase: str | None = None
    """Where the run is in the order of work it chose; None where it chose none, and nothing is narrowed."""
    pinned: bool = False
    """On an endpoint pinned to one mode: it can neither be left nor changed."""
