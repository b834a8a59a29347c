"""Do servers under `mcpServers` come out as they were written, and does a broken one harm no other?"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mcp_server.config.faults import ConfigFaults, FaultCollector
from mcp_server.config.operator import read_operator_config
from mcp_server.config.upstreams import ConfiguredUpstreams
from mcp_server.config.value_references import MountPlaces, ValueSources
from mcp_server.model.posture import Profile
from mcp_server.model.secrets import SecretUnavailable
from mcp_server.model.tools import Effect
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
    ToolShape,
)
from tests.yaml_text import load_yaml

CASES = load_yaml((Path(__file__).parents[1] / "tables" / "upstreams.yaml").read_text())
VARIABLES = {"HOST": "example.org", "EMPTY": ""}
SECRETS = {"known": "s3cr3t-value"}


def find_secret(name: str) -> str:
    if name not in SECRETS:
        raise SecretUnavailable(f"there is no secret `{name}`; store it with `menugate secret set {name}`.")
    return SECRETS[name]


def read(text: str, folder: Path, file_faults: int = 0) -> ConfiguredUpstreams:
    (folder / "sub").mkdir(exist_ok=True)
    (folder / "notes.md").write_text("notes")
    (folder / "server").write_text("#!/bin/sh\n")
    (folder / "server").chmod(0o755)
    findings = FaultCollector()
    places = MountPlaces(folder, str(folder), ValueSources(VARIABLES.get, find_secret))
    config = read_operator_config(folder / "menugate.yaml", findings, None, text, folder, lambda: places)
    assert len(findings.faults()) == file_faults, str(ConfigFaults(findings.faults()))
    assert config.upstreams is not None
    return config.upstreams


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_broken_entry_is_reported_and_left_out(case: Mapping[str, Any], tmp_path: Path) -> None:
    text = f"# servers\nmcpServers:\n  ok: {{command: ./server}}\n  {case['entry']}\n"
    upstreams = read(text, tmp_path)
    assert [mount.name for mount in upstreams.mounts] == ["ok"]
    first = upstreams.faults[0]
    assert first.server == case.get("server", "a")
    assert case["says"] in str(first.fault)
    assert (first.fault.file, first.fault.line) == (str(tmp_path / "menugate.yaml"), case.get("line", 4))
    assert upstreams.names[0] == "ok" and first.server in upstreams.names


def test_a_whole_entry_comes_out_as_it_was_written(tmp_path: Path) -> None:
    text = """\
mcpServers:
  my-server:
    command: ../server
    args: [-v, -v, --host, "${HOST}", 8080, "${NOPE:-fallback}", "${EMPTY:-other}", $HOME]
    env: {PORT: 8080, DEBUG: true, KEY: "${secret:known}", LINES: "a\\nb"}
    cwd: sub
    serve: session
    changes: allow-new
    era: legacy
    prefix: false
    roots: true
    timeout: 120
    start_timeout: 5
    idle: 60
    disabled: true
    tools:
      read: {description: Reads., hide: [raw], fix: {owner: me, limit: 3, deep: {a: [true, null]}}}
      my-server:write: {name: put, effect: write-local, profile: normal, timeout: 9}
    result: {keep: [items.*.id], drop: [html], max_chars: 900}
    sandbox: {write: [out], network: [example.org], home: true}
