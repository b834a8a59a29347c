"""The order in which a fault is mended, for runs that choose it."""

from tools.phases.failing import ANALYZE_FAILURE
from tools.phases.walking import ADVANCE_PHASE, PHASE_STATUS, RETURN_TO_FIX

__all__ = ["PHASES"]

PHASES = (ADVANCE_PHASE, RETURN_TO_FIX, ANALYZE_FAILURE, PHASE_STATUS)
