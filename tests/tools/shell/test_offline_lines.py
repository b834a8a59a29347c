"""Which commands surely need another machine, and which may download packages?"""

import pytest

from tools.shell.lines import read_line
from tools.shell.offline_lines import find_download
from tools.shell.surroundings import Surroundings
from tools.shell.vain_lines import find_failure


def find(line: str, network: bool = True) -> str:
    read = read_line(line)
    assert read
    vain = find_failure(read, ".", Surroundings(lambda _: True, lambda _: "file", False, "", network))
    return vain.because if vain else ""


NEEDS_NETWORK = {
    "git push": "git push",
    "git push -u origin main": "git push",
    "pytest -q && git push": "git push",
    "git -C src push origin": "git push",
    "git clone https://github.com/a/b.git": "git clone",
    "git clone git@github.com:a/b.git b": "git clone",
    "curl -sSL https://example.org/x | jq .": "curl",
    "curl example.org": "curl",
    "timeout 20 wget -q https://example.org/a.tgz && tar xf a.tgz": "wget",
    "ssh host ls": "ssh",
    "scp a.txt me@host:/tmp": "scp",
    "rsync -a src/ me@host:src": "rsync",
    "ping -c 1 example.org": "ping",
    "gh pr list": "gh",
    "npm publish": "npm",
    "kubectl get pods": "kubectl",
}
MAY_DO_WITHOUT = (
    *("git push ./other.git main", "git push --dry-run", "git push $where", "git clone ./other.git", "git push --help"),
    *("curl http://localhost:8000/", "curl --unix-socket s.sock http://x.org/", "curl file:///tmp/x", "curl $url"),
    *("curl http://127.0.0.1:8000", "curl --version", "curl https://example.org || true", "curl https://a.org; ls"),
    *(
        "ssh -V",
        "rsync -a src/ other/",
        "npm install",
        "npx tool",
        "gh --version",
        "kubectl version",
        "scp a.txt b.txt",
    ),
    *("ping -c 1 localhost", "git ls-remote .", "curl http://web.local/x", "curl $opt https://example.org"),
)


@pytest.mark.parametrize("line", NEEDS_NETWORK)
def test_a_command_that_needs_another_machine_cannot_succeed_without_a_network(line: str) -> None:
    assert find(line, network=False) == f"`{NEEDS_NETWORK[line]}` needs the network, and commands have none here"
    assert find(line) == ""


@pytest.mark.parametrize("line", MAY_DO_WITHOUT)
def test_what_may_do_without_the_network_is_asked_about(line: str) -> None:
    assert find(line, network=False) == ""


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
