"""Does this line only make new paths, if what is there allows it? Reads it as steps that can be compared with that.

The judge of lines asks about `cp` and `mv`, because they may overwrite something, and about patterns whose names may be
options. This one lets them pass and lists what has to be looked at. What it does not follow to the end, it asks about.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mcp_server.model.path_steps import LOOKING, PathStep, StepKind
from mcp_server.model.shell import ShellCommand, ShellLine, ShellWord, WordRole
from mcp_server.model.text import quote_text
from tools.shell.compilers import COMPILERS
from tools.shell.conditions import join_conditions
from tools.shell.line_judge import LineJudge, get_widest
from tools.shell.program_arguments import MatchedNames, is_certain, is_pattern, read_argument, show_argument
from tools.shell.starters import STARTERS
from tools.shell.verdicts import CommandKind, NeedsApproval

OPTIONS: Mapping[str, re.Pattern[str]] = {
    "cp": re.compile("-[rRpavnfuPdT]+|--(?:recursive|archive|verbose|force|no-clobber|update|no-target-directory)"),
    "mv": re.compile("-[vnfuT]+|--(?:verbose|force|no-clobber|update|no-target-directory)"),
    "ln": re.compile("-[svfnT]+|--(?:symbolic|verbose|force|no-dereference|no-target-directory)"),
}
DOES: Mapping[str, StepKind] = {"cp": "copies", "mv": "moves", "ln": "links"}
MOVING = frozenset(("cd", "pushd", "popd"))
STARTING = frozenset((*STARTERS, "npx", "bundle", "uv", "poetry", "hatch", "pdm", "pipenv", "rye"))
"""What these start is judged by itself."""
WRITING = frozenset(("sed", "tee", "chmod", *COMPILERS))
"""They change only the files that they are seen to write."""
SIGNS = ("*", "?", "[")
LAST_NAME = re.compile(r"(?:[^*?\[{]*/)?[^/{]+")
"""A pattern whose folders are plain names."""


def find_steps(line: ShellLine, folder: str, left: str) -> tuple[PathStep, ...]:
    """Return nothing if the line needs approval whatever is there, or does nothing that has to be looked at."""
    judge = _StepJudge(folder, left)
    try:
        judge.judge_line(line)
    except NeedsApproval:
        return ()
    return tuple(judge.steps) if any(step.does in LOOKING for step in judge.steps) else ()


@dataclass
class _StepJudge(LineJudge):
    steps: list[PathStep] = field(default_factory=list[PathStep])
    within: int = 0
    """How many lines surround the current one."""
    started: int = 0
    """How many programs start the current one."""
    guards: bool = False
    """Nothing that follows the current command runs if it fails."""
    piped: bool = False
    """The current command runs in a process of its own."""

    def judge_line(self, line: ShellLine) -> CommandKind:
        if self.within:
            return self._judge_inner_line(line)
        if not line.listed or self.left:
            raise NeedsApproval("it is more than a list of commands in the workspace")
        if self.folder != ".":
            self.steps.append(PathStep("enters", self.folder))
        self.within += 1
        commands = list(join_conditions(line.commands))
        kinds: list[CommandKind] = []
        for at, command in enumerate(commands):
            self.guards = all(one.joined in ("&&", "|") for one in commands[at:-1])
            self.piped = "|" in (command.joined, commands[at - 1].joined if at else "")
            kinds.append(self._judge_listed(command))
        self.within -= 1
        return get_widest(kinds)

    def _judge_inner_line(self, line: ShellLine) -> CommandKind:
        """A line within the line is not followed: it may only read."""
        before, steps = (self.folder, self.left), len(self.steps)
        kind = super().judge_line(line)
        if kind is not CommandKind.READS or before != (self.folder, self.left) or len(self.steps) != steps:
            raise NeedsApproval("a line within it does more than read")
        return kind

    def _judge_listed(self, command: ShellCommand) -> CommandKind:
        before = len(self.steps)
        kind = self.judge_command(command)
        fed = any(word.role is WordRole.TARGET and "<<" in word.source[:3] for word in command.words)
        if kind is CommandKind.BUILDS and (fed or len(self.steps) == before):
            self._note_changes(command.words[0].source)
        return kind

    def _note_changes(self, program: str) -> None:
        self.steps.append(PathStep("changes", self.folder, (program,)))

    def read_word(self, word: ShellWord) -> str:
        argument = read_argument(word)
        if not is_pattern(argument) or argument == word.text or not word.text.startswith(SIGNS) or "{" in word.text:
            return argument
        self.steps.append(PathStep("matches", self.folder, patterns=(word.text,)))
        return MatchedNames(word.text)

    def judge_program(self, words: Sequence[str]) -> CommandKind:
        self.started += 1
        try:
            return self._judge_started(words[0], words[1:])
        finally:
            self.started -= 1

    def _judge_started(self, name: str, words: Sequence[str]) -> CommandKind:
        if name in MOVING:
            return self._enter(name, words)
        if name in OPTIONS and (step := read_making(name, words, self.folder)) is not None:
            self.steps.append(step)
            return CommandKind.BUILDS
        if name.rpartition("/")[2] in OPTIONS:
            raise NeedsApproval(f"{quote_text(name)} may overwrite something")
        if name == "tee" and any(map(is_pattern, words)):
            raise NeedsApproval("`tee` would write to every file that a pattern fits")
        kind = super().judge_program((name, *words))
        if kind is not CommandKind.BUILDS:
            return kind
        if name in ("mkdir", "touch"):
            self._note_new(name, words)
        elif name not in STARTING and name not in WRITING:
            self._note_changes(name)
        return kind

    def _enter(self, name: str, words: Sequence[str]) -> CommandKind:
        kind = self.judge_cd(words)
        if self.left or self.piped or self.started > 1 or self.within > 1:
            raise NeedsApproval(f"it is not known where {quote_text(name)} leads")
        self.steps.append(PathStep("enters", self.folder, guards=self.guards))
        return kind

    def _note_new(self, name: str, words: Sequence[str]) -> None:
        paths = tuple(word for word in words if not word.startswith("-"))
        if not all(map(is_certain, words)):
            self._note_changes(name)
            return
        does: StepKind = "makes folders" if name == "mkdir" else "makes files"
        whole = any(word.startswith("-") and "p" in word for word in words)
        self.steps.append(PathStep(does, self.folder, paths, whole=whole))

    def judge_writing(self, *paths: str) -> CommandKind:
        kind = super().judge_writing(*paths)
        named = tuple(path for path in paths if is_certain(path) and path != "/dev/null")
        self.steps.append(PathStep("makes files", self.folder, named))
        return kind


def read_making(name: str, words: Sequence[str], folder: str) -> PathStep | None:
    """Read the words of `cp`, `mv` or `ln -s`; None if there may be more to them."""
    options, operands = _split(name, words)
    letters = {letter for option in options for letter in _get_letters(option)}
    if name == "ln" and "s" not in letters:
        return None
    if name == "ln" and len(operands) == 1:
        operands = [*operands, "."]
    *sources, into = operands or [""]
    patterns = [word for word in sources if is_pattern(word)]
    paths = [word for word in sources if not is_pattern(word)]
    is_known = all(
        is_certain(word) and word and word == show_argument(word) and "{" not in word for word in (*paths, into)
    )
    if not sources or not is_known or not all(map(LAST_NAME.fullmatch, patterns)) or (patterns and name == "ln"):
        return None
    return PathStep(
        DOES[name],
        folder,
        tuple(paths),
        tuple(map(str, patterns)),
        into,
        whole=not letters.isdisjoint("rRa"),
        keeps=name != "ln" and "n" in letters and letters.isdisjoint("f"),
        exact="T" in letters,
    )


LONG: Mapping[str, str] = {
    "--recursive": "r",
    "--archive": "a",
    "--force": "f",
    "--no-clobber": "n",
    "--symbolic": "s",
    "--no-target-directory": "T",
}


def _get_letters(option: str) -> str:
    return LONG.get(option, "") if option.startswith("--") else option[1:]


def _split(name: str, words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the options and the other words."""
    options, operands = list[str](), list[str]()
    for at, word in enumerate(words):
        if word == "--":
            return options, [*operands, *words[at + 1 :]]
        if word.startswith("-"):
            if not is_certain(word) or not OPTIONS[name].fullmatch(word):
                raise NeedsApproval(f"{quote_text(show_argument(word))} is not known to make only new paths")
            options.append(word)
        else:
            operands.append(word)
    return options, operands
