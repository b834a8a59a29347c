"""What does a comparison not show by lines? Where a link leads, and how much there is in a file that is no text."""

from collections.abc import Mapping, Sequence

from tools.git import escape
from tools.git.porcelain import FileChange
from tools.git.program import GitProgram

MOST_TARGET = 4096


async def read_change_details(git: GitProgram, changes: Sequence[FileChange]) -> Mapping[bytes, str]:
    """By path, as the end of a line; of what is no longer there nothing."""
    there = [one for one in changes if one.blob.strip("0") and not one.is_submodule]
    links = [one for one in there if one.is_link]
    wanted = [*links, *(one for one in there if one.added is None and not one.is_link)]
    if not wanted:
        return {}
    names = "".join(f"{one.blob}\n" for one in wanted).encode()
    lines = (await git.read("cat-file", "--batch-check=%(objectsize)", stdin=names)).split(b"\n")
    sizes = [int(line) if line.isdigit() else None for line in lines]
    found = {
        one.path: escape.format_count(size, "byte")
        for one, size in zip(wanted, sizes, strict=False)
        if size is not None
    }
    short = [(one, size) for one, size in zip(links, sizes, strict=False) if size is not None and size <= MOST_TARGET]
    return {**found, **(await _read_link_targets(git, short) if short else {})}


async def _read_link_targets(git: GitProgram, links: Sequence[tuple[FileChange, int]]) -> Mapping[bytes, str]:
    names = "".join(f"{one.blob}\n" for one, _ in links).encode()
    said = await git.read("cat-file", "--batch=%(objectsize)", stdin=names)
    found: dict[bytes, str] = {}
    start = 0
    for one, size in links:
        # Counted and not looked for: what stands in a link may be anything, line ends too.
        start += len(f"{size}\n")
        found[one.path] = f"link to {escape.to_visible_path(said[start : start + size])}"
        start += size + 1
    return found
