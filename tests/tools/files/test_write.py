"""Is a rewrite counted where its diff would flood?"""

from tests.tools.workbench import Workbench, text


def test_a_rewrite_is_counted_where_a_diff_would_flood(bench: Workbench) -> None:
    (bench.root / "f").write_text("a\n" * 50_000)
    text(bench, "Read", file_path="f", limit=1)
    shown = text(bench, "Write", file_path="f", content="b\n" * 60_000)
    assert "+60000 -50000" in shown
    assert len(shown) < 2_000
    (bench.root / "g").write_text("".join(f"{number}\n" for number in range(1000)))
    text(bench, "Read", file_path="g")
    shown = text(bench, "Write", file_path="g", content="".join(f"new {number}\n" for number in range(1000)))
    assert "more lines of diff]" in shown
    assert len(shown) < 10_000
