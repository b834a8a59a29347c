"""Repositories that would make git run a program, and the marks by which it is seen that it did."""

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.clients.served import PATIENCE
from tests.tools.git.ground import CLEAN, git
from tests.yaml_text import load_yaml

TABLE: list[dict[str, Any]] = load_yaml(
    (Path(__file__).parents[2] / "tables" / "git_poison.yaml").read_text(encoding="utf-8")
)
SIGNED = b"""tree %b
parent %b
author A <a@example.org> 1700000000 +0000
committer A <a@example.org> 1700000000 +0000
gpgsig -----BEGIN PGP SIGNATURE-----
 iQEzBAABCAAdFiEE
 -----END PGP SIGNATURE-----

signed
"""


def template(folder: Path) -> None:
    """A small history with two branches, a merge, something staged and something not."""
    folder.mkdir()
    git(folder, "init", "--quiet")
    (folder / "a.txt").write_text("one\ntwo\nthree\n")
    (folder / "c.txt").write_text("c\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    (folder / "a.txt").write_text("one\n2\nthree\n")
    git(folder, "commit", "-q", "-a", "-m", "second")
    git(folder, "branch", "clashing", "HEAD~1")
    git(folder, "checkout", "-q", "-b", "other", "HEAD~1")
    (folder / "d.txt").write_text("d\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "on the other branch")
    git(folder, "checkout", "-q", "clashing")
    (folder / "a.txt").write_text("one\nII\nthree\n")
    git(folder, "commit", "-q", "-a", "-m", "clashing")
    git(folder, "checkout", "-q", "main")
    (folder / "a.txt").write_text("one\n2\n3\n")
    (folder / "c.txt").write_text("staged\n")
    git(folder, "add", "c.txt")


@dataclass
class Den:
    """Where the poisoned repositories lie, and where their canaries leave marks: inside and outside the workspace."""

    root: Path
    outside: Path
    canaries: Path = field(init=False)

    def __post_init__(self) -> None:
        self.canaries = self.root / "canaries"
        self.canaries.mkdir()
        (self.root / "marks").mkdir()
        self.outside.mkdir()
        template(self.root / "template")

    def canary(self, name: str) -> Path:
        """A program that leaves its marks and, as a filter, hands on what it is given."""
        path = self.canaries / name / "canary"
        if not path.exists():
            path.parent.mkdir()
            marks = "\n".join(f"echo >> '{place / name}' 2>/dev/null" for place in (self.outside, self.root / "marks"))
            path.write_text(f"#!/bin/sh\n{{ {marks}\n}} 2>/dev/null\n[ $# -gt 0 ] || exec cat\n")
            path.chmod(0o755)
            (path.parent / "pre-commit").symlink_to("canary")
        return path

    def poisoned(self, row: dict[str, Any], into: str) -> Path:
        folder = self.root / into
        if not folder.exists():
            shutil.copytree(self.root / "template", folder, symlinks=True)
        self.poison(folder, row)
        return folder

    def poison(self, folder: Path, row: dict[str, Any]) -> None:
        own = folder / ".git"
        if "submodule" in row:
            self._submodule(folder, row)
        if row.get("signed"):
            tree, head = (git(folder, "rev-parse", name).strip() for name in ("HEAD^{tree}", "HEAD"))
            sha = git(folder, "hash-object", "-t", "commit", "-w", "--stdin", data=SIGNED % (tree, head)).strip()
            git(folder, "update-ref", "HEAD", sha)
        if row.get("missing"):
            blob = git(folder, "rev-parse", "HEAD~1:c.txt").decode().strip()
            (own / "objects" / blob[:2] / blob[2:]).unlink()
        if "attributes" in row:
            (own / "info").mkdir(exist_ok=True)
            with (own / "info" / "attributes").open("a") as file:
                file.write(row["attributes"] + "\n")
        for hook in row.get("hooks", ()):
            shutil.copy(self.canary(row["name"]), own / "hooks" / hook)
        self._configure(own / "config.worktree", row, row.get("worktree_config", {}))
        if "included" in row:
            self._configure(own / "more", row, row["included"])
            git(folder, "config", "--file", str(own / "config"), "include.path", "more")
        self._configure(own / "config", row, row.get("config", {}))

    def _configure(self, file: Path, row: dict[str, Any], settings: dict[str, str]) -> None:
        for key, value in settings.items():
            said = value.replace("CANARIES", str(self.canary(row["name"]).parent))
            said = said.replace("CANARY", str(self.canary(row["name"]))).replace("WORKSPACE", str(self.root))
            git(self.root, "config", "--file", str(file), key, said)

    def _submodule(self, folder: Path, row: dict[str, Any]) -> None:
        git(folder, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(self.root / "template"), "sub")
        inner = folder / ".git" / "modules" / "sub"
        self._configure(inner / "config", row, row["submodule"])
        if "submodule_attributes" in row:
            (inner / "info").mkdir(exist_ok=True)
            (inner / "info" / "attributes").write_text(row["submodule_attributes"] + "\n")
        (folder / "sub" / "a.txt").write_text("one\n2\n4\n")

    def fired(self) -> set[str]:
        """Every canary that left a mark anywhere."""
        return self.escaped() | set(os.listdir(self.root / "marks"))

    def escaped(self) -> set[str]:
        """Those that left one outside the workspace."""
        return set(os.listdir(self.outside))

    def fire(self, folder: Path, row: dict[str, Any]) -> None:
        """Have git itself, left alone, do what runs the canary."""
        words = ["git", *row["fires"]]
        env = CLEAN | {"GIT_ALLOW_PROTOCOL": "file:ssh:ext", "TERM": "xterm"}
        env |= {} if row["fires"] == ["commit"] else {"GIT_EDITOR": "true"}
        out, theirs = os.openpty() if row.get("tty") else (None, subprocess.DEVNULL)
        told = row.get("told", "").encode()
        subprocess.run(
            words, cwd=folder, env=env, input=told, stdout=theirs, stderr=theirs, timeout=PATIENCE, check=False
        )
        if out is not None:
            os.close(out)
            os.close(theirs)


# In an order in which each finds something to do: reading, then changing.
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("git_status", {}),
    ("git_diff_unstaged", {}),
    ("git_diff_staged", {}),
    ("git_diff", {"target": "HEAD~1"}),
    ("git_log", {}),
    ("git_show", {"revision": "HEAD~1"}),
    ("git_branch_list", {"show_remote": True}),
    ("git_create_branch", {"branch_name": "made"}),
    ("git_add", {"files": ["a.txt"]}),
    ("git_reset", {}),
    ("git_add", {"files": ["a.txt", "c.txt"]}),
    ("git_commit", {"message": "third"}),
    ("git_checkout", {"branch_name": "other", "keep_changes": True}),
)
