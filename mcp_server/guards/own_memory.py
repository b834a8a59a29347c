"""Can other programs of this account read our memory, where secrets are? Not on Linux, unless they run as root.

Our process is made non-dumpable: no debugger attaches to it, no core file is written, and its `/proc/PID/environ` and
`/proc/PID/mem` belong to root. A program that we start is readable again once it begins, because the kernel resets this
at every `exec`. Between fork and exec it is not: code that makes namespaces there has to allow it first, or it could
not write its own `uid_map`.
"""

import resource
import sys
from contextlib import suppress

SET_DUMPABLE = 4
"""`PR_SET_DUMPABLE` of prctl."""


def forbid_memory_reading() -> bool:
    """Return False if this system cannot do so; then only core files are turned off."""
    if sys.platform != "linux":
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        return False
    import ctypes  # `watch` loads it in every server anyway

    return bool(ctypes.CDLL(None).prctl(SET_DUMPABLE, 0, 0, 0, 0) == 0)
