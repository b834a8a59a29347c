"""Does the server keep to the protocol? The protocol's own suite, both revisions, against the fixture mode.

There is no list of expected failures: a scored scenario passes or this fails.
"""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import yaml

from bench.node import SUITE, SuiteUnavailable, suite
from bench.processes import free_port, leave_nothing_running, listening
from bench.verdicts import ScenarioResult, collected, table, verdicts

HOUSE = Path(__file__).parents[1]
CACHE = HOUSE / "bench" / ".cache" / "node"
WORK = HOUSE / "bench" / ".cache" / "conformance"
REVISIONS = ("2025-11-25", "2026-07-28")
PATIENCE = 600.0


def examined(command: Sequence[str], url: str, revision: str) -> list[ScenarioResult]:
    """Run one revision's requirement set and read what it wrote."""
    output, log = WORK / revision, WORK / f"{revision}.log"
    asked = [*command, "server", "--url", url, "--requirements", revision, "--output-dir", str(output)]
    with log.open("w") as told:
        ended = subprocess.run(asked, stdout=told, stderr=subprocess.STDOUT, timeout=PATIENCE, check=False)
    requirements = yaml.safe_load((CACHE / "node_modules" / SUITE / "requirements" / f"{revision}.yaml").read_text())
    found = verdicts(requirements, collected(output))
    if bool(ended.returncode) != any(verdict.failed for verdict in found):
        raise SuiteUnavailable(
            f"The suite ended with {ended.returncode}, which is not what its checks say. Its words are in {log}."
        )
    return found


def main() -> int:
    leave_nothing_running()
    parser = argparse.ArgumentParser(prog="python -m bench.conformance", description=__doc__)
    parser.add_argument("--url", help="a server that already runs, instead of one started here")
    parser.add_argument("--requirements", choices=REVISIONS, help="one revision alone")
    asked = parser.parse_args()
    try:
        return _run(asked.url, [asked.requirements] if asked.requirements else list(REVISIONS))
    except (SuiteUnavailable, RuntimeError) as trouble:
        print(trouble, file=sys.stderr)
        return 1


def _run(url: str | None, revisions: Sequence[str]) -> int:
    command = suite(CACHE)
    shutil.rmtree(WORK, ignore_errors=True)
    (WORK / "workspace").mkdir(parents=True)
    address = ("127.0.0.1", free_port())
    where = ["--http", f"{address[0]}:{address[1]}", "--no-auth", "--workspace", str(WORK / "workspace")]
    serve = [sys.executable, "-m", "tests.conformance.serve", *where]
    failed = False
    with nullcontext() if url else listening(serve, address, WORK / "server.log"):
        for revision in revisions:
            found = examined(command, url or f"http://{address[0]}:{address[1]}/mcp", revision)
            print(table(revision, found), flush=True)
            failed = failed or any(verdict.failed for verdict in found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
