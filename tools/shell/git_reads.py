"""Which commands of git only read, and with which options?"""

import re
from collections.abc import Sequence
from itertools import takewhile

from tools.shell.allowed_words import allow_exactly, allow_first_word, allow_only, has_no_words, require_word
from tools.shell.program_arguments import Fits, is_pattern

AHEAD_OF_GIT = frozenset(("--no-pager", "-P", "--no-optional-locks"))
"""Options of git itself that run nothing. `-C` is allowed as well."""


def allow_git(table: dict[str, Fits]) -> Fits:
    def fits(words: Sequence[str]) -> bool:
        at = 0
        while at < len(words) and (words[at] in AHEAD_OF_GIT or words[at] == "-C"):
            folder = next(iter(words[at + 1 : at + 2]), "")
            if words[at] == "-C" and (folder.startswith("-") or is_pattern(folder)):
                return False
            at += 2 if words[at] == "-C" else 1
        return list(words[at:]) == ["--version"] or allow_first_word(table)(words[at:])

    return fits


LISTS = (
    "-n[0-9]*|--(?:list|all|remotes|show-current|verbose|ignore-case|omit-empty|no-color|no-column)",
    # With the value as a word of its own, `--sort` would swallow the option that makes it a list.
    "--(?:sort|format)=.*|--(?:points-at|(?:no-)?contains|(?:no-)?merged|abbrev)(?:=.*)?",
)
LOOKED_FOR = re.compile("-l|--list|-n[0-9]*|--(?:points-at|(?:no-)?contains|(?:no-)?merged)(?:=.*)?")
"""With one of these, a name is searched for; without, it is created."""


def allow_listing_names(*short: str) -> Fits:
    known = allow_only(*short, *LISTS)
    return lambda words: (
        known(words)
        and (not [one for one in words if one[:1] != "-"] or any(LOOKED_FOR.fullmatch(one) for one in words))
    )


SETTINGS = allow_only(
    "-l|-z|--(?:list|get|get-all|get-regexp|name-only|show-origin|show-scope|null|global|system|local|worktree|includes)",
    "--(?:bool|int|path|type=.*|default=.*)",
)


def is_reading_settings(words: Sequence[str]) -> bool:
    """A single name is read; a word after the name would be its new value."""
    ahead = list(takewhile(lambda word: word.startswith("-"), words))
    names = words[len(ahead) :]
    if not SETTINGS(words) or any(word.startswith("-") or is_pattern(word) for word in names):
        return False
    return bool(ASKS_SETTINGS.intersection(ahead)) or (len(names) == 1 and "." in names[0])


