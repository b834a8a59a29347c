"""The order in which a fault is mended, for runs that choose it."""

from tools.phases.offers import ADVANCE_PHASE, ANALYZE_FAILURE, PHASE_STATUS, RETURN_TO_FIX

__all__ = ["PHASES"]

PHASES = (ADVANCE_PHASE, RETURN_TO_FIX, ANALYZE_FAILURE, PHASE_STATUS)
