"""How is a bug fixed step by step? Five phases, the tools of each, what each must deliver, and how many calls it has.

No run is in a phase unless it asked for one: the first `advance_phase` starts the first phase; the last one, or
`complete`, ends them. While a run is in a phase, the mode that holds these tools shows only what the phase lists and
what is in REACHABLE. Every other mode stays as it is.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace


class Phase(StrEnum):
    LOCALIZATION = "localization"
    UNDERSTANDING = "understanding"
    FIX = "fix"
    REGRESSION_CHECK = "regression_check"
    TARGET_FIX_VERIFICATION = "target_fix_verification"


class Step(Struct, frozen=True):
    phase: Phase
    budget: int
    """Calls of its own tools. Refused calls cost nothing."""
    outputs: tuple[str, ...]
    """What must be stated before the next phase."""
    tools: frozenset[str]


STEPS: tuple[Step, ...] = (
    Step(
        Phase.LOCALIZATION,
        15,
        ("suspect_files", "hypothesis"),
        frozenset(("grep", "glob", "web_search", "Read", "lsp_tool")),
    ),
    Step(
        Phase.UNDERSTANDING,
        20,
        ("root_cause",),
        frozenset(("Read", "lsp_tool", "web_get_contents", "grep", "glob")),
    ),
    Step(Phase.FIX, 15, ("modified_files",), frozenset(("Edit", "Read"))),
    Step(
        Phase.REGRESSION_CHECK,
        10,
        ("pass_to_pass_status",),
        frozenset(("bash", "Read", "analyze_test_failure")),
    ),
    Step(Phase.TARGET_FIX_VERIFICATION, 5, ("fail_to_pass_status",), frozenset(("bash",))),
)
OUTPUTS = tuple(name for step in STEPS for name in step.outputs)
BEGINNING = "advance_phase"
REACHABLE = frozenset((BEGINNING, "return_to_fix_phase", "get_phase_status")) | frozenset(
    ("TodoCreate", "TodoRead", "TodoStart", "TodoClaim", "TodoVerify")
)
"""What every phase can use besides its own tools and the meta tools; it costs nothing of a phase's budget."""
RETRIED = STEPS[2:]
"""The phases that start over when the run goes back to the fix."""
ALL_PASSED = "all_passed"
MOST_RETURNS = 10
KIND = "phases"
"""The kind of document that holds a run's log, under the run's name."""


def find_step(phase: str | None) -> Step | None:
    """None if the run is in no phase, or in one that this version does not know."""
    return next((step for step in STEPS if step.phase == phase), None)


def get_next_step(phase: str | None) -> Step | None:
    """The step that follows; the first if there was none, None after the last."""
    following = [step.phase for step in STEPS].index(Phase(phase)) + 1 if phase else 0
    return STEPS[following] if following < len(STEPS) else None


class Proof(Struct, frozen=True):
    """What is known of the project's tests from runs, not from claims."""

    ran: int = 0
    passed: bool = False
    """The latest test run passed."""
    changed: bool = False
    """Something in the workspace was changed since, or may have been."""

    @property
    def is_valid(self) -> bool:
        return self.ran > 0 and self.passed and not self.changed


class Log(Struct, frozen=True):
    """What a run did and stated in its phases."""

    outputs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    spent: Mapping[str, int] = field(default_factory=dict[str, int])
    proof: Proof = Proof()
    returns: tuple[str, ...] = ()
    """Why it went back to the fix, the latest times only."""

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> "Log":
        return cls(body["outputs"], body["spent"], Proof(**body["tests"]), tuple(body["returns"]))

    @property
    def body(self) -> dict[str, Any]:
        tests = {"ran": self.proof.ran, "passed": self.proof.passed, "changed": self.proof.changed}
        return {"outputs": dict(self.outputs), "spent": dict(self.spent), "tests": tests, "returns": [*self.returns]}

    def count_calls_left(self, step: Step) -> int:
        return max(0, step.budget - self.spent.get(step.phase, 0))

    def list_missing_outputs(self, step: Step) -> tuple[str, ...]:
        return tuple(name for name in step.outputs if not self.outputs.get(name))

    def add_outputs(self, outputs: Mapping[str, Any]) -> "Log":
        return replace(self, outputs={**self.outputs, **outputs})

    def count_call(self, phase: str) -> "Log":
        return replace(self, spent={**self.spent, phase: self.spent.get(phase, 0) + 1})

    def return_to_fix(self, reason: str) -> "Log":
        """Start the phases from the fix on over: their calls count as unspent, and what was stated about the tests no
        longer counts."""
        again = {step.phase for step in RETRIED}
        old = {"pass_to_pass_status", "fail_to_pass_status"}
        return replace(
            self,
            spent={phase: count for phase, count in self.spent.items() if phase not in again},
            outputs={name: value for name, value in self.outputs.items() if name not in old},
            returns=(*self.returns, reason)[-MOST_RETURNS:],
        )
