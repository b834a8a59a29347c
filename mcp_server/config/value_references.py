"""What does a value with `${VAR}`, `${VAR:-default}` or `${secret:NAME}` in it stand for?"""

import dataclasses
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from msgspec import Struct, field

from mcp_server.config.faults import FaultCollector
from mcp_server.config.reader import Leaf
from mcp_server.model.destinations import Destinations
from mcp_server.model.secrets import SecretUnavailable
from mcp_server.model.text import quote_exactly
from mcp_server.model.upstream_packages import MountPackage, PackageRequest
from mcp_server.settings import find_variable

REFERENCE = re.compile(r"\$\{(?P<inside>[^}]*)(?P<end>\}?)")
VARIABLE = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)
SECRET = re.compile(r"secret:(?P<name>[A-Za-z0-9][A-Za-z0-9_.-]{0,99})")


def _find_no_secret(_name: str) -> str | None:
    return None


class ValueSources(Struct, frozen=True):
    """Where the values come from that a configuration only names."""

    variable: Callable[[str], str | None] = find_variable
    secret: Callable[[str], str | None] = _find_no_secret
    """Finds a secret that the user stored. If there is none of that name, it returns None or says so."""


class MountPlaces(Struct, frozen=True):
    """What the entries are read against."""

    workspace: Path
    search_path: str = os.defpath
    sources: ValueSources = field(default_factory=ValueSources)
    reachable: Destinations | None = None
    """What people who connect with a token may reach besides public addresses; None if nobody has a token."""
    find_package: Callable[[str, PackageRequest], MountPackage] | None = None
    """Finds what is kept of a mount's package; None if this account can keep nothing."""
    find_home: Callable[[str, str], Path] | None = None
    """Finds the own folder of a mount's program in its sandbox; None likewise."""


@dataclass
class ValueReader:
    """Fills in the references of one entry, and remembers which secrets are in it."""

    sources: ValueSources
    findings: FaultCollector
    secrets: list[str] = dataclasses.field(default_factory=list[str], repr=False)
    names: list[str] = dataclasses.field(default_factory=list[str])
    """Of the stored secrets among them."""

    def fill_in(self, leaf: Leaf) -> str:
        """Return the value with every reference filled in; a fault leaves the reference out."""
        return REFERENCE.sub(lambda found: self._fill_in_reference(found, leaf), leaf.text)

    def _fill_in_reference(self, found: re.Match[str], leaf: Leaf) -> str:
        inside = found["inside"]
        if not found["end"]:
            self.findings.add(leaf.place, "a `${` has no closing `}`")
        elif secret := SECRET.fullmatch(inside):
            return self._fill_in_secret(secret["name"], leaf)
        elif variable := VARIABLE.fullmatch(inside):
            return self._fill_in_variable(variable["name"], variable["default"], leaf)
        else:
            wrong = quote_exactly("${" + inside + "}")
            self.findings.add(
                leaf.place, f"{wrong} is neither `${{NAME}}`, `${{NAME:-default}}` nor `${{secret:NAME}}`"
            )
        return ""

    def _fill_in_secret(self, name: str, leaf: Leaf) -> str:
        try:
            value = self.sources.secret(name)
        except SecretUnavailable as wrong:
            self.findings.add(leaf.place, str(wrong).rstrip("."))
            return ""
        if value is None:
            self.findings.add(
                leaf.place, f"there is no secret {quote_exactly(name)}; store it with `menugate secret set {name}`"
            )
            return ""
        self.secrets.append(value)
        self.names.append(name)
        return value

    def _fill_in_variable(self, name: str, default: str | None, leaf: Leaf) -> str:
        # As in a shell, `:-` also stands in for a variable that is set to nothing.
        value = self.sources.variable(name)
        if default is not None:
            return value or default
        if value is None:
            self.findings.add(
                leaf.place,
                f"the variable {quote_exactly(name)} is not set where menugate runs; set it, or write a default: "
                f"`${{{name}:-...}}`",
            )
        return value or ""


def list_secret_names(text: str) -> list[str]:
    """List the secrets that a value refers to."""
    insides = (found["inside"] for found in REFERENCE.finditer(text))
    return [secret["name"] for inside in insides if (secret := SECRET.fullmatch(inside))]