ASKS_SETTINGS = frozenset(("-l", "--list", "--get", "--get-all", "--get-regexp"))
URLS = allow_only("--(?:all|push)")
WORKTREES = frozenset(("-v", "-z", "--verbose", "--porcelain"))
CLEANS = allow_only("-[ndxXfq]+|--dry-run")
ADDS = allow_only("-[nAuvf]+|--(?:dry-run|all|update|verbose|force|ignore-errors|ignore-missing)")
DRY_ADD = re.compile("-[Auvf]*n[nAuvf]*|--dry-run")
PATCHES = allow_only(
    r"-p\d+|-[vRC]\d*|--(?:check|stat|numstat|summary|verbose|reverse|recount|index|cached|whitespace=.*)"
)
SUBMODULES = allow_only("--(?:recursive|cached|quiet)|--")
DRY = re.compile("-[dxXfq]*n[ndxXfq]*|--dry-run")
SHOWN = (
    r"-[0-9]+|-[npswbzvqra]+|-u(?:no|normal|all)?|-n[0-9]+|-U[0-9]+|-[MC][0-9%]*|-L.*|-[SG].*|--",
    r"--(?:oneline|stat|shortstat|numstat|dirstat|summary|name-only|name-status|cached|staged|graph|all|branches|tags)",
    r"--(?:remotes|decorate|follow|no-merges|merges|first-parent|reverse|patch|no-patch|no-color|word-diff|raw|check)",
    r"--(?:short|branch|porcelain|ignored|abbrev-commit|full-index|date-order|topo-order|minimal|patience|histogram)",
    r"--(?:since|until|after|before|author|committer|grep|format|pretty|date|max-count|skip|abbrev|unified|diff-filter)=.*",
    r"--(?:show-current|list|contains|merged|no-merged|verbose|others|exclude-standard|modified|deleted|unmerged|stage)",
    r"--(?:show-toplevel|abbrev-ref|verify|is-inside-work-tree|git-dir|always|long|porcelain=v[12]|line-porcelain)",
)
GIT_SHOWS = allow_only(*SHOWN)
REVISIONS = "--(?:count|objects|left-right|left-only|right-only|no-walk|(?:max|min)-parents=[0-9]+)"
PATCHES_SHOWN = "--(?:stdout|no-stat|no-signature|signoff|root|keep-subject|numbered|no-numbered)|-[0-9]+|-[kNn]"
TABLE: dict[str, Fits] = {
    **dict.fromkeys(("status", "log", "show", "rev-parse", "describe", "blame"), GIT_SHOWS),
    "diff": allow_only(*SHOWN, "--no-index"),
    "ls-files": allow_only(*SHOWN, "-[cdmosktuvz]+"),
    # Without `--stdout`, it writes files.
    "format-patch": require_word(allow_only(PATCHES_SHOWN), "--stdout"),
    "shortlog": lambda words: GIT_SHOWS([one for one in words if not re.fullmatch("-[sne]+", one)]),
    **dict.fromkeys(("ls-tree", "cat-file", "merge-base"), GIT_SHOWS),
    "rev-list": allow_only(*SHOWN, REVISIONS),
    # Other first words change the reflog.
    "reflog": lambda words: not words or (words[0] == "show" and GIT_SHOWS(words[1:])),
    "branch": allow_listing_names("-[arvli]+"),
    # Its `-v` starts a program, and its `-a` creates a tag.
    "tag": allow_listing_names("-[li]+"),
    "remote": lambda words: list(words) in ([], ["-v"]) or (words[0] == "get-url" and URLS(words[1:])),
    "stash": lambda words: words[:1] in (("list",), ("show",)) and GIT_SHOWS(words[1:]),
    "worktree": lambda words: words[:1] == ("list",) and all(one in WORKTREES for one in words[1:]),
    "config": is_reading_settings,
    "clean": lambda words: CLEANS(words) and any(DRY.fullmatch(one) for one in words),
    # `-O` would start a pager.
    "grep": allow_only(
        r"-[invwcalLhHoqzEFGPIWp0-9]+|-[ABCme].*|--(?:and|or|not)?",
        "--(?:cached|untracked|no-index|count|name-only|files-with-matches|files-without-match|heading|break)",
        "--(?:ignore-case|word-regexp|line-number|column|fixed-strings|extended-regexp|perl-regexp|all-match)",
        "--(?:invert-match|only-matching|show-function|function-context|no-color|max-depth=.*|(?:no-)?exclude-standard)",
    ),
    "for-each-ref": allow_only(
        "--(?:count|sort|format|points-at|(?:no-)?merged|(?:no-)?contains)(?:=.*)?", "--ignore-case"
    ),
    "show-ref": allow_only(
        "-[sdq]+|--", "--(?:heads|branches|tags|head|dereference|verify|quiet|(?:hash|abbrev)(?:=.*)?)"
    ),
    "check-ignore": allow_only("-[qvnz]+|--", "--(?:quiet|verbose|non-matching|no-index|stdin)"),
    **dict.fromkeys(("name-rev", "cherry", "range-diff", "diff-tree", "diff-index", "diff-files"), GIT_SHOWS),
    **dict.fromkeys(("whatchanged", "show-branch"), GIT_SHOWS),
    "count-objects": allow_only("-v|-H|-vH"),
    "check-attr": allow_only("-a|--all|--"),
    "submodule": lambda words: not words or (words[0] == "status" and SUBMODULES(words[1:])),
    "notes": lambda words: words[:1] in (("list",), ("show",)) and not any(one[:1] == "-" for one in words),
    "bisect": lambda words: list(words) == ["log"],
    "symbolic-ref": allow_exactly("--short|-q|HEAD", 1, 3),
    # With the option that only says what it would do.
    "add": lambda words: ADDS(words) and any(DRY_ADD.fullmatch(one) for one in words),
    "apply": require_word(PATCHES, "--check", "--stat", "--numstat", "--summary"),
    "version": has_no_words,
    "help": lambda words: not words or (len(words) == 1 and words[0] in ("-a", "-g")),
    "var": lambda words: list(words) == ["-l"],
}
is_reading_with_git = allow_git(TABLE)
