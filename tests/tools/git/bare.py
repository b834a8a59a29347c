"""A door to processes that holds nothing back: what does not happen behind it is stopped by git's options alone."""

import asyncio
import subprocess
from dataclasses import dataclass
from pathlib import Path

from mcp_server.model.posture import Profile
from mcp_server.model.processes import Command, CommandResult


@dataclass
class Bare:
    root: Path
    left_out: tuple[str, ...] = ()
    """Words that are taken out of every command, to see what they are good for."""
    sandbox: str = "none"
    profile: Profile = Profile.TRUSTED

    def find_program(self, program: str) -> str | None:
        return f"/usr/bin/{program}"

    async def run(self, command: Command) -> CommandResult:
        return await asyncio.to_thread(self._run, command)

    def _run(self, command: Command) -> CommandResult:
        words = [word for word in command.argv if word not in self.left_out]
        env = {"PATH": "/usr/bin:/bin", "HOME": str(self.root), **command.env}
        ran = subprocess.run(
            words, cwd=self.root / command.folder, env=env, input=command.stdin or b"", capture_output=True, check=False
        )
        return CommandResult(ran.returncode, ran.stdout, ran.stderr)
