"""What may a tool do with the files of the workspace? The port that `guards` implements.

Every path is checked when it is opened, beneath the workspace, without following a link out of it. Methods block and
are called in a thread; they raise `Refusal` with the problem to show.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Protocol

from msgspec import Struct


class Stamp(Struct, frozen=True):
    """What a file looked like when it was read, so that a later change is noticed."""

    size: int
    mtime_ns: int
    digest: str
    """Empty if only part of the file was read."""

    def is_same_as(self, other: "Stamp") -> bool:
        """True if the file has not changed. If both digests are known, they decide, so merely touching a file is no
        change."""
        if self.digest and other.digest:
            return self.digest == other.digest
        return (self.size, self.mtime_ns) == (other.size, other.mtime_ns)


class Snapshot(Struct, frozen=True):
    """A file's bytes, the path where they were found (relative to the workspace), and its stamp."""

    path: str
    data: bytes
    stamp: Stamp
    mode: int
    whole: bool = True


class DirectoryEntry(Struct, frozen=True):
    path: str
    kind: str
    """`file`, `directory`, `link` or `other`."""
    size: int
    mtime_ns: int
    mode: int


class Search(Struct, frozen=True):
    """One search through the workspace, for `grep` and `glob`."""

    pattern: str
    path: str = ""
    globs: tuple[str, ...] = ()
    type: str | None = None
    ignore_case: bool = False
    multiline: bool = False
    before: int = 0
    after: int = 0
    only_matching: bool = False
    want: str = "files"
    """`files`, `content` or `count`."""
    limit: int = 250
    """0 means all."""
    offset: int = 0
    timeout: float = 30.0
    line_numbers: bool = True
    hides: Callable[[str], bool] | None = None
    """Gets a path relative to the workspace; returns True to leave the file out as if it did not exist."""


class SearchResult(Struct, frozen=True):
    lines: tuple[str, ...]
    total: int
    complete: bool
    """False if the total is a lower bound, because time or space ran out."""
    timed_out: bool = False
    engine: str = ""
    searched: int | None = None
    """How many files were searched, if known."""
    files: int = 0
    """How many files matched."""
    matches: int | None = None
    """How many lines matched (or places, if a match may span lines), if they were counted."""


class RehearsalOver(Exception):
    """The call was only tried, and has come to what it would change: it would succeed as far as can be told."""


LEFT_OUT_BY_RULE = "[Paths that a rule hides from this tool are left out. Only the user can change the rule.]"

OBEYED_FOLDERS = """
.git .hg .svn .jj .claude .codex .gemini .cursor .windsurf .vscode .idea .husky .devcontainer .ssh .gnupg
menugate.prompts
"""
OBEYED_FILES = """
.mcp.json .claude.json .gitconfig .gitmodules .gitattributes .envrc .direnvrc .ripgreprc .npmrc .yarnrc .yarnrc.yml
.profile .login .logout .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .zshrc .zshenv .zprofile .zlogin
.zlogout .kshrc .cshrc .tcshrc config.fish .inputrc .xprofile .xinitrc .xsessionrc .tmux.conf .screenrc .vimrc .gvimrc
.exrc .nvimrc .gdbinit .lldbinit .pythonrc .pypirc .netrc _netrc menugate.yaml
"""
"""What other programs run or obey without asking. A write there outlives the session, so the person is asked first.
That includes what a workspace tells menugate about itself; otherwise a model could remove the rules it must follow."""

SENSITIVE_FOLDERS = ".ssh .gnupg .aws .kube .docker .azure .password-store"
SENSITIVE_FILES = """
.env .env.* *.env .envrc .netrc _netrc .pgpass .my.cnf .pypirc .npmrc .git-credentials .htpasswd .dockercfg .boto .s3cfg
.vault-token credentials* *.credentials secrets.* secret.* id_rsa id_dsa id_ecdsa id_ed25519 *.pem *.key *.p12 *.pfx
*.jks *.keystore *.ppk *.kdbx *.ovpn kubeconfig service-account*.json service_account*.json *.tfvars *.tfstate
"""
"""What usually holds passwords or keys: the person is asked before a model sees it."""
HARMLESS = re.compile(
    r"\.(example|sample|template|tmpl|dist|schema)$|^(credentials|secrets?)[\w.-]*"
    r"\.(py|pyi|js|mjs|ts|tsx|jsx|go|rs|java|kt|rb|php|cs|c|h|cc|cpp|swift|scala|ex|md|rst|html|vue|svelte)$"
)
"""Examples without the values, and source code about secrets."""

