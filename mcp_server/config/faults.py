"""What is wrong with a file, and how is it said so that it can be put right?"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mcp_server.model.text import find_nearest_name

SHOWN_PER_FILE = 50
"""A file that is wrong from top to bottom is not made clearer by a thousand lines."""


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """Where something stands: `key` is its path inside the file, such as `rules.deny[2]`."""

    file: str
    line: int = 0
    column: int = 0
    key: str = ""

    @property
    def source(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True, order=True)
class ConfigFault:
    file: str
    line: int
    key: str
    message: str
    nearest: str = ""
    """The right name that comes nearest to the wrong one, where there is one."""
    column: int = 0

    def __str__(self) -> str:
        where = SourceLocation(self.file, self.line).source
        key = f" {self.key}:" if self.key else ""
        hint = f" (did you mean `{self.nearest}`?)" if self.nearest else ""
        return f"{where}:{key} {self.message}{hint}"


@dataclass(frozen=True, slots=True)
class ConfigFaults:
    """Everything that was found wrong, in the order of the files and their lines."""

    faults: tuple[ConfigFault, ...]

    def __iter__(self) -> Iterator[ConfigFault]:
        return iter(self.faults)

    def __len__(self) -> int:
        return len(self.faults)

    def __str__(self) -> str:
        return "\n".join(str(fault) for fault in self.faults)


class FaultCollector:
    """Collects faults while files are read, so that a person gets all of them at once."""

    def __init__(self) -> None:
        self._found: list[ConfigFault] = []
        self._per_file: dict[str, int] = {}

    def add(self, place: SourceLocation, message: str, wrong: str = "", names: Iterable[str] = ()) -> None:
        """`wrong` is the name that is not known, `names` are those that are."""
        count = self._per_file[place.file] = self._per_file.get(place.file, 0) + 1
        if count > SHOWN_PER_FILE + 1:
            return
        if count > SHOWN_PER_FILE:
            fault = ConfigFault(place.file, place.line, "", "there are more faults from here on; put these right first")
        else:
            near = (find_nearest_name(wrong, names) or "") if wrong else ""
            fault = ConfigFault(place.file, place.line, place.key, message, near, place.column)
        self._found.append(fault)

    def get_mark(self) -> int:
        return len(self._found)

    def get_faults_since(self, mark: int) -> tuple[ConfigFault, ...]:
        return tuple(self._found[mark:])

    def faults(self) -> tuple[ConfigFault, ...]:
        return tuple(sorted(self._found))
