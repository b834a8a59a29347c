"""One ordinary server over stdio, Streamable HTTP and SSE, in each era, for all tests of what every server does."""

from collections.abc import Iterator

import pytest

from mcp_server.model.upstreams import Mount, ProtocolEra
from tests.upstreams.ground import FarServer, script


@pytest.fixture(scope="package")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FarServer]:
    server = FarServer.start(tmp_path_factory.mktemp("far") / "errors")
    yield server
    server.stop()


@pytest.fixture(params=["stdio", "http", "sse"])
def transport(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=[ProtocolEra.LEGACY, ProtocolEra.MODERN])
def era(request: pytest.FixtureRequest) -> ProtocolEra:
    return request.param


@pytest.fixture
def ordinary(transport: str, era: ProtocolEra, request: pytest.FixtureRequest) -> Mount:
    if transport == "stdio":
        return script("ordinary", era=era)
    far: FarServer = request.getfixturevalue("far")
    return far.mount(transport, era)
