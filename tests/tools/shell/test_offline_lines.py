"""Which commands may download packages?"""

import pytest

from tools.shell.offline_lines import find_download


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("npm install", "npm install"),
        ("npm --silent ci", "npm ci"),
        ("npm test", ""),
        ("npm", ""),
        ("yarn", "yarn"),
        ("yarn build", ""),
        ("npx tsc", "npx"),
        ("npx eslint .", ""),
        ("pip install -e .", "pip install"),
        ("python3 -m pip install x", "pip install"),
        ("python -m pytest", ""),
        ("uv pip install x", "pip install"),
        ("uv sync", "uv sync"),
        ("uv run pytest", ""),
        ("cargo add serde", "cargo add"),
        ("cargo fetch --offline", ""),
        ("pip install --no-index x", ""),
        ("go get x", "go get"),
        ("ls install", ""),
    ],
)
def test_a_command_that_may_download_is_named(line: str, name: str) -> None:
    assert find_download(line.split(), lambda path: path == "node_modules/.bin/eslint") == name
