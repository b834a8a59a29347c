"""What does one server under `mcpServers` say? A mount, or every fault of the entry."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from mcp_server.config.faults import ConfigFault, FaultCollector, SourceLocation
from mcp_server.config.operator_schema import SERVER_NAME
from mcp_server.config.reader import Fields, Leaf
from mcp_server.config.shapes import (
    convert_to_json,
    fit,
    get_flag,
    get_leaf,
    get_leaves,
    get_number,
    get_sections,
    get_strings,
    get_text,
)
from mcp_server.config.upstream_defaults import find_default_serve
from mcp_server.config.upstream_schema import ENTRY, FOREIGN, TRANSPORTS
from mcp_server.config.value_references import MountPlaces, ValueReader, list_secret_names
from mcp_server.model.destinations import Destinations, parse_address, parse_destinations
from mcp_server.model.posture import Profile
from mcp_server.model.text import find_nearest_name, quote_exactly
from mcp_server.model.tools import Effect
from mcp_server.model.upstream_packages import MountPackage
from mcp_server.model.upstreams import (
    CatalogueChanges,
    HttpTarget,
    HttpTransport,
    Mount,
    MountSandbox,
    ProtocolEra,
    ResultTrim,
    Serve,
    StdioTarget,
    Target,
    ToolShape,
)
from mcp_server.policy.upstream_names import slug_server
from mcp_server.policy.upstream_requests import UnkeptPackage, find_request
from mcp_server.settings import SECRET_NAME, SHORTEST_SECRET


class EntryReader:
    """One entry on its way to a mount."""

    def __init__(
        self, name: str, place: SourceLocation, node: object, findings: FaultCollector, places: MountPlaces
    ) -> None:
        self.name, self.place, self.findings, self._places = name, place, findings, places
        self.values = ValueReader(places.sources, findings)
        self._node = node if isinstance(node, Fields) else None
        self._warnings = FaultCollector()
        if isinstance(node, Leaf) and not node.text:
            findings.add(place, "the server is empty; write a `command` or a `url`")
        elif self._node is None and not findings.faults():
            findings.add(place, "a server is written as `key: value` lines, beginning with `command` or `url`")

    @property
    def warnings(self) -> tuple[ConfigFault, ...]:
        return self._warnings.faults()

    def read_mount(self) -> Mount | None:
        """Return the mount; what it says counts only if there were no faults."""
        fit(Leaf(self.name, False, self.place), SERVER_NAME, self.findings)
        if self._node is None:
            return None
        self._report_foreign_keys(self._node)
        fields = fit(self._node, ENTRY, self.findings)
        if not isinstance(fields, Fields):
            return None
        target = self._read_target(fields)
        mount = target and self._build_mount(fields, target)
        if mount and mount.serve is Serve.ALL and (self.values.secrets or self._has_credentials(mount.target)):
            self.findings.add(
                fields.fields["serve"].place,
                "`serve: all` shares one server among everybody, and this one has credentials; leave `serve` out",
            )
        return mount

    def _report_foreign_keys(self, node: Fields) -> None:
        """Report the keys of hosts with what to write instead, so that `fit` does not guess at a similar name."""
        for name in [name for name in node.keys if name in FOREIGN and name not in ENTRY.keys]:
            self.findings.add(node.keys.pop(name), f"{quote_exactly(name)} is another program's key; {FOREIGN[name]}")
            node.fields.pop(name, None)

    def _build_mount(self, fields: Fields, target: Target) -> Mount:
        seconds = {key: get_number(fields, key) for key in ("timeout", "start_timeout", "idle")}
        mount = Mount(
            name=self.name,
            slug=slug_server(self.name),
            target=target,
            source=self.place.source,
            secrets=tuple(dict.fromkeys(self.values.names)),
            serve=Serve(get_text(fields, "serve") or find_default_serve(target)),
            changes=CatalogueChanges(get_text(fields, "changes") or CatalogueChanges.ASK),
            era=ProtocolEra(get_text(fields, "era") or ProtocolEra.AUTO),
            tools=self._read_shapes(fields),
            result=_read_trim(fields),
            prefixed=get_flag(fields, "prefix", True),
            roots=get_flag(fields, "roots", False),
            sandbox=self._read_sandbox(fields, target),
            package=self._find_package(target),
            disabled=get_flag(fields, "disabled", False),
        )
        return replace(
            mount,
            call_seconds=float(seconds["timeout"] or mount.call_seconds),
            start_seconds=float(seconds["start_timeout"] or mount.start_seconds),
            idle_seconds=float(seconds["idle"] or mount.idle_seconds),
        )

    def _read_target(self, fields: Fields) -> Target | None:
        command, url, kind = get_leaf(fields, "command"), get_leaf(fields, "url"), get_leaf(fields, "type")
        if (command is None) == (url is None):
            # If something is wrong with the one that is there, that was reported already.
            if (command and url) or not self.findings.faults():
                self.findings.add(self.place, "write either `command`, to start a server, or `url`, to connect to one")
            return None
        transport = TRANSPORTS[kind.text] if kind else HttpTransport.STREAMABLE if url else None
        if kind and (transport is None) != (url is None):
            wanted = "`type: http` or `type: sse`" if url else "`type: stdio`, or no `type`,"
            self.findings.add(kind.place, f"{wanted} belongs with {'a `url`' if url else 'a `command`'}")
            return None
        misplaced = ("command", "args", "env", "cwd", "sandbox") if url else ("url", "headers")
        for key in [key for key in misplaced if key in fields.keys]:
            self.findings.add(fields.keys[key], f"`{key}` does not belong with {'a `url`' if url else 'a `command`'}")
        if url is not None:
            return self._read_http(fields, url, transport or HttpTransport.STREAMABLE)
        return self._read_stdio(fields, command) if command else None

    def _read_stdio(self, fields: Fields, command: Leaf) -> StdioTarget | None:
        program, leaves = self.values.fill_in(command), get_leaves(fields, "args")
        args = tuple(self.values.fill_in(leaf) for leaf in leaves)
        for leaf in (command, *leaves):
            self._warn_about_shown_secret(leaf, "command lines")
        env = self._fill_in_mapping(fields, "env")
        folder = self._read_folder(fields)
        if "command" in fields.fields and not program.strip():
            self.findings.add(command.place, "the command is empty")
        target = StdioTarget((program, *args), env, folder)
        package = None if self.findings.faults() else self._find_package(target)
        # What is kept here starts without the program that fetched it.
        if not (self.findings.faults() or (package and package.lock)):
            self._check_program(command, program, env, folder)
        return target

    def _read_folder(self, fields: Fields) -> str:
        leaf = get_leaf(fields, "cwd")
        if leaf is None:
            return ""
        folder = self._places.workspace / self.values.fill_in(leaf)
        if not folder.is_dir():
            self.findings.add(leaf.place, f"there is no folder {quote_exactly(str(folder))}")
        return str(folder)

    def _check_program(self, command: Leaf, program: str, env: Mapping[str, str], folder: str) -> None:
        import shutil

        path = env.get("PATH", self._places.search_path)
        where = Path(folder or self._places.workspace)
        if "/" in program:
            file = where / program
            if not (file.is_file() and os.access(file, os.X_OK)):
                reason = "is not executable" if file.is_file() else "does not exist"
                self.findings.add(command.place, f"the program {quote_exactly(str(file))} {reason}")
        elif shutil.which(program, path=path) is None:
            near = find_nearest_name(program, _list_programs(path))
            hint = f" (did you mean {quote_exactly(near)}?)" if near else ""
            self.findings.add(command.place, f"there is no program {quote_exactly(program)} on the PATH{hint}")

    def _find_package(self, target: Target) -> MountPackage | None:
        """What is not kept runs as it is written; the question whether you approve it says why."""
        if self._places.find_package is None or not isinstance(target, StdioTarget):
            return None
        try:
            request = find_request(target.argv)
        except UnkeptPackage:
            return None
        return request and self._places.find_package(self.name, request)

    def _read_sandbox(self, fields: Fields, target: Target) -> MountSandbox | None:
        section = fields.fields.get("sandbox")
        if not isinstance(section, Fields) or not isinstance(target, StdioTarget):
            return None
        for leaf in get_leaves(section, "network"):
            try:
                parse_destinations((leaf.text,))
            except ValueError as wrong:
                self.findings.add(leaf.place, f"{quote_exactly(leaf.text)} {wrong}")
        write, network = (tuple(leaf.text for leaf in get_leaves(section, key)) for key in ("write", "network"))
        package = self._find_package(target)
        program = package.request.name if package else target.argv[0]
        own = self._places.find_home(self.name, program) if self._places.find_home else None
        return MountSandbox(write, network, get_flag(section, "home", False), own)

    def _read_http(self, fields: Fields, url: Leaf, transport: HttpTransport) -> HttpTarget | None:
        address = self.values.fill_in(url)
        self._warn_about_shown_secret(url, "logs")
        headers = self._fill_in_mapping(fields, "headers")
        host = _find_host(address)
        if host is None:
            if not self.findings.faults():
                # Never quote it: an address may contain a secret.
                self.findings.add(url.place, "this is not a web address; write it like `https://host/mcp`")
            return None
        if "@" in urlsplit(address).netloc:
            self.findings.add(url.place, "the address contains a user name or password; write a header instead")
        for name, value in headers.items():
            if any(char in value for char in "\r\n\0"):
                self.findings.add(get_strings(fields, "headers")[name].place, "a header must be one line")
        if self._places.reachable is not None and _is_private(host):
            self._check_reachable(url, host, find_port(address), self._places.reachable)
        return HttpTarget(address, transport, headers)

    def _check_reachable(self, url: Leaf, host: str, port: int, reachable: Destinations) -> None:
        """A private address is for the person at this machine; others reach it only if the network guard lets them."""
        address = parse_address(host)
        listed = reachable.has_address(address, port) if address else reachable.has_host(host, port)
        if listed and (address is not None or host == "localhost"):
            return
        where = f"[{host}]" if ":" in host else host
        how = f"list `{where}:{port}`" if address or host == "localhost" else "write its address, and list that"
        self.findings.add(
            url.place,
            "the address is private, and people who connect with a token may not reach it; "
            f"{how} under `network: allow:`, or remove the `tokens`",
        )

    def _fill_in_mapping(self, fields: Fields, key: str) -> dict[str, str]:
        values = {name: self.values.fill_in(leaf) for name, leaf in get_strings(fields, key).items()}
        for name, value in values.items():
            if key == "headers" or SECRET_NAME.search(name):
                self.values.secrets += [part for part in (value, *value.split()[1:]) if len(part) >= SHORTEST_SECRET]
        return values

    def _warn_about_shown_secret(self, leaf: Leaf, where: str) -> None:
        for name in list_secret_names(leaf.text):
            self._warnings.add(
                leaf.place,
                f"the secret {quote_exactly(name)} will show up in {where}; pass it in `env` or `headers` instead",
            )

    def _has_credentials(self, target: Target) -> bool:
        if isinstance(target, HttpTarget):
            return bool(target.headers)
        return any(SECRET_NAME.search(name) for name in target.env)

    def _read_shapes(self, fields: Fields) -> dict[str, ToolShape]:
        shapes: dict[str, ToolShape] = {}
        for key, section in get_sections(fields, "tools").items():
            tool = key.removeprefix(f"{self.name}:")
            if tool in shapes:
                place = fields.fields["tools"].place
                self.findings.add(place, f"the tool {quote_exactly(tool)} is named twice, with and without its server")
            shapes[tool] = _read_shape(section)
            for name in shapes[tool].hide & shapes[tool].fix.keys():
                self.findings.add(section.place, f"{quote_exactly(name)} is in `hide` and in `fix`; `fix` is enough")
        return shapes


def _read_shape(section: Fields) -> ToolShape:
    effect, profile, seconds = get_text(section, "effect"), get_text(section, "profile"), get_number(section, "timeout")
    fixed = section.fields.get("fix")
    return ToolShape(
        name=get_text(section, "name"),
        description=get_text(section, "description"),
        hide=frozenset(leaf.text for leaf in get_leaves(section, "hide")),
        fix=convert_to_json(fixed) if isinstance(fixed, Fields) else {},
        effect=Effect(effect) if effect else None,
        profile=Profile(profile) if profile else None,
        seconds=float(seconds) if seconds else None,
    )


def _read_trim(fields: Fields) -> ResultTrim:
    section = fields.fields.get("result")
    if not isinstance(section, Fields):
        return ResultTrim()
    keep, drop = (tuple(leaf.text for leaf in get_leaves(section, key)) for key in ("keep", "drop"))
    return ResultTrim(keep, drop, get_number(section, "max_chars"))


def _find_host(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts.hostname if parts.scheme in ("http", "https") and not parts.fragment else None


def find_port(url: str) -> int:
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)


def _is_private(host: str) -> bool:
    """True if the address is plainly private. Names are judged by what they lead to, when somebody connects."""
    from ipaddress import ip_address

    try:
        return not ip_address(host).is_global
    except ValueError:
        return host == "localhost" or host.endswith((".localhost", ".local", ".internal"))


def _list_programs(path: str) -> Iterator[str]:
    for folder in path.split(os.pathsep):
        try:
            yield from os.listdir(folder)  # noqa: PTH208  # names alone are needed, and only after a fault
        except OSError:
            continue
