"""A training on several devices or in several processes: the chief's replica group sends commands, workers execute them.

A worker builds the same model and writes nothing. All processes take every step together.
"""

import base64
import logging
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from scena.backends.selection import WorkerLostError
from scena.backends.tensorflow.distributed_engine import DistributedEngine
from scena.data.pipeline import BatchStream, DataPipeline
from scena.data.sample import Batch, Cursor
from scena.errors import TrainingError, TrainingInterrupted
from scena.model.building import precision_policy
from scena.model.state.layer_state import Layers, LayerState
from scena.model.state.randomness import randomness_kept
from scena.training.distribution.control_channel import Command, ControlChannel
from scena.training.params import TrainerParams
from scena.training.prepare import compile_model, create_training_model, prepare_run
from scena.training.run import TrainingRun
from scena.training.steps import LONGEST_BLOCK, Steps, Validation, stacked
from scena.training.stopping import TIME_IS_UP, StopRequests

if TYPE_CHECKING:
    from scena.scenario.scenario import ScenarioBase

logger = logging.getLogger(__name__)


def create_engine(
    params: TrainerParams[Any, Any],
    scenario: "ScenarioBase[Any, Any]",
    channel: ControlChannel,
    model: keras.Model,
    specs: tuple[Any, Any],
    steps: int | None,
    quantized: list[LayerState],
) -> DistributedEngine:
    """Creates a model for each further device of this process, and the engine of all replicas.

    Args:
        model: the first replica of this process, which callbacks, checkpoints and exports use.
    """
    models: list[Any] = [model]
    for device in channel.distribution.devices[1:]:
        with tf.device(device), randomness_kept(), precision_policy(params.precision):
            built = scenario.build()
            models.append(create_training_model(params, built))
            Layers(built.root, models[-1]).quantize(quantized)
            compile_model(params, built, models[-1], steps, distributed=True)
    return DistributedEngine(channel.distribution, models, *specs)


class ReplicaGroup(Steps):
    """All replicas, as the chief sees them."""

    distributed = True

    def __init__(self, channel: ControlChannel, engine: DistributedEngine, train_data: DataPipeline) -> None:
        super().__init__(engine, train_data)
        self._channel = channel
        self._stale = True
        self._in_step = True

    @contextmanager
    def leading(self) -> Iterator[None]:
        status = 1
        try:
            yield
            status = 0
        except TrainingInterrupted as interruption:
            status = interruption.exit_status
            raise
        finally:
            if self._in_step:  # after a failed collective operation the workers notice it themselves
                with suppress(WorkerLostError):  # it is lost already
                    self._channel.send(Command.END, status)
                    self._channel.close()

    def begin(self) -> None:
        """Copies the layer state of the first replica to all others and compiles their steps."""
        content = self._engine.pack_layers()
        with self._together():
            self._channel.send(Command.LAYERS, content=base64.b64encode(zlib.compress(content)).decode())
            self._engine.begin(content)

    def retrace(self) -> None:
        self.begin()

    def _open(self, cursor: Cursor, repeat: bool) -> BatchStream:
        stream = super()._open(cursor, repeat)
        with self._together():
            self._channel.send(Command.OPEN, int(repeat), cursor.to_json())
        return stream

    def close(self) -> None:
        if self._stream is not None:
            super().close()
            with self._together():
                self._channel.send(Command.CLOSE)

    def train(self, block: list[Batch]) -> list[dict[str, float]]:
        self._make_ahead(block)
        logs: list[dict[str, float]] = []
        with self._together():
            if self._stale:
                self._channel.send(Command.BROADCAST)
                self._engine.spread()
                self._stale = False
            self._channel.send(Command.TRAIN, len(block))
            while block:
                count = self._engine.common_steps(len(block), len(block))
                found, flags = self._engine.train(**_arguments(block[:count]))
                logs += found
                self.asked_to_stop = self.asked_to_stop or flags > 0
                block = block[count:]
        return logs

    def validate(self, pipeline: DataPipeline, locally: Callable[[DataPipeline], Validation]) -> Validation:
        with self._together():
            self._channel.send(Command.VALIDATE)
            return _validate(self._engine, pipeline), {}  # no single process has the metrics of the whole validation

    def changed(self) -> None:
        """Marks weights or metrics as changed here, so that the next step broadcasts them first."""
        self._stale = True

    @contextmanager
    def _together(self) -> Iterator[None]:
        """A collective operation: if it fails here, the workers wait in vain, so no further command is sent."""
        self._in_step = False
        yield
        self._in_step = True


def _validate(engine: DistributedEngine, pipeline: DataPipeline) -> dict[str, float]:
    """Validates this process's shard; the results are those of all replicas."""
    engine.spread()
    with pipeline.stream(repeat=False) as stream:
        while block := stream.take_block(LONGEST_BLOCK):
            engine.test(**_arguments(block))
    return engine.collect()


def _arguments(block: list[Batch]) -> dict[str, Any]:
    return {
        "inputs": stacked(block, "inputs"),
        "targets": stacked(block, "targets"),
        "counted": [batch.counted for batch in block],
        "total": [batch.total for batch in block],
    }


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
        status = Worker(run, channel, requests).run()
    if status >= 128 or status == TIME_IS_UP:
        raise TrainingInterrupted("The training was stopped; the chief has saved it.", status)
    if status:
        raise TrainingError("The chief ended with an error; see its output.")


class Worker:
    """Executes the chief's commands; reports signals that it received with the next step."""

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
            _validate(self._engine, self._run.val_data)

    def _train(self, steps: int) -> None:
        """Takes as many steps as the chief, in as many blocks as the shapes of all shards need."""
        assert self._stream is not None
        block: list[Batch] = []
        while steps > 0:
            block = block or self._stream.take_block(steps)
            if not block:
                raise TrainingError(
                    "The training data of this worker ended before that of the chief. Is it the same in all processes?"
                )
            count = self._engine.common_steps(len(block), steps)
            self._engine.train(**_arguments(block[:count]), flag=float(self._requests.reason is not None))
            block, steps = block[count:], steps - count

    def _close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None