REMEMBERED = 1024
"""Paths whose judgement is remembered: one call asks about the same path several times, and it depends on nothing
else."""
INSTALLED = frozenset({"node_modules", "site-packages", ".venv", "venv", ".tox", ".nox", "__pycache__"})
"""Folders of installed packages: what looks like a secret there came with them, and there is too much of it."""


@lru_cache(REMEMBERED)
def is_protected(path: str) -> bool:
    """True if writing there needs the person's approval. Looks only at the words of the path."""
    names = _split_names(path)
    return any(name in OBEYED_FOLDERS.split() for name in names) or any(
        name in OBEYED_FILES.split() for name in names[-1:]
    )


@lru_cache(REMEMBERED)
def is_secret(path: str) -> bool:
    """True if reading this file needs the person's approval. Looks only at the words of the path."""
    names = _split_names(path)
    return any(name in SENSITIVE_FOLDERS.split() for name in names) or any(
        not HARMLESS.search(name) and any(fnmatchcase(name, glob) for glob in SENSITIVE_FILES.split())
        for name in names[-1:]
    )


def is_installed(path: str) -> bool:
    """True if no command here is kept from what looks like a secret."""
    return not INSTALLED.isdisjoint(path.split("/"))


def _split_names(path: str) -> list[str]:
    """Split the path as a disk might read it that ignores case and invisible characters in names."""
    folded = "".join(sign for sign in unicodedata.normalize("NFKC", path) if unicodedata.category(sign) != "Cf")
    names: list[str] = []
    for name in folded.casefold().split("/"):
        if name == "..":
            names[-1:] = []
        elif clean := name.rstrip(" ."):
            names.append(clean)
    return names


class Files(Protocol):
    @property
    def root(self) -> str:
        """The workspace's absolute path, for messages."""
        ...

    def read(self, path: str, limit: int, start: int = 0) -> Snapshot:
        """Read at most `limit` bytes from byte `start` on; a negative start counts from the end. The stamp has a digest
        only if the whole file was read."""
        ...

    def get_info(self, path: str) -> DirectoryEntry: ...

    def list_folder(self, path: str, depth: int = 1) -> Sequence[DirectoryEntry]:
        """List a folder, sorted by path. Links are listed but not followed, and menugate's own state is left out."""
        ...

    def write(self, path: str, data: bytes, expect: Stamp | None, mode: int | None = None) -> DirectoryEntry:
        """Write a file in one step. `expect` is the stamp of the version to replace, or None for a new file."""
        ...

    def make_folder(self, path: str) -> DirectoryEntry: ...

    def move(self, source: str, destination: str, approved: Callable[[str], None] | None = None) -> DirectoryEntry:
        """Move a file, folder or link to a path where nothing exists yet.

        `approved` is called with the temporary path at which the file is held, and again with the new path. If it
        raises, nothing changes. The same is true of `trash` and `remove`.
        """
        ...

    def trash(self, path: str, approved: Callable[[str], None] | None = None) -> str:
        """Move a file or an empty folder to the trash; return its path there."""
        ...

    def remove(self, path: str, approved: Callable[[str], None] | None = None) -> None:
        """Delete a file, a link or an empty folder for good."""
        ...

    def make_scratch_folder(self, below: str = ".") -> AbstractContextManager[str]:
        """Make a temporary folder inside `below` and yield its path. Afterwards it is deleted with everything in it."""
        ...

    def grep(self, search: Search) -> SearchResult: ...

    def glob(self, search: Search) -> SearchResult: ...

    def remember(self, path: str, stamp: Stamp) -> None:
        """Remember that this session has seen the file with this stamp. The path is the real one, as `read` or `write`
        returned it."""
        ...

    def recall(self, path: str) -> Stamp | None: ...
