"""The order in which a fault is mended, for runs that choose it."""

from tools.phases.failing import ANALYZE
from tools.phases.walking import ADVANCE, RETURN, STATUS

__all__ = ["PHASES"]

PHASES = (ADVANCE, RETURN, ANALYZE, STATUS)
