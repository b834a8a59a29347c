"""Is this Python module one of the workspace? Then `python -m shop` runs what `python shop/__main__.py` would.

A module that is installed is judged by its name instead. So is one that Python brings along: a folder of that name in
the workspace does not always win.
"""

import posixpath
import re
import sys

from tools.shell.surroundings import Surroundings

NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
INSTALLED = """
pip setuptools wheel virtualenv pipx twine build tox nox poetry hatch pdm uv conda IPython jupyter notebook jupyterlab
gunicorn uvicorn hypercorn waitress celery flask django invoke fabric ansible pre_commit ipykernel debugpy pytest mypy
coverage black ruff isort pylint flake8
"""
BY_NAME = frozenset(sys.stdlib_module_names).union(INSTALLED.split())
FILES = frozenset(("file", "program"))
SOURCES = (".", "src")
"""Where a project's modules lie: in the current folder, which Python searches first, or where it is installed from."""


def is_own_module(name: str, folder: str, around: Surroundings) -> bool:
    first = name.partition(".")[0]
    if not NAME.fullmatch(name) or first in BY_NAME:
        return False
    return any(_holds_module(posixpath.join(folder, source), name, around) for source in SOURCES)


def _holds_module(folder: str, name: str, around: Surroundings) -> bool:
    path = posixpath.normpath(posixpath.join(folder, name.replace(".", "/")))
    return any(around.find_kind(one) in FILES for one in (f"{path}/__main__.py", f"{path}.py"))
