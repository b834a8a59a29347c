"""Which programs does a sandboxed command find, and what may the workspace make them start?"""

import os

from msgspec.structs import replace

from mcp_server.guards.sandbox.access import HostPaths
from mcp_server.model.processes import PROJECT_PROGRAMS, Command

READING_GIT = {
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "safe.bareRepository",
    "GIT_CONFIG_VALUE_0": "explicit",
    "GIT_CONFIG_KEY_1": "core.fsmonitor",
    "GIT_CONFIG_VALUE_1": "false",
}
"""A folder of the workspace may look like a repository whose settings name a program for `git diff` to start."""


def prepare_environment(command: Command, host: HostPaths, reads: bool) -> Command:
    """Put the project's own environment first on its PATH. A call that only reads runs nothing that the project
    brought along."""
    if not command.project_first:
        return command
    if reads:
        return replace(command, env={**READING_GIT, **command.env})
    folders = [str(host.workspace / name) for name in PROJECT_PROGRAMS if (host.workspace / name).is_dir()]
    search_path = os.pathsep.join((*folders, host.variables.get("PATH", os.defpath)))
    return replace(command, env={**command.env, "PATH": search_path}) if folders else command
