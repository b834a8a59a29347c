"""What does each name of `mcp_server.packs` hold? A page for authors of packs, taken from the sources.

A change to the page is a change to what is promised: it is read in a review like any other.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from mcp_server import packs

FIRST = ("tool_packs", "tools", "schema", "results", "posture", "context")
"""What every pack needs comes before the doors, which stand in the order of the alphabet."""


def render_pack_reference() -> str:
    tree = ast.parse(Path(packs.__file__).read_text())
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    imports.sort(key=lambda node: FIRST.index(_stem(node)) if _stem(node) in FIRST else len(FIRST))
    parts = [
        "# What a pack may import\n\nEvery name of `mcp_server.packs`; [packs.md](packs.md) shows how they are used.\n"
    ]
    parts += [_render_group(_stem(node), [alias.name for alias in node.names]) for node in imports]
    return "\n".join(parts)


def _stem(node: ast.ImportFrom) -> str:
    return str(node.module).rpartition(".")[2]


def _render_group(stem: str, names: Sequence[str]) -> str:
    source = (Path(packs.__file__).parent / "model" / f"{stem}.py").read_text()
    tree, lines = ast.parse(source), source.splitlines()
    about = (ast.get_docstring(tree) or "").split("\n\n")[0].replace("\n", " ")
    found = ["\n".join(_outline(lines, part)) for part in _find_parts(tree, names)]
    return f"## {stem}\n\n{about}\n\n```python\n" + "\n\n".join(found) + "\n```\n"


def _find_parts(tree: ast.Module, names: Sequence[str]) -> Iterator[Sequence[ast.stmt]]:
    """Each definition, with the words that follow a constant or an alias."""
    for node, after in zip(tree.body, [*tree.body[1:], ast.Pass()], strict=True):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name in names:
            yield [node]
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id in names:
            yield [node, after] if _is_words(after) else [node]


def _is_words(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _outline(lines: Sequence[str], part: Sequence[ast.stmt]) -> Iterator[str]:
    """The source without what functions do, and without what is private."""
    first = min([part[0].lineno, *(one.lineno for one in getattr(part[0], "decorator_list", ()))])
    shown = {number: lines[number - 1] for number in range(first, (part[-1].end_lineno or 0) + 1)}
    for node in (one for top in part for one in ast.walk(top)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        private = node.name.startswith("_") and not node.name.startswith("__")
        said = _is_words(node.body[0])
        body = node.body[1:] if said else node.body
        begin = node.lineno if private else body[0].lineno if body else (node.end_lineno or 0) + 1
        if not private and body and lines[begin - 1].lstrip() != lines[begin - 1][body[0].col_offset :]:
            continue  # on the line of its signature
        for number in range(begin, (node.end_lineno or 0) + 1):
            shown.pop(number, None)
        if body and not said and not private:
            shown[begin] = f"{' ' * body[0].col_offset}..."
    text = "\n".join(shown[number] for number in sorted(shown))
    return iter(re.sub(r"\n\n\n+", "\n\n", text).rstrip().splitlines())
