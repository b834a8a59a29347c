"""Which commands of git have to write `.git`, and which tool does the same?

Below `trusted` the sandbox keeps commands from writing there, so an approval would be useless. This is a service, not a
protection: a command that is missing here is asked about and then fails.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from msgspec import Struct

from mcp_server.model.posture import Profile
from mcp_server.model.text import format_list
from tools.shell.git_commands import GitCall

Judged: TypeAlias = Callable[[Sequence[str]], "tuple[str, ...] | Profile | None"]
"""The tools that do the same, the profile it takes if there are none, or None if nothing is written."""
ELSEWHERE = re.compile(r"(?:/var)?/tmp/|\$")
"""Outside the workspace, or possibly so: a command can write in its temporary folder."""
MAKING = frozenset(("init", "clone"))
SWITCHING = frozenset(("checkout", "switch"))
PLAIN = Profile.TRUSTED
CONFIGURING = Profile.UNRESTRICTED
"""Git's configuration decides what git runs, and is read-only at `trusted` as well."""


NO_TOOL = "No tool does that instead; the user can run the command at a terminal."
DETOURS = {
    "add": "`git_add` stages whole files, without these options.",
    "stage": "`git_add` stages whole files, without these options.",
    "commit": "`git_commit` makes a new commit of what is staged, without these options.",
    "reset": "`git_reset` unstages everything, and does nothing else.",
    "branch": "`git_create_branch` creates branches, and does nothing else.",
    "switch": "To switch branches, `git_checkout` needs the profile `trusted` as well.",
    "mv": "The command `mv` moves a file, and `git_add` stages what has become of it.",
    "rm": "The command `rm` deletes a file, and `git_add` stages the deletion.",
    "restore": (
        "To get a file back, run `git show HEAD:./FILE > FILE` for the version of the last commit, or "
        "`git show :./FILE > FILE` for the staged one."
    ),
}
"""What can be done instead if no tool does the same."""
DRY_RUNS = "Even a dry run of it locks git's index. `git_status` says what is staged and what is not."
ONLY_CREATES = "It creates the branch and does not switch to it: that needs the profile `trusted`."
STAGES_NOTHING = "`git_commit` stages nothing: stage the files with `git_add` first."
COMMITS_ALL = "Stage the files with `git_add` first. `git_commit` then commits everything that is staged."


class VainGitCall(Struct, frozen=True):
    takes: Profile
    """The lowest profile at which it can succeed."""
    because: str
    """Why it cannot below that; part of the refusal."""
    instead: tuple[str, ...] = ()
    """Tools that do the same, or that part of it which `detour` says."""
    detour: str = ""


def judge_git_calls(calls: Iterable[GitCall], folders: Iterable[str]) -> VainGitCall | None:
    """`folders` are those the line changes to. A repository that the line creates is not protected yet."""
    found = list(calls)
    places = [*folders, *(place for one in found for place in one.places)]
    if any(one.name in MAKING for one in found) or any(ELSEWHERE.match(place) for place in places):
        return None
    judged = [(one, said) for one in found if (said := _judge_call(one)) is not None]
    if not judged:
        return None
    takes = {said for _, said in judged if isinstance(said, Profile)}
    if takes:
        least = CONFIGURING if CONFIGURING in takes else PLAIN
        vain = [one for one, said in judged if said is least]
        detours = dict.fromkeys(_find_detour(one) for one in vain)
        return VainGitCall(least, _describe_vain(vain, least), detour=" ".join(detours))
    names = tuple(dict.fromkeys(name for _, said in judged if isinstance(said, tuple) for name in said))
    limits = dict.fromkeys(limit for one, _ in judged if (limit := _find_limit(one)))
    return VainGitCall(PLAIN, _describe_vain([one for one, _ in judged], PLAIN), names, " ".join(limits))


def _describe_vain(calls: Iterable[GitCall], takes: Profile) -> str:
    names = list(dict.fromkeys(f"git {one.name}" for one in calls))
    what = "change git's configuration" if takes is CONFIGURING else "write `.git`"
    has = "has" if len(names) == 1 else "have"
    return f"{format_list(names, 'and')} {has} to {what}, which is read-only in a command's sandbox"


def _find_detour(call: GitCall) -> str:
    name, words = call.name, call.rest
    if name in LOCKING and any(re.fullmatch(LOCKING[name], word) for word in _list_options(words)):
        return DRY_RUNS
    if (name == "checkout" and "--" in words) or name == "restore":
        return DETOURS["reset" if {"-S", "--staged"}.intersection(words) else "restore"]
    if name in SWITCHING and {"-b", "-B", "-c", "-C", "--"}.intersection(words):
        return NO_TOOL
    return (
        NO_TOOL
        if name == "rm" and "--cached" in words
        else DETOURS.get("switch" if name in SWITCHING else name, NO_TOOL)
    )


