"""Do any bytes survive being text?"""

from hypothesis import given
from hypothesis import strategies as st


@given(st.binary(max_size=200))
def test_any_bytes_survive_being_text(data: bytes) -> None:
    from mcp_server.model.text import escape_for_model
    from tools.files.lines import build_line_page, decode_text, encode_text

    assert encode_text(decode_text(data)) == data
    escape_for_model(decode_text(data)).encode()
    shown = build_line_page(data)
    assert shown.total == shown.last or not data
    assert shown.bytes == len(data)
