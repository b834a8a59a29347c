"""How is a child sandboxed on macOS? By the system's `sandbox-exec`, with a supervisor that ends all its processes."""

import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.guards.sandbox.access import ChildAccess
from mcp_server.guards.sandbox.landlock import build_supervised_launch
from mcp_server.guards.sandbox.launch import Launch, LaunchSpec
from mcp_server.guards.sandbox.limits import build_resource_limits

NAME = "seatbelt"
PROGRAM = "/usr/bin/sandbox-exec"


class Seatbelt(Struct, frozen=True):
    name: str = NAME
    leads_out: bool = False
    mounts: bool = False

    def build_launch(self, spec: LaunchSpec) -> Launch:
        temporary_folder = tempfile.TemporaryDirectory(prefix="menugate-", ignore_cleanup_errors=True)
        command = (
            PROGRAM,
            "-p",
            render_seatbelt_profile(spec.access, str(Path(temporary_folder.name).resolve())),
            *spec.argv,
        )
        plan = {"folder": spec.access.folder, "bounds": build_resource_limits(spec.limits, spec.seconds)}
        return replace(
            build_supervised_launch(command, spec.terminal, plan, temporary_folder),
            variables={"TMPDIR": temporary_folder.name},
        )


def find_seatbelt() -> Seatbelt | None:
    return Seatbelt() if os.access(PROGRAM, os.X_OK) else None


def render_seatbelt_profile(access: ChildAccess, temporary_folder: str) -> str:
    """Render the profile in the sandbox's own language. Order matters: the last line that matches wins."""
    return "\n".join(_render_lines(access, temporary_folder))


def _render_lines(access: ChildAccess, temporary_folder: str) -> Iterator[str]:
    yield "(version 1)"
    yield "(allow default)"
    yield "(deny network*)"
    yield "(deny signal (target others))"
    yield "(deny mach-priv-task-port)"
    yield "(deny file-write*)"
    yield f"(deny file-read* {_render_subpaths((*access.emptied, *access.hidden_around))})"
    yield f"(allow file-read* {_render_subpaths((*access.lent, access.workspace, temporary_folder))})"
    writable = (temporary_folder, *access.caches, *((access.workspace,) if access.writable else access.opened))
    devices = '(literal "/dev/null") (literal "/dev/tty") (regex #"^/dev/tty")'
    yield f"(allow file-write* {devices} {_render_subpaths(writable)})"
    # Sorted, so that the line for an inner folder comes after that of the outer one.
    for path in sorted(filter(access.is_opened, (*access.held, *access.guarded))):
        if path in access.held:
            yield f"(allow file-write* {_render_subpaths((path,))})"
            yield f"(deny file-write* {_render_literals((path,))})"
        else:
            yield f"(deny file-write* {_render_subpaths((path,))})"
    if pinned := tuple(filter(access.is_opened, access.pinned)):
        yield f"(deny file-write* {_render_literals(pinned)})"
    if access.installed:
        yield f"(deny file-write* {_render_subpaths(access.installed)})"
    if access.hidden:
        yield f"(deny file-read* file-write* {_render_subpaths(access.hidden)})"
    if access.shown or access.own:
        yield f"(allow file-read* {_render_subpaths((*access.shown, *access.own))})"
    if access.own:
        yield f"(allow file-write* {_render_subpaths(access.own)})"


def _render_subpaths(paths: Iterable[str]) -> str:
    return " ".join(f"(subpath {json.dumps(path, ensure_ascii=False)})" for path in paths)


def _render_literals(paths: Iterable[str]) -> str:
    return " ".join(f"(literal {json.dumps(path, ensure_ascii=False)})" for path in paths)
