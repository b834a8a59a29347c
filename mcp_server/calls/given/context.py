"""What is a tool given? The ports of its call, and nothing else."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from mcp_server.model.ending import Ending
from mcp_server.model.ports.context import Belongings, Client, Desk, Person, Progress
from mcp_server.model.ports.files import Files
from mcp_server.model.ports.index import Index
from mcp_server.model.ports.memory import Memory
from mcp_server.model.ports.network import Network
from mcp_server.model.ports.processes import Processes
from mcp_server.model.ports.records import Records
from mcp_server.model.session import Session
from mcp_server.model.tool import Arguments, Demand


@dataclass(frozen=True, slots=True)
class ToolContext:
    session: Session
    demand: Demand
    files: Files
    processes: Processes
    network: Network
    belongings: Belongings
    progress: Progress
    client: Client
    person: Person
    desk: Desk
    records: Records
    index: Index
    memory: Memory
    call: Callable[[str, Arguments], Awaitable[Ending]]

    async def through(self, tool: str, arguments: Arguments) -> Ending:
        return await self.call(tool, arguments)
