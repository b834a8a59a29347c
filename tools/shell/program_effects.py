"""What does a program do that the user has to approve? Says it in the words of questions and refusals.

One table for everybody who is told: questions, refusals, `menugate explain` and `menugate approvals show`. It explains
and decides nothing: a program that is missing here asks as well, because menugate does not know what it does.
"""

from collections.abc import Mapping, Sequence

from mcp_server.model.text import quote_text
from tools.shell.known_commands import BUILDS, READS
from tools.shell.program_arguments import is_certain, is_unknown, may_become_option, show_argument
from tools.shell.starters import STARTERS

BY_EFFECT: Mapping[str, str] = {
    "deletes files": "rm unlink",
    "deletes empty folders": "rmdir",
    "moves files, and may overwrite others": "mv rename",
    "copies files, and may overwrite others": "cp install",
    "creates links, and may replace files": "ln",
    "overwrites files or disks": "dd shred",
    "changes the size of files, and may cut off their ends": "truncate",
    "packs or unpacks files, and may overwrite others": "tar unzip zip 7z cpio ar",
    "packs files, and deletes the originals": "gzip bzip2 xz zstd gunzip bunzip2 unxz unzstd",
    "changes files": "patch ed ex",
    "changes who may use files": "chmod setfacl",
    "changes who owns files": "chown chgrp",
    "copies files, also to other machines, and may overwrite or delete some": "rsync rclone",
    "ends programs": "kill pkill killall",
    "contacts other machines": "curl wget ssh scp sftp ftp nc ncat netcat socat telnet ping dig nslookup",
    "runs containers, which may do anything": "docker podman nerdctl docker-compose podman-compose",
    "may change a cluster": "kubectl helm oc",
    "may change infrastructure": "terraform tofu pulumi ansible ansible-playbook aws gcloud az",
    "uses your account at a code host": "gh glab",
    "runs a command as another user": "sudo su doas pkexec runuser",
    "starts commands at another time": "crontab at batch",
    "may start, stop or change services": "systemctl service launchctl rc-service",
    "may stop the machine": "reboot shutdown halt poweroff",
    "may install or remove programs of the machine": "apt apt-get dpkg yum dnf rpm pacman apk brew port snap flatpak",
    "may change or read a database": "psql mysql mariadb sqlite3 mongo mongosh redis-cli",
    "runs code that menugate does not judge": "perl ruby php lua tclsh Rscript julia osascript pwsh ts-node tsx",
    "runs a package, which it may download": "npx bunx pipx uvx",
    "opens files or pages in other programs": "open xdg-open",
    "needs someone at a keyboard, and can start other programs": "vi vim nvim nano emacs less more man top htop",
    "starts another program": "nohup setsid watch parallel flock script busybox unshare chroot ionice chrt taskset",
    "takes a text as commands": "eval",
    "replaces the shell by another program": "exec",
    "sets commands that run later": "trap",
    "changes what later commands mean": "alias unalias enable hash shopt",
    "sets variables in ways that menugate does not judge": "mapfile readarray",
}
BY_SUBCOMMAND: Mapping[str, str] = {
    "git push": "sends commits to another repository",
    "git pull": "gets commits from another repository, and changes files",
    "git fetch": "gets commits from another repository",
    "git clone": "copies a repository, usually from another machine",
    "git init": "creates a repository",
    "git clean": "deletes files that git does not track",
    "git rm": "deletes files",
    "git mv": "moves files",
    "git add": "stages files",
    "git commit": "makes a commit",
    "git checkout": "switches branches or replaces files",
    "git switch": "switches branches",
    "git restore": "replaces files, so that their changes are lost",
    "git reset": "moves the branch or unstages files, and may discard changes",
    "git stash": "puts changes that are not committed aside",
    "git branch": "creates, moves or deletes branches",
    "git tag": "creates or deletes tags",
    "git merge": "joins another branch into this one",
    "git rebase": "rewrites commits",
    "git cherry-pick": "makes commits",
    "git revert": "makes commits",
    "git config": "may change git's settings",
    "git remote": "may change which repositories git contacts",
    "git worktree": "creates or deletes working folders",
    "git submodule": "may change other repositories",
    "git bisect": "switches to other commits",
    "yarn run": "runs a script or a program by its name",
    "npm publish": "publishes a package",
    "pnpm publish": "publishes a package",
    "yarn publish": "publishes a package",
    "cargo publish": "publishes a package",
    "npm uninstall": "removes packages",
    "pip uninstall": "removes packages",
    "pip3 uninstall": "removes packages",
    "cargo install": "installs programs outside the workspace",
    "go install": "installs programs outside the workspace",
    "npm exec": "runs a package, which it may download",
    "pnpm dlx": "runs a package, which it may download",
    "yarn dlx": "runs a package, which it may download",
    "find -delete": "deletes what it finds",
    "python -m http.server": "serves files over the network",
    "python3 -m http.server": "serves files over the network",
}
EFFECTS: Mapping[str, str] = {
    **{name: effect for effect, names in BY_EFFECT.items() for name in names.split()},
    **BY_SUBCOMMAND,
}
TESTS = frozenset(("[", "[["))
WITH_SUBCOMMANDS = frozenset("git npm pnpm yarn pip pip3 cargo go dotnet bundle composer uv poetry".split())  # noqa: SIM905
SCRIPT_ENDS = (".sh", ".bash", ".py", ".js", ".mjs", ".ts", ".rb", ".pl", ".php")


