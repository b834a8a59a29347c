"""Which package does a server behind menugate come from, and which version of it is kept here?"""

import hashlib
import json
from enum import StrEnum
from pathlib import Path

from msgspec import Struct


class PackageSource(StrEnum):
    NPM = "npm"
    PYPI = "PyPI"
    IMAGE = "container image"
    ELSEWHERE = "an address or folder"


class Installer(StrEnum):
    """The program that fetches a package."""

    NPM = "npm"
    UV = "uv"
    PIP = "pip"


class PackageRequest(Struct, frozen=True):
    """What a command line with `npx`, `uvx` or `pipx run` asks for."""

    installer: Installer
    specs: tuple[str, ...]
    """What to install; the first is the server's own package."""
    name: str
    """The server's own package, without a version."""
    program: str = ""
    """Which of its programs is started; empty: the one that is called like the package, or its only one."""
    arguments: tuple[str, ...] = ()
    """The server's own."""
    options: tuple[str, ...] = ()
    """For the installer, such as another registry."""
    python: str = ""
    """The Python that was asked for."""

    @property
    def source(self) -> PackageSource:
        return PackageSource.NPM if self.installer is Installer.NPM else PackageSource.PYPI

    @property
    def digest(self) -> str:
        """The same as long as the same is asked for, whatever the server's own arguments are."""
        parts = [self.installer, self.specs, self.program, self.options, self.python]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


class LockedPackage(Struct, frozen=True):
    name: str
    version: str
    integrity: str
    """The hash of what was downloaded, as its registry writes it."""


class PackageLock(Struct, frozen=True):
    """What exactly was fetched: every package with its version and hash, and every file that is there now."""

    packages: tuple[LockedPackage, ...]
    """The server's own first."""
    folder: str
    """Where it is installed, below the mount's folder."""
    interpreter: str
    """The program that runs it, such as `node`; empty if it runs by itself."""
    program: str
    """What is started, below `folder`."""
    contents: str
    """The digest of all files."""
    stamp: str
    """The digest of their dates and sizes: while it is the same, nothing was written."""
    fetched_at: int
    """In nanoseconds."""
    scripts: tuple[str, ...] = ()
    """Packages with install scripts, none of which ran."""

    @property
    def version(self) -> str:
        return self.packages[0].version

    @property
    def digest(self) -> str:
        parts = [
            [[one.name, one.version, one.integrity] for one in self.packages],
            [self.interpreter, self.program, self.contents],
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


class PackageFacts(Struct, frozen=True):
    """What a registry says about a version. None of it is proved."""

    publisher: str = ""
    """The account that published it."""
    published_at: int = 0
    """In seconds."""
    attested: str = ""
    """What the registry's attestation says built it; empty if there is none."""
    repository: str = ""
    """Where the package says its source is."""
    withdrawn: str = ""
    """Why nobody should use it any more; empty if the registry names no reason."""
    unknown: str = ""
    """Why the registry said nothing."""


class MountPackage(Struct, frozen=True):
    """The package of a mount."""

    request: PackageRequest
    folder: Path
    """The mount's own folder in this account's state."""
    lock: PackageLock | None = None
    """None until it was fetched."""

    @property
    def argv(self) -> tuple[str, ...]:
        """What starts the server from here."""
        assert self.lock is not None
        program = str(self.folder / self.lock.folder / self.lock.program)
        before = (self.lock.interpreter,) if self.lock.interpreter else ()
        return (*before, program, *self.request.arguments)
