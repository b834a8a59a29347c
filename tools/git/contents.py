"""What does a comparison not show as lines? The targets of links and the sizes of binary files."""

from collections.abc import Mapping, Sequence

from tools.git import escape
from tools.git.porcelain import FileChange
from tools.git.program import GitProgram

MAX_TARGET_BYTES = 4096


async def read_change_details(git: GitProgram, changes: Sequence[FileChange]) -> Mapping[bytes, str]:
    """Describe, by path, the links and binary files among the changes; deleted files are left out."""
    present = [change for change in changes if change.blob.strip("0") and not change.is_submodule]
    links = [change for change in present if change.is_link]
    binaries = [change for change in present if change.added is None and not change.is_link]
    if not links and not binaries:
        return {}
    names = "".join(f"{change.blob}\n" for change in [*links, *binaries]).encode()
    lines = (await git.read("cat-file", "--batch-check=%(objectsize)", stdin=names)).split(b"\n")
    sizes = [(change, int(line)) for change, line in zip([*links, *binaries], lines, strict=False) if line.isdigit()]
    details = {change.path: escape.format_count(size, "byte") for change, size in sizes}
    short_links = [(change, size) for change, size in sizes if change.is_link and size <= MAX_TARGET_BYTES]
    return {**details, **(await _read_link_targets(git, short_links) if short_links else {})}


async def _read_link_targets(git: GitProgram, links: Sequence[tuple[FileChange, int]]) -> Mapping[bytes, str]:
    names = "".join(f"{change.blob}\n" for change, _ in links).encode()
    output = await git.read("cat-file", "--batch=%(objectsize)", stdin=names)
    targets: dict[bytes, str] = {}
    start = 0
    for change, size in links:
        # Skip by size, not to the next line end: a target may contain one.
        start += len(f"{size}\n")
        targets[change.path] = f"link to {escape.to_visible_path(output[start : start + size])}"
        start += size + 1
    return targets
