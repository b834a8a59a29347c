"""What is left of a server that ran in a container? Nothing: whoever started the container removes it."""

import logging
from secrets import token_hex

import anyio

from mcp_server.guards.processes.commands import CommandHost
from mcp_server.guards.processes.upstream import UpstreamNotStarted, run_installer
from mcp_server.model.upstreams import StdioTarget
from mcp_server.policy.upstream_containers import LABEL, add_options, is_container

SECONDS = 20.0
log = logging.getLogger("menugate")


class ContainerStart:
    """One start of a server that may run in a container."""

    def __init__(self, host: CommandHost, target: StdioTarget) -> None:
        self.host, self.written, self.name = host, target, token_hex(8)
        self.target = StdioTarget(add_options(target.argv, self.name), target.env, target.folder)

    async def remove(self) -> None:
        """Remove its container, if it is still there. Killing `docker run` alone does not end what it started."""
        if not is_container(self.written.argv):
            return
        docker = self.written.argv[0]
        try:
            with anyio.CancelScope(shield=True):
                found = await self._run(docker, "ps", "-aq", "--filter", f"label={LABEL}={self.name}")
                if found:
                    await self._run(docker, "rm", "-f", *found)
        except UpstreamNotStarted as wrong:
            log.warning("the container of a server may still be there: %s", wrong)

    async def _run(self, *argv: str) -> list[str]:
        result = await run_installer(self.host, argv, self.written.env, self.written.folder, SECONDS)
        return result.out.decode(errors="replace").split()
