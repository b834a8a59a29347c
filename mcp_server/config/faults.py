"""What is wrong with a configuration file? Faults with file, line, key and the nearest correct name."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from msgspec import Struct

from mcp_server.model.text import find_nearest_name

SHOWN_PER_FILE = 50
"""Enough to start with, even if a file is wrong from top to bottom."""


class SourceLocation(Struct, frozen=True):
    """A place in a file; `key` is the path to it, such as `rules.deny[2]`."""

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
    """The correct name most similar to the wrong one, if any."""
    column: int = 0

    def __str__(self) -> str:
        where = SourceLocation(self.file, self.line).source
        key = f" {self.key}:" if self.key else ""
        hint = f" (did you mean `{self.nearest}`?)" if self.nearest else ""
        return f"{where}:{key} {self.message}{hint}"


class ConfigFaults(Struct, frozen=True):
    """All faults, in the order of files and lines."""

    faults: tuple[ConfigFault, ...]

    def __iter__(self) -> Iterator[ConfigFault]:
        return iter(self.faults)

    def __len__(self) -> int:
        return len(self.faults)

    def __str__(self) -> str:
        return "\n".join(str(fault) for fault in self.faults)


class FaultCollector:
    """Collects faults while files are read, so that the user gets all of them at once."""

    def __init__(self) -> None:
        self._faults: list[ConfigFault] = []
        self._per_file: dict[str, int] = {}

    def add(self, place: SourceLocation, message: str, wrong: str = "", names: Iterable[str] = ()) -> None:
        """Add a fault. `wrong` is an unknown name, `names` are the known ones."""
        count = self._per_file[place.file] = self._per_file.get(place.file, 0) + 1
        if count > SHOWN_PER_FILE + 1:
            return
        if count > SHOWN_PER_FILE:
            fault = ConfigFault(place.file, place.line, "", "there are more faults after this line; fix these first")
        else:
            near = (find_nearest_name(wrong, names) or "") if wrong else ""
            fault = ConfigFault(place.file, place.line, place.key, message, near, place.column)
        self._faults.append(fault)

    def extend(self, other: "FaultCollector") -> None:
        """Add the faults that another collector found."""
        for fault in other._faults:
            self.add(SourceLocation(fault.file, fault.line, fault.column, fault.key), fault.message)

    def get_mark(self) -> int:
        return len(self._faults)

    def get_faults_since(self, mark: int) -> tuple[ConfigFault, ...]:
        return tuple(self._faults[mark:])

    def faults(self) -> tuple[ConfigFault, ...]:
        return tuple(sorted(self._faults))
