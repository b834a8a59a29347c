"""Does the server answer others while a search takes its time? A pattern that explodes, and a line of two megabytes."""

from pathlib import Path

from tests.clients.pipe import pipe


def test_a_ping_is_answered_before_a_search_that_never_ends(workspace: Path, home: Path) -> None:
    (workspace / "long.txt").write_text("a" * 5000 + "!\n")
    (workspace / "wide.txt").write_text("y" * 2_000_000 + "(needle)\n")
    with pipe(workspace, home) as one:
        one.hello()
        one.call("menu_enter", mode="swe")
        # No engine gets to the end of this one; it is taken back with the server.
        slow = one.send("tools/call", {"name": "grep", "arguments": {"pattern": r"(a+)+\b$(?<!x)", "path": "long.txt"}})
        for _ in range(3):
            answer, before = one.until(one.send("ping"))
            assert answer["result"] == {}
            assert slow not in [message.get("id") for message in before]
        for pattern, found in (("(a+)+$", "Nothing matches"), (r"\(needle\)", "wide.txt")):
            said = one.call("grep", pattern=pattern)
            assert not said["isError"]
            assert found in said["content"][0]["text"], said