def _find_limit(call: GitCall) -> str:
    """What the tools that are named don't do."""
    if call.name == "commit":
        stages, paths = _stages_all(call.rest), _list_committed_paths(call.rest)
        return STAGES_NOTHING if stages else COMMITS_ALL if paths else ""
    return ONLY_CREATES if call.name in SWITCHING else ""


def _judge_call(call: GitCall) -> tuple[str, ...] | Profile | None:
    if list(call.rest) == ["-h"] or call.rest[:1] == ("--help",):
        return None
    return COMMANDS[call.name](call.rest) if call.name in COMMANDS else None


def judge_as_writing(_: Sequence[str]) -> Profile:
    return PLAIN


def judge_by_tool(name: str, *beyond: str) -> Judged:
    """The tool does it, except with these options."""
    more = re.compile("|".join(beyond))
    return lambda words: PLAIN if any(more.fullmatch(word) for word in _list_options(words)) else (name,)


def judge_unless_reading(*reading: str, nothing: bool = False) -> Judged:
    """It writes, unless the first word is one of these, or missing if `nothing`."""
    return lambda words: None if (words[0] in reading if words else nothing) else PLAIN


DRY = "-[a-zA-Z]*n[a-zA-Z]*|--dry-run"
LOCKING = {"commit": "--(?:dry-run|short|long|porcelain)", "rm": DRY, "mv": DRY}
"""Commands that lock the index for a dry run as well, with the options that ask for one."""


def judge_unless_dry(judged: Judged, shows: str = DRY) -> Judged:
    """It writes, unless one of these options makes it only report what it would do."""
    return lambda words: None if any(re.fullmatch(shows, word) for word in _list_options(words)) else judged(words)


MESSAGE = re.compile("-[a-zA-Z]*[mF]|--message|--file")
"""Options whose next word is a message, or where it is."""
UNCOMMITTED = "|".join(
    (
        r"-[a-zA-Z]*[cCpSztoi](?:[a-zA-Z0-9~^/@].*)?",
        r"--(?:amend|branch|null|allow-empty|allow-empty-message|interactive|patch)",
        r"--(?:gpg-sign|fixup|squash|reuse-message|reedit-message|author|date|template|only|include|trailer)(?:=.*)?",
        r"--pathspec.*",
    )
)
"""What `git_commit` cannot do."""


def _list_options(words: Sequence[str]) -> list[str]:
    """List the options before `--`, leaving out messages."""
    found: list[str] = []
    for at, word in enumerate(words):
        if word == "--":
            break
        if word.startswith("-") and not (at and MESSAGE.fullmatch(words[at - 1])):
            found.append(word)
    return found


def _list_names(words: Sequence[str]) -> list[str]:
    return [word for word in words if not word.startswith("-")]


def judge_commit(words: Sequence[str]) -> tuple[str, ...] | Profile:
    """The tool commits what is staged, as the user, with a message, and nothing else."""
    if any(re.fullmatch(f"{UNCOMMITTED}|{LOCKING['commit']}", word) for word in _list_options(words)):
        return PLAIN
    stages_first = _stages_all(words) or bool(_list_committed_paths(words))
    return ("git_add", "git_commit") if stages_first else ("git_commit",)


def _stages_all(words: Sequence[str]) -> bool:
    return any(re.fullmatch("-[^-mFCct]*a.*|--all", word) for word in _list_options(words))


def _list_committed_paths(words: Sequence[str]) -> list[str]:
    before = words[: words.index("--")] if "--" in words else words
    ahead = ["", *before]
    named = [word for at, word in enumerate(before) if not word.startswith("-") and not MESSAGE.fullmatch(ahead[at])]
    return [*named, *words[len(before) + 1 :]]


def judge_reset(words: Sequence[str]) -> tuple[str, ...] | Profile:
    return ("git_reset",) if {"-q", "--quiet", "--mixed", "HEAD", "--", "."}.issuperset(words) else PLAIN


def judge_restore(words: Sequence[str]) -> tuple[str, ...] | Profile:
    all_of_it = {"--staged", "-S", "--", ".", ":/"}.issuperset(words) and {"--staged", "-S"} & set(words)
    return ("git_reset",) if all_of_it else PLAIN


CREATING = frozenset(("-b", "-c", "--create", "-q", "--quiet", "--no-track"))


def judge_switch(words: Sequence[str]) -> tuple[str, ...] | Profile:
    """`git checkout -b x` is half done by a tool."""
    creates = {"-b", "-c", "--create"}.intersection(words) and CREATING.issuperset(_list_options(words))
    return ("git_create_branch",) if creates else PLAIN


LISTING = re.compile(
    r"-[arvlniq]+|--(?:list|all|remotes|show-current|verbose|quiet|ignore-case|omit-empty)|-n[0-9]+"
    r"|--(?:contains|no-contains|merged|no-merged|points-at|sort|format|column|no-column|color|no-color|abbrev)(?:=.*)?"
)
ASKING_FOR = re.compile(
    r"-[arvn]*l[arvn]*|-n[0-9]*|--(?:list|show-current|verify)|--(?:no-)?(?:contains|merged)(?:=.*)?|--points-at(?:=.*)?"
)
"""With one of these, a name is searched for, not created."""


