"""Somebody who is nobody in particular, and the Python that such a one may start."""

import subprocess
import sys

NOBODY = 65534


def python() -> str | None:
    """One that nobody may start, with the same libraries."""
    for program in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}", "/usr/bin/python3"):
        words = [program, "-c", "import sys; print(sys.version_info[:2])"]
        try:
            said = subprocess.run(words, user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True, text=True)
        except OSError:
            continue
        if said.stdout.strip() == str(tuple(sys.version_info[:2])):
            return program
    return None
