"""How is a child sandboxed on macOS? With the system's `sandbox-exec`, and a supervisor that ends all its processes."""

import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from mcp_server.guards.sandbox.access import ChildAccess
from mcp_server.guards.sandbox.landlock import build_supervised_launch
from mcp_server.guards.sandbox.launch import Launch, LaunchSpec
from mcp_server.guards.sandbox.limits import build_resource_limits

NAME = "seatbelt"
PROGRAM = "/usr/bin/sandbox-exec"


@dataclass(frozen=True)
class Seatbelt:
    name: str = NAME
    leads_out: bool = False

    def build_launch(self, start: LaunchSpec) -> Launch:
        private = tempfile.TemporaryDirectory(prefix="menugate-", ignore_cleanup_errors=True)
        words = (PROGRAM, "-p", render_seatbelt_profile(start.reach, str(Path(private.name).resolve())), *start.argv)
        walls = {"folder": start.reach.folder, "bounds": build_resource_limits(start.limits, start.seconds)}
        return replace(
            build_supervised_launch(words, start.terminal, walls, private), variables={"TMPDIR": private.name}
        )


def find_seatbelt() -> Seatbelt | None:
    return Seatbelt() if os.access(PROGRAM, os.X_OK) else None


def render_seatbelt_profile(reach: ChildAccess, private: str) -> str:
    """Render the profile in the sandbox's own language. If several lines match, the last one counts."""
    return "\n".join(_render_lines(reach, private))


def _render_lines(reach: ChildAccess, private: str) -> Iterator[str]:
    yield "(version 1)"
    yield "(allow default)"
    yield "(deny network*)"
    yield "(deny signal (target others))"
    yield "(deny mach-priv-task-port)"
    yield "(deny file-write*)"
    yield f"(deny file-read* {_render_subpaths((*reach.emptied, *reach.hidden_above_workspace))})"
    yield f"(allow file-read* {_render_subpaths((*reach.lent, reach.workspace, private))})"
    written = (private, *reach.caches, *((reach.workspace,) if reach.writable else ()))
    devices = '(literal "/dev/null") (literal "/dev/tty") (regex #"^/dev/tty")'
    yield f"(allow file-write* {devices} {_render_subpaths(written)})"
    # Of nested places the outer one first: the inner one needs the last line.
    for one in sorted((*reach.held, *reach.guarded)) if reach.writable else ():
        if one in reach.held:
            yield f"(allow file-write* {_render_subpaths((one,))})"
            yield f"(deny file-write* {_render_literals((one,))})"
        else:
            yield f"(deny file-write* {_render_subpaths((one,))})"
    if reach.writable and reach.pinned:
        yield f"(deny file-write* {_render_literals(reach.pinned)})"
    if reach.installed:
        yield f"(deny file-write* {_render_subpaths(reach.installed)})"
    if reach.hidden_elsewhere:
        yield f"(deny file-read* file-write* {_render_subpaths(reach.hidden_elsewhere)})"


def _render_subpaths(paths: Iterable[str]) -> str:
    return " ".join(f"(subpath {json.dumps(path, ensure_ascii=False)})" for path in paths)


def _render_literals(paths: Iterable[str]) -> str:
    return " ".join(f"(literal {json.dumps(path, ensure_ascii=False)})" for path in paths)
