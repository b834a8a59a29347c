"""Where is a line by now, and may it write, build or load code there? The part of its judge that knows places."""

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mcp_server.model.protected import describe_change_risk
from mcp_server.model.shell import ShellWord, WordRole
from mcp_server.model.text import quote_text
from tools.shell.interpreters import INTERPRETERS, TEMPORARY
from tools.shell.line_scope import NO_SCOPE, REDIRECTION, LineScope
from tools.shell.own_modules import is_own_module
from tools.shell.program_arguments import is_certain, is_pattern, list_spellings, show_argument
from tools.shell.surroundings import Surroundings
from tools.shell.verdicts import CommandKind, NeedsApproval
from tools.shell.word_values import HERE

FROM_COMMAND = re.compile(r"\d*<\s*<\(")
"""A process substitution becomes the name of a pipe; the command in it is judged by itself."""
STREAMS = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr"))
INSIDE = re.compile(r"(?!.*(?:^|/)\.\.(?:/|$))(?:[^/~]|/tmp/).*", re.DOTALL)
"""Below the current folder, or in the temporary folder that belongs to the command alone."""
WHOLE_PATH = re.compile(r"/[\w.@+-][\w./@+-]*")
COMMON = re.compile(r"/(?:tmp|usr|lib\w*|bin|sbin|dev|nix)(?:/(?!.*\.\.)|$)")
"""Where nothing lies that a command could not have anyway."""
FILE_NAME = re.compile(r"[\w.@+/{},-]+")
SCOPED = frozenset(("npm", "pnpm", "yarn", "bun", "deno", "go", "composer", *INTERPRETERS))
"""What they are given may begin with `@`. Others read more arguments from a file that is named so."""
HIDDEN_MATCH = re.compile(r"(?:^|/)\.[^/]*[*?\[]")
WRITING = re.compile(r"1?(?:>>|>\||>)(?!&)")
BACK = re.compile(r"-|/tmp(?:/(?!.*\.\.)[\w./-]*)?")


