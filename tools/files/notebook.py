"""What does a Jupyter notebook say, as text?"""

import json
from collections.abc import Iterator
from typing import Any, cast


def rendered(data: bytes) -> bytes | None:
    """Its cells and their outputs one after the other; None where it is no notebook after all."""
    try:
        notebook = json.loads(data)
        cells = [_cell(number, cell) for number, cell in enumerate(notebook["cells"], 1)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return "\n\n".join(cells).encode("utf-8", "backslashreplace")


def _cell(number: int, cell: dict[str, Any]) -> str:
    parts = [f"[cell {number}: {cell['cell_type']}]", _joined(cell.get("source", ""))]
    for output in cell.get("outputs", ()):
        parts.extend(_output(output))
    return "\n".join(part.rstrip("\n") for part in parts if part)


def _output(output: dict[str, Any]) -> Iterator[str]:
    if "text" in output:
        yield f"[output: {output.get('name', 'text')}]\n{_joined(output['text'])}"
    if "ename" in output:
        yield f"[output: error]\n{output['ename']}: {output.get('evalue', '')}"
    data: dict[str, Any] = output.get("data", {})
    if "text/plain" in data:
        yield f"[output]\n{_joined(data['text/plain'])}"
    if others := [kind for kind in data if kind != "text/plain"]:
        yield f"[output not shown: {', '.join(others)}]"


def _joined(source: object) -> str:
    return source if isinstance(source, str) else "".join(cast(list[str], source))