def describe_program(words: Sequence[str], left: str = "") -> str:
    """Say why a program with these words asks. `left`: what may have left the project before, if anything."""
    name, rest = words[0], words[1:]
    start = _get_start(words)
    blamed = _find_blamed(name, rest)
    if blamed is not None and _is_computed(rest[blamed]):
        program = quote_text(name) if name not in TESTS else f"the test {quote_text(name)}"
        return f"{quote_text(show_argument(rest[blamed]))} could become an option of {program}"
    marked = [f"{name} {word}" for word in rest if f"{name} {word}" in EFFECTS and word.startswith("-")]
    if effect := next((EFFECTS[one] for one in (start, *marked, name) if one in EFFECTS), ""):
        return f"{quote_text((marked or [start])[0])} {effect}"
    if blamed is not None:
        shown = quote_text(show_argument(rest[blamed]))
        return f"{quote_text(_get_start(words[: blamed + 1]))} with {shown} is not known to be harmless"
    if _reads_program(name, rest):
        return f"{quote_text(name)} runs what it reads from its input"
    if name.startswith("-"):
        return f"menugate does not know what the option {quote_text(name)} does"
    if "/" in name:
        return describe_file(name, left)
    if start == name and (name in READS or name in BUILDS or name in STARTERS):
        given = f"with {quote_text(' '.join(map(show_argument, rest)))}" if rest else "without words"
        return f"{quote_text(name)} {given} is not known to be harmless"
    return f"menugate does not know what {quote_text(start)} does"


def describe_file(name: str, left: str = "") -> str:
    """Say what is known of a program or script that the line names by its path."""
    if left or name.startswith(("/", "~")) or ".." in name.split("/"):
        return f"menugate does not know what {quote_text(name)} does"
    if name.endswith(SCRIPT_ENDS):
        return describe_script(name)
    return f"{quote_text(name)} is a program of the workspace, and menugate does not know what it does"


def describe_script(path: str) -> str:
    return f"menugate does not judge what is in {quote_text(path)}"


def _is_computed(word: str) -> bool:
    return may_become_option(word) or word != show_argument(word)


def _reads_program(name: str, rest: Sequence[str]) -> bool:
    """True for `python` and `python -`."""
    return name in ("python", "python3", "node", "bash", "sh", "dash") and tuple(rest) in ((), ("-",))


def _fits_find(words: Sequence[str]) -> bool:
    return STARTERS["find"](words) is not None


def _find_blamed(name: str, rest: Sequence[str]) -> int | None:
    """Find the word without which the rest of the command is known, or the option without its value."""
    known = [table[name] for table in (READS, BUILDS, {"find": _fits_find}) if name in table]
    # The value of an option would take the option's place: leave out options first.
    # Without `-m`, a module would pass for a file.
    first = 2 if rest[:1] == ("-m",) else 0
    places = sorted(range(first, len(rest)), key=lambda at: rest[at][:1] != "-")
    for length in (1, 2):
        for at in places if length == 1 else [at for at in places if _is_option(rest[at])]:
            left = (*rest[:at], *rest[at + length :])
            if any(fits(left) for fits in known) and (left or length == 1):
                return at
    return None


def _is_option(word: str) -> bool:
    return is_certain(word) and not is_unknown(word) and word.startswith("-") and len(word) > 1


def _get_start(words: Sequence[str]) -> str:
    """Return the program, with its subcommand or module if it has one."""
    if words[1:2] == ("-m",):
        return " ".join(map(show_argument, words[:3]))
    has_more = words[0] in WITH_SUBCOMMANDS and words[1:2] and words[1][:1] != "-"
    return " ".join(map(show_argument, words[:2])) if has_more else words[0]
