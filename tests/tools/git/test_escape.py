"""Can any bytes of a repository be shown?"""

from hypothesis import given
from hypothesis import strategies as st

from mcp_server.model.text import HARMFUL
from tools.git import escape


@given(st.binary(max_size=200))
def test_any_bytes_can_be_shown(data: bytes) -> None:
    for shown in (escape.to_content_line(data), escape.to_visible_path(data)):
        shown.encode()
        assert not HARMFUL.search(shown)
    assert "\n" not in escape.to_visible_path(data)
