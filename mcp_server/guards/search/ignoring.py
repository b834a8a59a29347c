"""Is this entry left out by a .gitignore? Rules of the folder it is in first, then of those above, as git reads them.

Our own reading, because the usual one turns each rule into an expression that a hostile .gitignore can keep busy for
hours. Entries are asked about on the way down, so that a rule never has to look at what is below a folder it left out.
"""

from dataclasses import dataclass

from mcp_server.guards.search.globs import BadGlob, compiled

FILE = ".gitignore"
MOST_BYTES = 1 << 20
MOST_RULES = 10_000


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    glob: str
    keeps: bool
    folders_only: bool


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The rules of one .gitignore, and of the folders above."""

    folder: str
    rules: tuple[IgnoreRule, ...]
    above: "IgnoreRules | None" = None

    def ignores(self, path: str, is_folder: bool) -> bool:
        """The path is below the folder of these rules, both relative to the workspace."""
        level: IgnoreRules | None = self
        while level is not None:
            inner = path if level.folder == "." else path[len(level.folder) + 1 :]
            for rule in level.rules:
                if (is_folder or not rule.folders_only) and compiled(rule.glob).match(inner):
                    return not rule.keeps
            level = level.above
        return False


NOTHING = IgnoreRules(".", ())


def read(text: str) -> tuple[IgnoreRule, ...]:
    """The rules of a .gitignore, last first, because the last that matches decides."""
    rules = [rule for line in text.split("\n")[:MOST_RULES] if (rule := _rule(line.removesuffix("\r"))) is not None]
    return tuple(reversed(rules))


def _rule(line: str) -> IgnoreRule | None:
    if line.startswith("#"):
        return None
    bare = line.rstrip(" ")
    if len(bare) < len(line) and bare.endswith("\\") and (len(bare) - len(bare.rstrip("\\"))) % 2:
        bare += " "
    keeps = bare.startswith("!")
    pattern = bare[keeps:]
    folders_only = pattern.endswith("/")
    pattern = pattern.removesuffix("/")
    if not pattern:
        return None
    glob = pattern.removeprefix("/") if "/" in pattern else f"**/{pattern}"
    try:
        compiled(glob)
    except BadGlob:
        return None
    return IgnoreRule(glob, keeps, folders_only)