def judge_branch(words: Sequence[str]) -> tuple[str, ...] | Profile | None:
    options = _list_options(words)
    if any(re.match("-u|--set-upstream|--unset-upstream|--edit-description", one) for one in options):
        return CONFIGURING
    if any(not LISTING.fullmatch(one) for one in options):
        return PLAIN
    looks = not _list_names(words) or any(
        ASKING_FOR.fullmatch(one) or one[:6] in ("--sort", "--form") for one in options
    )
    return None if looks or any(re.fullmatch("-[ar]+", one) for one in options) else ("git_create_branch",)


def judge_tag(words: Sequence[str]) -> Profile | None:
    options = _list_options(words)
    looks = not _list_names(words) or any(ASKING_FOR.fullmatch(one) or one in ("-v", "--verify") for one in options)
    return None if looks and all(LISTING.fullmatch(one) or ASKING_FOR.fullmatch(one) for one in options) else PLAIN


CHANGES_CONFIG = frozenset(
    ("set", "unset", "rename-section", "remove-section", "edit", "-e", "--edit", "--unset", "--unset-all", "--add")
) | {"--replace-all", "--rename-section", "--remove-section"}
READS_CONFIG = re.compile("--get(?:-.*)?|-l|--list|get|list")


def judge_config(words: Sequence[str]) -> Profile | None:
    others = re.compile("--(?:global|system|file|blob)(?:=.*)?|-f.*")
    if any(others.fullmatch(word) or READS_CONFIG.fullmatch(word) for word in words):
        return None
    return CONFIGURING if CHANGES_CONFIG & set(words) or len(_list_names(words)) > 1 else None


def judge_remote(words: Sequence[str]) -> Profile | None:
    done = next(iter(_list_names(words)), "show")
    if done in ("show", "get-url") or (done == "prune" and {"-n", "--dry-run"} & set(words)):
        return None
    return PLAIN if done in ("prune", "update", "set-head") else CONFIGURING


def judge_submodule(words: Sequence[str]) -> Profile | None:
    done = next(iter(_list_names(words)), "status")
    if done in ("status", "summary", "foreach"):
        return None
    return PLAIN if done == "update" and "--init" not in words else CONFIGURING


COMMANDS: dict[str, Judged] = {
    **dict.fromkeys(
        ("add", "stage"),
        judge_unless_dry(judge_by_tool("git_add", r"-[a-zA-Z]*[pieNf][a-zA-Z]*", "--(?!all$|verbose$|update$).+")),
    ),
    "commit": judge_commit,
    "reset": judge_reset,
    "restore": judge_restore,
    "branch": judge_branch,
    "tag": judge_tag,
    "config": judge_config,
    "remote": judge_remote,
    "submodule": judge_submodule,
    "stash": judge_unless_reading("list", "show"),
    "worktree": judge_unless_dry(judge_unless_reading("list")),
    "notes": judge_unless_reading("list", "show", "get-ref", nothing=True),
    "replace": lambda words: None if not _list_names(words) or {"-l", "--list"} & set(words) else PLAIN,
    "prune": judge_unless_dry(judge_as_writing),
    "bisect": judge_unless_reading("log", "view", "visualize", "help"),
    "reflog": judge_unless_dry(lambda words: PLAIN if words[:1] in (("expire",), ("delete",)) else None),
    "sparse-checkout": lambda words: CONFIGURING if words[:1] and words[0] not in ("list", "check-rules") else None,
    "symbolic-ref": lambda words: PLAIN if len(_list_names(words)) > 1 or {"-d", "--delete"} & set(words) else None,
    "hash-object": lambda words: PLAIN if "-w" in words else None,
    "apply": lambda words: PLAIN if {"--index", "--cached", "-3", "--3way"} & set(words) else None,
    "fetch": lambda words: None if "--dry-run" in words else PLAIN,
    **dict.fromkeys(("mv", "rm"), judge_as_writing),
    "pull": judge_unless_dry(judge_as_writing, "--dry-run"),
    **dict.fromkeys(("rebase", "am"), judge_unless_dry(judge_as_writing, "--show-current-patch(?:=.*)?")),
    **dict.fromkeys(("checkout", "switch"), judge_switch),
    **dict.fromkeys(("merge", "cherry-pick", "revert"), judge_as_writing),
    **dict.fromkeys(
        ("commit-tree", "write-tree", "read-tree", "mktree", "mktag", "update-ref", "update-index"), judge_as_writing
    ),
    **dict.fromkeys(("gc", "repack", "pack-refs", "filter-branch", "fast-import"), judge_as_writing),
}
