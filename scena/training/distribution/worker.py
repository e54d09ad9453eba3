"""A process that is not the chief: it builds the same model, does what the chief says, and writes nothing."""

import base64
import logging
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scena.data.batch import Cursor
from scena.data.pipeline import BatchStream
from scena.training.distribution.control_channel import ControlChannel, Order
from scena.training.distribution.replica_group import train_block, validate
from scena.training.errors import TrainingError, TrainingInterrupted
from scena.training.params import TrainerParams
from scena.training.prepare import prepare_run
from scena.training.run import TrainingRun
from scena.training.stopping import StopRequests

if TYPE_CHECKING:
    from scena.scenario.scenario import ScenarioBase

logger = logging.getLogger(__name__)


def follow(channel: ControlChannel, params: TrainerParams[Any, Any], scenario: "ScenarioBase[Any, Any]") -> None:
    """Takes part in a training until the chief ends it.

    Raises:
        TrainingInterrupted: the training was stopped, and the chief has saved it.
        TrainingError: the chief ended with an error.
        WorkerLostError: another process is gone.
    """
    cluster = channel.distribution.cluster
    assert cluster is not None
    _, _, content = channel.hear()
    params.random_seed = content["seed"]
    run = prepare_run(params, scenario, Path("."), layers=[], channel=channel)
    logger.info("Training as %s; the chief writes all results.", cluster.name(cluster.index))
    requests = StopRequests()
    with requests.listening():
        status = FollowingWorker(run, channel, requests).run()
    if status >= 128 or status == 75:
        raise TrainingInterrupted("The training was stopped; the chief has saved it.", status)
    if status:
        raise TrainingError("The chief ended with an error; its own output says which.")


class FollowingWorker:
    """Carries out orders.

    Args:
        run: the same as the chief's.
        channel: where orders come from.
        requests: notices signals, which the chief is told about with the next step.
    """

    def __init__(self, run: TrainingRun, channel: ControlChannel, requests: StopRequests) -> None:
        self._run = run
        self._channel = channel
        self._requests = requests
        self._engine: Any = run.engine
        self._stream: BatchStream | None = None

    def run(self) -> int:
        """Until the end; returns the status that the chief leaves with."""
        try:
            while True:
                order, number, content = self._channel.hear()
                if order is Order.END:
                    self._channel.part()
                    return number
                self._carry_out(order, number, content)
        finally:
            self._close()

    def _carry_out(self, order: Order, number: int, content: Any) -> None:
        if order is Order.OPEN:
            self._close()
            self._stream = self._run.train_data.stream(Cursor.from_json(content), repeat=bool(number))
        elif order is Order.CLOSE:
            self._close()
        elif order is Order.LAYERS:
            self._engine.begin(zlib.decompress(base64.b64decode(content)))
        elif order is Order.SPREAD:
            self._engine.spread()
        elif order is Order.TRAIN:
            self._train(number)
        elif order is Order.VALIDATE and self._run.val_data is not None:
            validate(self._engine, self._run.val_data)

    def _train(self, steps: int) -> None:
        """As many steps as the chief takes, in as many blocks as this process's shapes ask for."""
        assert self._stream is not None
        while steps > 0:
            block = self._stream.take_block(steps)
            if not block:
                raise TrainingError(
                    "The training data ended before that of the chief: is it the same in all processes?"
                )
            train_block(self._engine, block, float(self._requests.reason is not None))
            steps -= len(block)

    def _close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None
