"""How does the system keyring keep a key of ours? Through its own program, which is ended if it does not answer.

A keyring may wait for a dialog that nobody sees, and a library would then wait in our process for ever. The key never
stands on a command line, where every account of the machine could read it.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct

from mcp_server.guards.sandbox.access import find_program
from mcp_server.model.secrets import Keyring, KeyringUnavailable
from mcp_server.model.text import escape_for_model, shorten_to_line

KEYRING_SECONDS = 10.0
SERVICE = "menugate"
LABEL = "menugate: the key to your stored secrets"
KEYCHAIN_PROGRAM = Path("/usr/bin/security")
NO_SUCH_ITEM = 44
"""The exit code of `security` if the keychain has no such item."""
MAX_REASON_CHARS = 120


@dataclass(frozen=True)
class KeyringProgram:
    """Runs the program of a keyring."""

    path: str
    variables: Mapping[str, str] = field(repr=False)
    """Its whole environment: how it finds the keyring of this session."""
    seconds: float = KEYRING_SECONDS

    def run(self, arguments: Sequence[str], text: str = "") -> tuple[int, str, str]:
        """Return the exit code and what it wrote. Whatever it started is ended with it."""
        try:
            child = subprocess.Popen(  # noqa: S603  # the operator's own program, without a shell
                [self.path, *arguments],
                env=dict(self.variables),
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as wrong:
            raise KeyringUnavailable(f"`{self.path}` cannot be started ({wrong.strerror})") from None
        try:
            out, err = child.communicate(text.encode(), self.seconds)
        except subprocess.TimeoutExpired:
            raise KeyringUnavailable(f"it did not answer within {self.seconds:g} seconds") from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            for stream in (child.stdin, child.stdout, child.stderr):
                if stream is not None:
                    with suppress(OSError):
                        stream.close()
        return child.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")


class SecretServiceKeyring(Struct, frozen=True):
    """The keyring of a Linux desktop, by `secret-tool` of libsecret."""

    program: KeyringProgram

    def load_key(self, id: str) -> str | None:
        code, out, err = self.program.run(("lookup", "application", SERVICE, "key", id))
        if code != 0 and err.strip():
            raise KeyringUnavailable(_describe_failure(err))
        return out.strip() or None if code == 0 else None

    def save_key(self, id: str, key: str) -> None:
        arguments = ("store", f"--label={LABEL}", "application", SERVICE, "key", id)
        code, _, err = self.program.run(arguments, key)
        if code != 0:
            raise KeyringUnavailable(_describe_failure(err))


class KeychainKeyring(Struct, frozen=True):
    """The keychain of macOS, by `security`."""

    program: KeyringProgram

    def load_key(self, id: str) -> str | None:
        code, out, err = self.program.run(("find-generic-password", "-s", SERVICE, "-a", id, "-w"))
        if code not in (0, NO_SUCH_ITEM):
            raise KeyringUnavailable(_describe_failure(err))
        return out.strip() or None if code == 0 else None

    def save_key(self, id: str, key: str) -> None:
        # `security -i` reads commands from stdin; as an argument, the key would be visible to every account.
        command = f'add-generic-password -U -s {SERVICE} -a {id} -l "{LABEL}" -w {key}\n'
        code, _, err = self.program.run(("-i",), command)
        if code != 0 or err.strip():
            raise KeyringUnavailable(_describe_failure(err))


def find_keyring(
    search_path: str, workspace: Path, variables: Mapping[str, str], seconds: float = KEYRING_SECONDS
) -> Keyring | None:
    """Return the keyring of this system; None if there is no program that reaches one."""
    if sys.platform == "darwin":
        return KeychainKeyring(KeyringProgram(str(KEYCHAIN_PROGRAM), variables, seconds))
    program = find_program("secret-tool", search_path, workspace)
    return SecretServiceKeyring(KeyringProgram(program, variables, seconds)) if program else None


def _describe_failure(said: str) -> str:
    text = shorten_to_line(escape_for_model(said, one_line=False), MAX_REASON_CHARS)
    return f"it says: {text}" if text else "its program failed without a reason"
