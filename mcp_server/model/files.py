"""What may a tool do with the files of the workspace? The port that `guards` implements.

Every path is checked where it is opened, beneath the workspace, without following a link out of it. Methods block and
are called in a thread; they raise `Refusal` with the problem to show.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a file looked like when it was read: enough to notice that it changed since."""

    size: int
    mtime_ns: int
    digest: str
    """Empty where only a part was read."""

    def is_same_as(self, other: "Stamp") -> bool:
        """Still the same? The content says, where both know it: a file that was merely touched has not changed."""
        if self.digest and other.digest:
            return self.digest == other.digest
        return (self.size, self.mtime_ns) == (other.size, other.mtime_ns)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A file's bytes, the path they were found at (relative to the workspace), and its stamp."""

    path: str
    data: bytes
    stamp: Stamp
    mode: int
    whole: bool = True


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    path: str
    kind: str
    """`file`, `directory`, `link` or `other`."""
    size: int
    mtime_ns: int
    mode: int


@dataclass(frozen=True, slots=True)
class Search:
    """One look through the workspace, as `grep` and `glob` mean it."""

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
    """0 for all."""
    offset: int = 0
    timeout: float = 30.0
    line_numbers: bool = True
    hides: Callable[[str], bool] | None = None
    """Files that are left out as if they were not there, by their path below the workspace."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    lines: tuple[str, ...]
    total: int
    complete: bool
    """False when the total is a lower bound, because time or room ran out."""
    timed_out: bool = False
    engine: str = ""
    searched: int | None = None
    """How many files were looked into, where that is known."""
    files: int = 0
    """How many files matched."""
    matches: int | None = None
    """How many lines matched (places, where a match may span lines), where they were counted."""


LEFT_OUT_BY_RULE = "[Left out: what a rule keeps from this tool. Only the user can change the rule.]"

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
"""What another program runs or obeys unasked: writing there outlives the session, so the person is asked first. What a
workspace says of itself to menugate is among it, or a model could take away the rules that it is to follow."""

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

INSTALLED = frozenset({"node_modules", "site-packages", ".venv", "venv", ".tox", ".nox", "__pycache__"})
"""Folders of other people's packages: what looks like a secret there came with them, and there is too much of it."""


def is_protected(path: str) -> bool:
    """Is this a place that is written only after the person said yes? Looks at the words of the path alone."""
    names = _split_names(path)
    return any(name in OBEYED_FOLDERS.split() for name in names) or any(
        name in OBEYED_FILES.split() for name in names[-1:]
    )


def is_secret(path: str) -> bool:
    """Is this a file that is read only after the person said yes? Looks at the words of the path alone."""
    names = _split_names(path)
    return any(name in SENSITIVE_FOLDERS.split() for name in names) or any(
        not HARMLESS.search(name) and any(fnmatchcase(name, glob) for glob in SENSITIVE_FILES.split())
        for name in names[-1:]
    )


def is_installed(path: str) -> bool:
    """Is this a place in which no command is kept from what looks like a secret?"""
    return not INSTALLED.isdisjoint(path.split("/"))


def _split_names(path: str) -> list[str]:
    """The path's parts as a disk might read them that minds neither case nor what cannot be seen in a name."""
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
        """At most so many bytes, from a byte on; a start below zero counts from the end. Only whole files have a
        digest in their stamp."""
        ...

    def get_info(self, path: str) -> DirectoryEntry: ...

    def list_folder(self, path: str, depth: int = 1) -> Sequence[DirectoryEntry]:
        """What is in a folder, sorted by path. Links are named and not followed, our own state is left out."""
        ...

    def write(self, path: str, data: bytes, expect: Stamp | None, mode: int | None = None) -> DirectoryEntry:
        """Put these bytes there in one step. `expect` is the stamp of what is being replaced, None for a new file."""
        ...

    def make_folder(self, path: str) -> DirectoryEntry: ...

    def move(self, source: str, destination: str, approved: Callable[[str], None] | None = None) -> DirectoryEntry:
        """Give a file, folder or link another path, at which there must be nothing yet.

        `approved` is called with the path at which the thing is held meanwhile, and again with the new one; where it
        raises, everything is as it was. The same goes for what is taken away."""
        ...

    def trash(self, path: str, approved: Callable[[str], None] | None = None) -> str:
        """Take a file or an empty folder away, to where it can be had back from; the place."""
        ...

    def remove(self, path: str, approved: Callable[[str], None] | None = None) -> None:
        """Take a file, a link or an empty folder away for good."""
        ...

    def make_scratch_folder(self, below: str = ".") -> AbstractContextManager[str]:
        """A folder in this one for as long as one works in it, its path; whatever comes to be in it goes too."""
        ...

    def grep(self, search: Search) -> SearchResult: ...

    def glob(self, search: Search) -> SearchResult: ...

    def remember(self, path: str, stamp: Stamp) -> None:
        """This session has seen the file as it is in this stamp."""
        ...

    def recall(self, path: str) -> Stamp | None: ...