@dataclass
class PlaceJudge:
    """Follows a line from folder to folder."""

    folder: str = "."
    """Where it is by now, below the workspace."""
    left: str = ""
    """What may have left the project: a `cd`, or the shell's own folder."""
    start: str = "."
    """Where it began, below the workspace."""
    left_from: str = ""
    """What had left the project before it began."""
    is_outside: bool = False
    """It has surely left the workspace."""
    is_elsewhere: bool = False
    """It may have left the workspace for a folder that nobody has looked up."""
    around: Surroundings | None = None
    """What is known about the place; None if nobody has looked."""
    written: set[str] = field(default_factory=set[str])
    """Temporary files that hold nothing but what the line says."""
    is_fed: bool = False
    """The current command reads what is in plain sight."""
    scope: LineScope | None = None
    """What the line says about its variables."""

    def __post_init__(self) -> None:
        self.start, self.left_from = self.folder, self.left

    def note_written(self, words: Iterable[ShellWord], plain: bool) -> None:
        """Remember a temporary file that the line itself has written."""
        if plain:
            targets = [word.text for word in words if word.role is WordRole.TARGET and WRITING.match(word.source)]
            self.written.update(posixpath.normpath(one) for one in targets if TEMPORARY.fullmatch(one))

    def require_project_folder(self, part: str) -> None:
        if self.left:
            raise NeedsApproval(f"{quote_text(part)} may lie outside the project after {self.left}")

    def require_workspace(self, program: str, words: Sequence[str]) -> None:
        """What is built or tested elsewhere is not the project."""
        for word in words:
            place = word.rpartition("=")[2]
            if word.startswith("@") and program not in SCOPED:
                raise NeedsApproval(f"{quote_text(word)} may be a file with more options")
            if not is_certain(place):
                continue
            if leads_out(self.folder, place) or self._is_elsewhere(place):
                raise NeedsApproval(f"{quote_text(word)} leads out of the workspace")
            self._require_ordinary_file(place)
        if self.is_outside or self.is_elsewhere or self.folder.split("/")[0] == "..":
            raise NeedsApproval(f"{quote_text(program)} may run outside the workspace after {self.left}")

    def _is_elsewhere(self, place: str) -> bool:
        """True of a whole path that is neither the workspace's, nor the system's, nor the command's own."""
        root = self.around.root if self.around else ""
        is_own = bool(root) and f"{place}/".startswith(f"{root}/")
        return WHOLE_PATH.fullmatch(place) is not None and not is_own and not COMMON.match(place)

    def _require_ordinary_file(self, place: str) -> None:
        """What a program is given, it may write: `pytest --junitxml=.envrc`."""
        for path in list_spellings(place) if FILE_NAME.fullmatch(place) else ():
            if risk := describe_change_risk(path, posixpath.normpath(posixpath.join(self.folder, path))):
                raise NeedsApproval(risk.rstrip("."))

    def judge_redirection(self, word: ShellWord) -> CommandKind:
        sign = REDIRECTION.match(word.source)
        if sign is None:
            raise NeedsApproval(f"the redirection {quote_text(word.source)} is not a plain one")
        if sign[1].startswith("<<"):
            return CommandKind.READS
        if sign[1] in (">&", "<&") and re.fullmatch(r"\d+-?|-", word.text):
            return CommandKind.READS
        if sign[1] == "<":
            # bash connects to the address in `/dev/tcp/HOST/PORT`.
            name = re.fullmatch(r"\"?\$\{?(\w+)\}?\"?", word.text)
            if name and (self.scope or NO_SCOPE).find(name[1]).is_name:
                return CommandKind.READS
            if word.text == "$()" and FROM_COMMAND.match(word.source):
                return CommandKind.READS
            if word.text.startswith(("$", "/dev/")) and word.text not in ("/dev/null", "/dev/stdin"):
                raise NeedsApproval(f"`<` reads {_describe_place(word, '<')}")
            return CommandKind.READS
        if word.known and word.text in STREAMS:
            return CommandKind.READS
        if not word.known or not re.fullmatch(r"[^*?\[{~]+", word.source):
            raise NeedsApproval(f"{quote_text(sign[0])} writes to {_describe_place(word, sign[0])}")
        return self.judge_writing(word.text)

    def judge_writing(self, *paths: str) -> CommandKind:
        spelled = [one for path in paths for one in (list_spellings(path) if is_certain(path) else [path])]
        for path in spelled:
            if path == "/dev/null":
                continue
            if path.startswith(HERE) and INSIDE.fullmatch(path):
                inside = path.removeprefix(HERE).lstrip("/") or "."
                if risk := describe_change_risk(inside, posixpath.normpath(posixpath.join(self.start, inside))):
                    raise NeedsApproval(risk.rstrip("."))
                continue
            if not (is_certain(path) or is_pattern(path)) or path.startswith("-") or HIDDEN_MATCH.search(path):
                raise NeedsApproval(f"menugate cannot tell which file {quote_text(show_argument(path))} is")
            if not INSIDE.fullmatch(path):
                raise NeedsApproval(f"{quote_text(path)} may lie outside the workspace")
            if not path.startswith("/"):
                self.require_project_folder(path)
            if risk := describe_change_risk(path, posixpath.normpath(posixpath.join(self.folder, path))):
                raise NeedsApproval(risk.rstrip("."))
            self.written.discard(posixpath.normpath(path))
        return CommandKind.BUILDS

    def judge_cd(self, words: Sequence[str]) -> CommandKind:
        if len(words) == 1 and words[0].startswith(HERE) and ".." not in words[0].split("/"):
            inside = words[0].removeprefix(HERE).lstrip("/")
            self.folder = posixpath.normpath(posixpath.join(self.start, inside or "."))
            self.left, self.is_outside, self.is_elsewhere = self.left_from, False, False
            return CommandKind.READS
        own = self._find_own_folder(words[0]) if len(words) == 1 and is_certain(words[0]) else None
        if own is not None:
            self.folder, self.left, self.is_outside, self.is_elsewhere = own, "", False, False
            return CommandKind.READS
        is_below = len(words) == 1 and is_certain(words[0]) and not words[0].startswith(("/", "-"))
        if not is_below or ".." in words[0].split("/"):
            self.left = quote_text(" ".join(("cd", *map(show_argument, words))))
            self.is_outside = len(words) == 1 and is_certain(words[0]) and leads_out(self.folder, words[0])
            # Back again is where it was before; the temporary folder is the command's own.
            self.is_elsewhere |= not is_below and not (len(words) == 1 and BACK.fullmatch(words[0]))
        else:
            self.folder = posixpath.normpath(posixpath.join(self.folder, words[0]))
        return CommandKind.READS

    def has_module(self, name: str) -> bool:
        return self.around is not None and not self.left and is_own_module(name, self.folder, self.around)

    def _find_own_folder(self, path: str) -> str | None:
        """Return a whole path as one below the workspace, if it is a folder there. `cd` to another one would fail."""
        root = self.around.root if self.around else ""
        if self.around is None or not root or not f"{path}/".startswith(f"{root}/") or ".." in path.split("/"):
            return None
        inside = posixpath.relpath(path, root)
        return inside if inside == "." or self.around.find_kind(inside) == "directory" else None


def leads_out(folder: str, path: str) -> bool:
    """True if a path with `..` climbs above the workspace, seen from this folder of it."""
    is_relative = ".." in path.split("/") and not path.startswith(("/", "-"))
    return is_relative and posixpath.normpath(posixpath.join(folder, path)).split("/")[0] == ".."


def _describe_place(word: ShellWord, sign: str) -> str:
    if word.known and word.text.startswith("/dev/"):
        return f"{quote_text(word.text)}, which is not a file"
    return "a file whose name is only known when the line runs"