"""
    upstreams = read(text, tmp_path)
    assert upstreams.faults == ()
    env = {"PORT": "8080", "DEBUG": "true", "KEY": "s3cr3t-value", "LINES": "a\nb"}
    args = ("-v", "-v", "--host", "example.org", "8080", "fallback", "other", "$HOME")
    assert upstreams.mounts == (
        Mount(
            name="my-server",
            slug="myserver",
            target=StdioTarget(("../server", *args), env, str(tmp_path / "sub")),
            serve=Serve.SESSION,
            changes=CatalogueChanges.ALLOW_NEW,
            era=ProtocolEra.LEGACY,
            tools={
                "read": ToolShape(
                    description="Reads.",
                    hide=frozenset({"raw"}),
                    fix={"owner": "me", "limit": 3, "deep": {"a": [True, None]}},
                ),
                "write": ToolShape(name="put", effect=Effect.WRITE_LOCAL, profile=Profile.NORMAL, seconds=9.0),
            },
            result=ResultTrim(("items.*.id",), ("html",), 900),
            prefixed=False,
            roots=True,
            sandbox=MountSandbox(("out",), ("example.org",), True),
            disabled=True,
            start_seconds=5.0,
            call_seconds=120.0,
            idle_seconds=60.0,
        ),
    )
    assert upstreams.mounts[0].source == f"{tmp_path}/menugate.yaml:2"
    assert "s3cr3t-value" in upstreams.secrets and "s3cr3t-value" not in repr(upstreams)


@pytest.mark.parametrize(
    ("written", "sandbox"),
    [
        ("{}", MountSandbox()),
        ("{network: none}", MountSandbox()),
        ("{network: []}", MountSandbox()),
        ("{network: [a.example, '10.0.0.1:80']}", MountSandbox(network=("a.example", "10.0.0.1:80"))),
        ("{write: [., /srv], home: true}", MountSandbox((".", "/srv"), home=True)),
    ],
)
def test_a_sandbox_opens_only_what_is_written(written: str, sandbox: MountSandbox, tmp_path: Path) -> None:
    (mount,) = read(f"mcpServers:\n  a: {{command: ./server, sandbox: {written}}}\n", tmp_path).mounts
    assert mount.sandbox == sandbox


@pytest.mark.parametrize(
    ("kind", "transport"),
    [
        ("", HttpTransport.STREAMABLE),
        ("type: http, ", HttpTransport.STREAMABLE),
        ("type: streamable-http, ", HttpTransport.STREAMABLE),
        ("type: streamableHttp, ", HttpTransport.STREAMABLE),
        ("type: sse, ", HttpTransport.SSE),
    ],
)
def test_a_server_that_is_running_is_reached_by_its_url(kind: str, transport: HttpTransport, tmp_path: Path) -> None:
    header = "Authorization: 'Bearer ${secret:known}'"
    text = f"mcpServers: {{a: {{{kind}url: 'https://${{HOST}}/mcp', headers: {{{header}}}}}}}"
    upstreams = read(text, tmp_path)
    headers = {"Authorization": "Bearer s3cr3t-value"}
    assert [mount.target for mount in upstreams.mounts] == [HttpTarget("https://example.org/mcp", transport, headers)]


def test_json_as_hosts_have_it_can_be_pasted(tmp_path: Path) -> None:
    text = '{\n  "mcpServers": {\n    "a": {\n      "command": "./server",\n      "args": ["-y"]\n    }\n  }\n}\n'
    upstreams = read(text, tmp_path)
    assert [mount.target for mount in upstreams.mounts] == [StdioTarget(("./server", "-y"))]


def test_a_workspace_adds_servers_of_its_own(tmp_path: Path) -> None:
    text = f"""\
mcpServers: {{a: {{command: ./server}}}}
workspaces:
  {tmp_path}: {{mcpServers: {{b: {{command: ./server}}, a: {{command: ./nothing}}}}}}
  /elsewhere: {{mcpServers: {{c: {{command: ./nothing}}}}}}
"""
    upstreams = read(text, tmp_path)
    # Neither of two servers with one name is used.
    assert [mount.name for mount in upstreams.mounts] == ["b"]
    assert [one.server for one in upstreams.faults] == ["a"]
    assert "there is already a server `a`" in upstreams.faults[0].fault.message


def test_a_section_that_is_no_mapping_is_a_fault_of_the_file(tmp_path: Path) -> None:
    findings = FaultCollector()
    read_operator_config(tmp_path / "m.yaml", findings, None, "mcpServers: [a]\n", tmp_path)
    assert "this must be a mapping" in findings.faults()[0].message


def test_other_faults_stay_faults_of_the_file(tmp_path: Path) -> None:
    text = "mcpServers: {a: {command: ./server}}\nprofil: normal\n"
    assert [mount.name for mount in read(text, tmp_path, file_faults=1).mounts] == ["a"]


def test_a_secret_in_an_argument_is_a_warning(tmp_path: Path) -> None:
    upstreams = read("mcpServers: {a: {command: ./server, args: ['${secret:known}']}}", tmp_path)
    assert [mount.name for mount in upstreams.mounts] == ["a"]
    assert "will show up in command lines" in upstreams.warnings[0].fault.message


@pytest.mark.parametrize(
    ("host", "allowed", "says"),
    [
        ("10.0.0.1:1", "", "list `10.0.0.1:1` under `network: allow:`"),
        ("10.0.0.1:1", "10.0.0.0/8:1", ""),
        ("10.0.0.1:1", "10.0.0.1:2", "list `10.0.0.1:1`"),
        ("10.0.0.1:1", "'*:1'", "list `10.0.0.1:1`"),
        ("localhost", "", "list `localhost:80`"),
        ("localhost:1", "localhost:1", ""),
        ("[::1]:1", "", "list `[::1]:1`"),
        ("[::1]:1", "'[::1]:1'", ""),
        ("nas.local", "", "write its address, and list that"),
        ("nas.local", "nas.local", "write its address, and list that"),
        ("example.org", "", ""),
    ],
)
def test_a_private_address_is_a_fault_where_people_connect_with_tokens(
    tmp_path: Path, host: str, allowed: str, says: str
) -> None:
    token = f"tokens: [{{principal: ann, sha256: {'a' * 64}}}]\nnetwork: {{allow: [{allowed}]}}\n"
    servers = f"mcpServers: {{a: {{url: 'http://{host}/mcp'}}, b: {{command: ./server}}}}\n"
    assert len(read(servers, tmp_path).mounts) == 2
    upstreams = read(token + servers, tmp_path)
    assert [mount.name for mount in upstreams.mounts] == (["b"] if says else ["a", "b"])
    assert [says in str(fault) and "mcpServers.a.url" in str(fault) for fault in upstreams.faults] == [True] * bool(
        says
    )
