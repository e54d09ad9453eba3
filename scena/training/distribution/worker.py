"""A worker of a distributed training: it builds the same model, executes the chief's commands and writes nothing."""

import base64
import logging
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scena.data.pipeline import BatchStream
from scena.data.sample import Cursor
from scena.errors import TrainingError, TrainingInterrupted
from scena.training.distribution.control_channel import Command, ControlChannel
from scena.training.distribution.replica_group import train_block, validate
from scena.training.params import TrainerParams
from scena.training.prepare import prepare_run
from scena.training.run import TrainingRun
from scena.training.stopping import StopRequests

if TYPE_CHECKING:
    from scena.scenario.scenario import ScenarioBase

logger = logging.getLogger(__name__)


def run_worker(channel: ControlChannel, params: TrainerParams[Any, Any], scenario: "ScenarioBase[Any, Any]") -> None:
    """Takes part in a training until the chief ends it.

    Raises:
        TrainingInterrupted: the training was stopped, and the chief saved it.
        TrainingError: the chief ended with an error.
        WorkerLostError: another process is lost.
    """
    cluster = channel.distribution.cluster
    assert cluster is not None
    _, _, content = channel.receive()
    params.random_seed = content["seed"]
    run = prepare_run(params, scenario, Path("."), layers=[], channel=channel)
    logger.info("Training as %s; the chief writes all results.", cluster.name(cluster.index))
    requests = StopRequests()
    with requests.listening():
        status = WorkerLoop(run, channel, requests).run()
    if status >= 128 or status == 75:
        raise TrainingInterrupted("The training was stopped; the chief has saved it.", status)
    if status:
        raise TrainingError("The chief ended with an error; see its output.")


class WorkerLoop:
    """Executes commands.

    Args:
        run: the same as the chief's.
        channel: where commands come from.
        requests: records signals, which are reported to the chief with the next step.
    """

    def __init__(self, run: TrainingRun, channel: ControlChannel, requests: StopRequests) -> None:
        self._run = run
        self._channel = channel
        self._requests = requests
        self._engine: Any = run.engine
        self._stream: BatchStream | None = None

    def run(self) -> int:
        """Runs until the chief ends; returns its exit status."""
        try:
            while True:
                command, number, content = self._channel.receive()
                if command is Command.END:
                    self._channel.close()
                    return number
                self._execute(command, number, content)
        finally:
            self._close()

    def _execute(self, command: Command, number: int, content: Any) -> None:
        if command is Command.OPEN:
            self._close()
            self._stream = self._run.train_data.stream(Cursor.from_json(content), repeat=bool(number))
        elif command is Command.CLOSE:
            self._close()
        elif command is Command.LAYERS:
            self._engine.begin(zlib.decompress(base64.b64decode(content)))
        elif command is Command.BROADCAST:
            self._engine.spread()
        elif command is Command.TRAIN:
            self._train(number)
        elif command is Command.VALIDATE and self._run.val_data is not None:
            validate(self._engine, self._run.val_data)

    def _train(self, steps: int) -> None:
        """Takes as many steps as the chief, in as many blocks as the shapes of this shard need."""
        assert self._stream is not None
        while steps > 0:
            block = self._stream.take_block(steps)
            if not block:
                raise TrainingError(
                    "The training data of this worker ended before that of the chief. Is it the same in all processes?"
                )
            train_block(self._engine, block, float(self._requests.reason is not None))
            steps -= len(block)

    def _close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None
