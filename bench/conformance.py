"""Does the server conform to the protocol? The protocol's own suite tests both revisions against the fixture mode.

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

from bench.node import SUITE, SuiteUnavailable, find_suite_command
from bench.processes import find_free_port, leave_nothing_running, run_listening
from bench.verdicts import ScenarioResult, build_results, load_checks, render_table

ROOT = Path(__file__).parents[1]
CACHE = ROOT / "bench" / ".cache" / "node"
WORK = ROOT / "bench" / ".cache" / "conformance"
REVISIONS = ("2025-11-25", "2026-07-28")
PATIENCE = 600.0


def run_suite(command: Sequence[str], url: str, revision: str) -> list[ScenarioResult]:
    """Run one revision's requirement set and read what it wrote."""
    output, log = WORK / revision, WORK / f"{revision}.log"
    suite_command = [*command, "server", "--url", url, "--requirements", revision, "--output-dir", str(output)]
    with log.open("w") as log_file:
        process = subprocess.run(
            suite_command, stdout=log_file, stderr=subprocess.STDOUT, timeout=PATIENCE, check=False
        )
    requirements = yaml.safe_load((CACHE / "node_modules" / SUITE / "requirements" / f"{revision}.yaml").read_text())
    results = build_results(requirements, load_checks(output))
    if bool(process.returncode) != any(verdict.failed for verdict in results):
        raise SuiteUnavailable(
            f"The suite exited with {process.returncode}, which contradicts its checks. Its output is in {log}."
        )
    return results


def main() -> int:
    leave_nothing_running()
    parser = argparse.ArgumentParser(prog="python -m bench.conformance", description=__doc__)
    parser.add_argument("--url", help="a server that is already running, instead of a new one")
    parser.add_argument("--requirements", choices=REVISIONS, help="only this revision")
    arguments = parser.parse_args()
    try:
        return _run(arguments.url, [arguments.requirements] if arguments.requirements else list(REVISIONS))
    except (SuiteUnavailable, RuntimeError) as trouble:
        print(trouble, file=sys.stderr)
        return 1


def _run(url: str | None, revisions: Sequence[str]) -> int:
    command = find_suite_command(CACHE)
    shutil.rmtree(WORK, ignore_errors=True)
    (WORK / "workspace").mkdir(parents=True)
    address = ("127.0.0.1", find_free_port())
    where = ["--http", f"{address[0]}:{address[1]}", "--no-auth", "--workspace", str(WORK / "workspace")]
    serve = [sys.executable, "-m", "tests.conformance.serve", *where]
    failed = False
    with nullcontext() if url else run_listening(serve, address, WORK / "server.log"):
        for revision in revisions:
            results = run_suite(command, url or f"http://{address[0]}:{address[1]}/mcp", revision)
            print(render_table(revision, results), flush=True)
            failed = failed or any(verdict.failed for verdict in results)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
