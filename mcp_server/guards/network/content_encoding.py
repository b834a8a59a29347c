"""How is a compressed body unpacked? Piece by piece, so that a small answer cannot fill the memory."""

import zlib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

PIECE_BYTES = 1 << 16
GZIP, ZLIB, RAW = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS


class BadEncoding(Exception):
    """The body cannot be unpacked; the message says why."""


class BodyDecoder(Protocol):
    def decode(self, data: bytes) -> Iterator[bytes]:
        """Yield what the next part of the body unpacks to, in pieces of bounded size."""
        ...

    @property
    def is_complete(self) -> bool:
        """False if the body broke off in the middle."""
        ...


@cache
def get_accepted_encodings() -> str:
    return "gzip, deflate, br" if find_spec("brotli") else "gzip, deflate"


def build_decoder(encoding: str) -> BodyDecoder:
    """Build the decoder for the value of a Content-Encoding header."""
    match encoding.strip().lower():
        case "" | "identity":
            return PlainDecoder()
        case "gzip" | "x-gzip":
            return ZlibDecoder(GZIP)
        case "deflate":
            return ZlibDecoder(ZLIB)
        case "br" if find_spec("brotli"):
            return BrotliDecoder()
        case _:
            raise BadEncoding("the server packed its answer in a way that was not asked for")


class PlainDecoder:
    is_complete = True

    def decode(self, data: bytes) -> Iterator[bytes]:
        yield data


class ZlibDecoder:
    def __init__(self, window: int) -> None:
        self._window = window
        self._zlib: Any = None
        """None before the first byte, and between two gzip members."""
        self._beginning = b""
        """What has arrived while it is too little to tell the variants of `deflate` apart."""

    @property
    def is_complete(self) -> bool:
        return not self._beginning and (self._zlib is None or self._zlib.eof)

    def decode(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._zlib is None:
                data = self._begin(data)
            elif self._zlib.eof:
                if self._window != GZIP:
                    return
                # Several gzip members are one text. Zeros may follow the last one.
                data, self._zlib = data.lstrip(b"\0"), None if data.strip(b"\0") else self._zlib
            else:
                yield self._decompress(data)
                data = self._zlib.unconsumed_tail or self._zlib.unused_data

    def _begin(self, data: bytes) -> bytes:
        """Prepare to unpack, and return what there is to unpack by now."""
        data = self._beginning + data
        if self._window == ZLIB:
            if len(data) < 2:
                self._beginning = data
                return b""
            # Some servers send `deflate` without the header that belongs to it.
            has_header = data[0] & 15 == 8 and int.from_bytes(data[:2]) % 31 == 0
            self._window = ZLIB if has_header else RAW
        self._beginning, self._zlib = b"", zlib.decompressobj(self._window)
        return data

    def _decompress(self, data: bytes) -> bytes:
        try:
            return self._zlib.decompress(data, PIECE_BYTES)
        except zlib.error:
            raise BadEncoding("the server's answer is not packed as it says") from None


class BrotliDecoder:
    def __init__(self) -> None:
        brotli: Any = import_module("brotli")  # in the extra `web`, and without types
        self._error: type[Exception] = brotli.error
        self._brotli = brotli.Decompressor()
        self._begun = False

    @property
    def is_complete(self) -> bool:
        return not self._begun or bool(self._brotli.is_finished())

    def decode(self, data: bytes) -> Iterator[bytes]:
        self._begun = True
        try:
            while piece := self._brotli.process(data, output_buffer_limit=PIECE_BYTES):
                data = b""
                yield piece
        except self._error:
            raise BadEncoding("the server's answer is not packed as it says") from None
