"""What does each name of `mcp_server.packs` contain? A page for authors of packs, generated from the sources.

A change to the page is a change to a promise: review it like any other.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from mcp_server import packs

FIRST = ("tool_packs", "tools", "schema", "results", "posture", "context")
"""The modules that every pack needs; the ports follow in alphabetical order."""


def render_pack_reference() -> str:
    tree = ast.parse(Path(packs.__file__).read_text())
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    imports.sort(key=lambda node: FIRST.index(_stem(node)) if _stem(node) in FIRST else len(FIRST))
    parts = [
        "# What a pack may import\n\n"
        "These are all the names in `mcp_server.packs`. [packs.md](packs.md) shows how to use them.\n"
    ]
    parts += [_render_group(_stem(node), [alias.name for alias in node.names]) for node in imports]
    return "\n".join(parts)


def _stem(node: ast.ImportFrom) -> str:
    return str(node.module).rpartition(".")[2]


def _render_group(stem: str, names: Sequence[str]) -> str:
    source = (Path(packs.__file__).parent / "model" / f"{stem}.py").read_text()
    tree, lines = ast.parse(source), source.splitlines()
    about = (ast.get_docstring(tree) or "").split("\n\n")[0].replace("\n", " ")
    outlines = ["\n".join(_outline(lines, part)) for part in _find_parts(tree, names)]
    return f"## {stem}\n\n{about}\n\n```python\n" + "\n\n".join(outlines) + "\n```\n"


def _find_parts(tree: ast.Module, names: Sequence[str]) -> Iterator[Sequence[ast.stmt]]:
    """Each definition, with the docstring that follows a constant or an alias."""
    for node, after in zip(tree.body, [*tree.body[1:], ast.Pass()], strict=True):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name in names:
            yield [node]
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id in names:
            yield [node, after] if _is_words(after) else [node]


def _is_words(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _outline(lines: Sequence[str], part: Sequence[ast.stmt]) -> Iterator[str]:
    """The source without function bodies, and without private functions."""
    first = min([part[0].lineno, *(decorator.lineno for decorator in getattr(part[0], "decorator_list", ()))])
    shown_lines = {number: lines[number - 1] for number in range(first, (part[-1].end_lineno or 0) + 1)}
    for node in (inner for top in part for inner in ast.walk(top)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        private = node.name.startswith("_") and not node.name.startswith("__")
        has_docstring = _is_words(node.body[0])
        body = node.body[1:] if has_docstring else node.body
        begin = node.lineno if private else body[0].lineno if body else (node.end_lineno or 0) + 1
        if not private and body and lines[begin - 1].lstrip() != lines[begin - 1][body[0].col_offset :]:
            continue  # on the line of its signature
        for number in range(begin, (node.end_lineno or 0) + 1):
            shown_lines.pop(number, None)
        if body and not has_docstring and not private:
            shown_lines[begin] = f"{' ' * body[0].col_offset}..."
    text = "\n".join(shown_lines[number] for number in sorted(shown_lines))
    return iter(re.sub(r"\n\n\n+", "\n\n", text).rstrip().splitlines())
