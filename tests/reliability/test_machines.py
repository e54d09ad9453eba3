"""Short runs of the state machines: `python -m tests.reliability.machines` has the long one."""

import pytest

from tests.reliability.machines.base import Machine, run
from tests.reliability.machines.checkpoints import CheckpointMachine
from tests.reliability.machines.parameters import ParametersMachine
from tests.reliability.machines.pipeline import PipelineMachine
from tests.reliability.machines.serving import BatcherMachine


@pytest.mark.parametrize(
    ("machine", "examples", "steps"),
    [(PipelineMachine, 2, 12), (CheckpointMachine, 10, 30), (ParametersMachine, 5, 30), (BatcherMachine, 20, 30)],
)
def test_nothing_goes_wrong_in_any_order(machine: type[Machine], examples: int, steps: int) -> None:
    assert run(machine, examples, seed=3, steps=steps) >= 5 * examples
