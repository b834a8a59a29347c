"""Is a packed body unpacked to what was sent, in bounded memory, and never silently to less?"""

import gzip
import tracemalloc
import zlib
from collections.abc import Callable
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.guards.network.content_encoding import PIECE_BYTES, BadEncoding, build_decoder, get_accepted_encodings
from mcp_server.guards.network.egress import Egress
from mcp_server.guards.network.http import HttpClient
from mcp_server.model.destinations import parse_destinations
from mcp_server.model.network import Request, Response
from mcp_server.model.results import Code, Refusal
from tests.guards.network.site import pages

pack_brotli: Callable[[bytes], bytes] = import_module("brotli").compress


def deflate_raw(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def gzip_in_parts(data: bytes) -> bytes:
    half = len(data) // 2
    return gzip.compress(data[:half]) + gzip.compress(data[half:]) + b"\0\0"


PACKERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "gzip in parts": ("GZip", gzip_in_parts),
    "x-gzip": ("x-gzip", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "deflate without header": ("deflate", deflate_raw),
    "br": ("br", pack_brotli),
    "nothing": ("", bytes),
    "identity": ("identity", bytes),
}


@pytest.mark.parametrize("name", PACKERS)
@given(st.binary(max_size=300_000 // 100).map(lambda data: data * 100), st.integers(1, 5000))
def test_what_was_packed_comes_out_whatever_the_pieces(name: str, data: bytes, size: int) -> None:
    encoding, pack = PACKERS[name]
    packed, decoder = pack(data), build_decoder(encoding)
    pieces = [piece for at in range(0, len(packed), size) for piece in decoder.decode(packed[at : at + size])]
    assert b"".join(pieces) == data
    assert decoder.is_complete
    assert all(len(piece) <= max(2 * PIECE_BYTES, size) for piece in pieces)


@pytest.mark.parametrize("name", ["gzip", "deflate", "deflate without header", "br"])
def test_what_broke_off_says_so(name: str) -> None:
    encoding, pack = PACKERS[name]
    decoder = build_decoder(encoding)
    assert decoder.is_complete
    list(decoder.decode(pack(bytes(range(256)) * 40)[:-5]))
    assert not decoder.is_complete


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br"])
def test_what_is_not_packed_is_an_error(encoding: str) -> None:
    with pytest.raises(BadEncoding):
        list(build_decoder(encoding).decode(b"\xff\xfe<html>not packed at all</html>" * 10))


@pytest.mark.parametrize("encoding", ["zstd", "compress", "gzip, gzip", "gzip, br", "x"])
def test_what_was_not_asked_for_is_refused(encoding: str) -> None:
    assert encoding not in get_accepted_encodings().split(", ")
    with pytest.raises(BadEncoding):
        build_decoder(encoding)


async def get(packed: bytes, encoding: str, most: int) -> Response:
    async with pages() as one:
        one.add("/", packed, "200 OK", f"Content-Encoding: {encoding}")
        client = HttpClient(Egress(None, parse_destinations([f"127.0.0.1:{one.port}"])))
        try:
            return await client.fetch(Request(f"http://127.0.0.1:{one.port}/", most_bytes=most))
        finally:
            await client.close()


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(
    ("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("br", pack_brotli)]
)
async def test_a_bomb_fills_no_more_than_the_limit(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    bomb = pack(bytes(200 << 20))
    tracemalloc.start()
    try:
        said = await get(bomb, encoding, 1 << 20)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (len(said.body), said.cut) == (1 << 20, True)
    assert peak < 8 << 20


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_response_is_unpacked_cut_or_refused() -> None:
    whole = gzip.compress(b"hello" * 1000)
    assert (await get(whole, "gzip", 10_000)).body == b"hello" * 1000
    assert (await get(whole[:-9], "gzip", 10_000)).cut
    assert (await get(b"", "gzip", 10)).cut is False
    for body, encoding in ((b"plain", "gzip"), (whole, "zstd")):
        with pytest.raises(Refusal) as refused:
            await get(body, encoding, 10_000)
        assert refused.value.problem.code is Code.TOOL_FAILED
