"""What all machines share: how many steps they have taken, and how they are run."""

import logging
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis.stateful import RuleBasedStateMachine, invariant, run_state_machine_as_test

STEPS = 50
"""Steps of one example at most."""


class Machine(RuleBasedStateMachine):
    """A state machine that counts its steps."""

    taken = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).taken -= 1  # invariants are checked once before the first step

    @invariant()
    def count(self) -> None:
        """Counts a step."""
        type(self).taken += 1


def run(machine: type[Machine], examples: int, seed: int, steps: int = STEPS) -> int:
    """Runs this many examples; returns the steps they took. Raises what went wrong, with the steps that lead there."""
    machine.taken = 0
    settings = hypothesis.settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        print_blob=False,
        report_multiple_bugs=False,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.normal,
    )
    seeded: Any = hypothesis.seed(seed)(machine)
    disabled = logging.root.manager.disable
    logging.disable()
    try:
        run_state_machine_as_test(seeded, settings=settings)
    finally:
        logging.disable(disabled)
    return machine.taken
