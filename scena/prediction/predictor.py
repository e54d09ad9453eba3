"""`Predictor`: samples in, predicted and post-processed samples out, lazily and in order."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count, starmap
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from scena.data.database import DataBase
from scena.data.image.params import DecodeImageParams
from scena.data.params import DataGeneratorParams, DataPipelineParams, PipelineMode
from scena.data.pipeline import DataPipeline
from scena.data.processor import steps_of
from scena.data.sample import Arrays, Batch, Cursor, Sample
from scena.data.spec import ArraySpec
from scena.data.stages.collate import Collator, split
from scena.data.stages.mapping import MappingStep, apply_steps, read_only
from scena.data.stages.rng import SampleRandom
from scena.prediction.params import PredictorParams
from scena.prediction.runtimes.base import UnbuiltModel, joined

if TYPE_CHECKING:
    import tensorflow as tf

    from scena.backends.base import PredictionEngine
    from scena.model.built import BuiltModel


T = TypeVar("T")
ENOUGH = 0.02
"""Seconds after which what Python does for a group of calls takes little time in comparison."""


class Predictor:
    """Predicts with one trained model. Create it once and keep it; it may be used from several threads.

    Args:
        params: batch size, device, what to keep.
        built: the model with its weights loaded, or opened by a runtime without Keras.
    """

    def __init__(self, params: PredictorParams, built: "BuiltModel | UnbuiltModel") -> None:
        self.params = params
        self.built = built
        self.mode = PipelineMode.EVALUATION if params.include_targets else PipelineMode.PREDICTION
        self._direct = {self.mode: DirectPath(built.data, self.mode, params.pipeline)}

    @cached_property
    def engine(self) -> "PredictionEngine":
        """What runs the model: the runtime that opened it, or the present Keras backend."""
        if isinstance(self.built, UnbuiltModel):
            return self.built.runtime
        from scena.backends.base import backend

        specs = self.built.data.input_layer_specs()
        return backend().create_prediction_engine(self.built.prediction_model, specs, eager=self.params.run_eagerly)

    @property
    def parallel_calls(self) -> int:
        """How many batches may be predicted at the same time; 1 if `predict_batch` is overridden."""
        return 1 if self._overrides_batches else getattr(self.engine, "parallel_calls", 1)

    @property
    def _overrides_batches(self) -> bool:
        return type(self).predict_batch is not Predictor.predict_batch

    @property
    def data(self) -> Any:
        """The data object: specs, processors, resources."""
        return self.built.data

    def outputs(self) -> dict[str, ArraySpec]:
        """The model's outputs by name; empty if the runtime does not know them."""
        if isinstance(self.built, UnbuiltModel):
            return self.built.runtime.outputs()
        return {name: ArraySpec.of(tensor) for name, tensor in self.built.prediction_model.output.items()}

    def predict(self, source: DataGeneratorParams) -> Iterator[Sample]:
        """Predicts all samples of a source, pre- and post-processed."""
        return self.predict_pipeline(self.create_pipeline(source))

    def predict_raw(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        """Predicts samples as a generator would hand them out.

        A list takes the short way if it is at most a batch, or if a runtime runs samples that nothing has to process: no pipeline is
        set up, and no thread prepares the next batch, so that it costs little more than the model itself. An iterator is read as it is
        asked for, batch by batch.
        """
        direct, pipeline = self._direct[self.mode], self.params.pipeline
        if isinstance(samples, Sequence) and pipeline.on_error == "raise" and direct.maps_before:
            number = min(len(samples), pipeline.limit or len(samples))
            if 0 < number <= pipeline.batch_size or (number and self._is_plain):
                return self._post_processed(self._predicted_directly(samples, number), self.mode)
        return self.predict_pipeline(self.create_pipeline(samples), ahead=isinstance(samples, Sequence))

    def predict_sample(self, sample: Sample) -> Sample:
        """Predicts one sample. Post-processing must leave exactly one of it."""
        direct = self._direct[self.mode]
        if direct.maps_before and direct.maps_after and self.params.pipeline.on_error == "raise":
            batch = direct.batch([sample])
            return direct.finish(batch.only_sample(self.predict_batch(batch)), 0)
        (predicted,) = self.predict_raw([sample])
        return predicted

    def predict_pipeline(self, pipeline: DataPipeline, *, ahead: bool = True) -> Iterator[Sample]:
        """Predicts the batches of a pipeline.

        Args:
            pipeline: its mode decides about targets and post-processing.
            ahead: prepare the next batch while the model works on this one; False for a source that arrives live.
        """
        return self._post_processed(chain.from_iterable(self._batches(pipeline, ahead)), pipeline.mode)

    def predict_dataset(self, dataset: "tf.data.Dataset") -> Iterator[Sample]:
        """Predicts a `tf.data.Dataset` of inputs, or of (inputs, targets), that are pre-processed already.

        Elements are dicts by name, batched or single; single ones are batched here, and padded where their specs are variable.
        """
        from scena.prediction.tf_dataset import dataset_batches

        batches = dataset_batches(dataset, self.data, self.params.pipeline.batch_size, self.params.include_targets)
        samples = chain.from_iterable(batch.samples(self.predict_batch(batch)) for batch in batches)
        return self._post_processed(samples, self.mode)

    def predict_batch(self, batch: Batch) -> Arrays:
        """The raw outputs of one batch."""
        return self.engine.predict(batch.inputs)

    def prepare_service(self, inputs: Arrays) -> None:
        """Before the first request of a service, with an example: lets the runtime choose how calls are fastest."""
        if isinstance(self.built, UnbuiltModel):
            self.built.runtime.prepare_service(inputs)

    def print_prediction(self, sample: Sample, print_fn: Callable[[str], None] = print) -> None:
        """Prints a predicted sample as the model wants it printed."""
        self.built.model._print_prediction(sample, self.built.data, print_fn)

    def sample_from_json(self, instance: Any) -> Sample:
        """The sample of one instance in a JSON request to `scena serve`. Override it to accept other instances.

        Raises:
            ValueError: the instance is not right; the message goes to the client.
        """
        from scena.prediction.serving.payload import fields_of_json, file_of_json

        content = file_of_json(instance)
        if content is not None:
            return self.sample_from_file(content, "instance")
        return self.sample_from_fields(fields_of_json(instance, self.data.input_layer_specs()))

    def sample_from_fields(self, fields: dict[str, Any]) -> Sample:
        """The sample of one value for each input of the model, from JSON or from a form sent to `scena serve`.

        A file is an open `UploadedFile`. If the scenario has processors for prediction, they get it where their generator would give
        a path; otherwise it is read as an image of the size of its input.

        Raises:
            ValueError: a value is not right; the message goes to the client.
        """
        from scena.prediction.serving.payload import sample_of_fields

        return sample_of_fields(fields, self.data.input_layer_specs(), self.reads_files, self.decoded_inputs)

    def sample_from_file(self, content: bytes, name: str) -> Sample:
        """The sample of a single file that was sent to `scena serve`. Override it to read other files.

        If the scenario has processors for prediction, they get an open file where their generator would give a path; otherwise the file is
        read as an image of the size of the model's input.

        Raises:
            ValueError: the file is not right; the message goes to the client.
        """
        from scena.prediction.serving.payload import sample_of_file

        return sample_of_file(content, name, self.data.input_layer_specs(), self.reads_files, self.decoded_inputs)

    @property
    def decoded_inputs(self) -> set[str]:
        """The inputs whose encoded images the pipeline decodes."""
        processors = self.data.processors(self.params.pipeline)
        return {processor.image for processor in processors if isinstance(processor, DecodeImageParams)}

    @property
    def reads_files(self) -> bool:
        """Whether processors of the scenario read the files that are sent to `scena serve`."""
        return any(self.mode in processor.modes for processor in self.data.params.pre_proc)

    def create_pipeline(self, source: DataGeneratorParams | Iterable[Sample]) -> DataPipeline:
        """The batches that a source is predicted in."""
        pipeline = self.params.pipeline.replace(limit_from_start=True)
        return self.built.data.create_pipeline(self.mode, pipeline, source)

    @property
    def _is_plain(self) -> bool:
        """Whether samples only have to be batched, in their order."""
        pipeline = self.params.pipeline
        batches = not pipeline.bucket_boundaries and not pipeline.batch_drop_remainder
        return batches and not self._direct[self.mode].pre_processes

    def _predicted_directly(self, samples: Sequence[Sample], number: int) -> Iterator[Sample]:
        direct, size = self._direct[self.mode], self.params.pipeline.batch_size
        call = size if self._overrides_batches else max(size, getattr(self.engine, "call_size", None) or 1)

        def predicted(first: int, last: int) -> list[Sample]:
            found: list[Sample] = []
            for batch in direct.batches(samples[first:last], size, first):
                found += batch.samples(joined([self.predict_batch(part) for part in batch.parts(call)]))
            return found

        if number <= size:
            return chain.from_iterable(starmap(predicted, [(0, number)]))
        return chain.from_iterable(self._in_order(*grouped(predicted, number, call, self.parallel_calls)))

    def _post_processed(self, samples: Iterator[Sample], mode: PipelineMode) -> Iterator[Sample]:
        direct = self._direct.get(mode) or self._direct.setdefault(
            mode, DirectPath(self.data, mode, self.params.pipeline)
        )
        if direct.maps_after:
            return direct.post_process(samples)
        return iter(self.data.create_post_proc(mode, self.params.pipeline).apply(samples))

    def _batches(self, pipeline: DataPipeline, ahead: bool) -> Iterator[Iterable[Sample]]:
        def predicted(batch: Batch) -> Iterable[Sample]:
            return batch.samples(self.predict_batch(batch))

        with pipeline.stream(repeat=False) as batches:
            yield from (self._in_order if ahead else map)(predicted, map(own_memory, batches))

    def _in_order(self, predict: Callable[[T], Iterable[Sample]], items: Iterable[T]) -> Iterator[Iterable[Sample]]:
        """What `predict` returns for each item, in their order, also for those before an error. Other threads prepare answers while the
        caller uses one.
        """
        calls = self.parallel_calls
        runtime = self.built.runtime if isinstance(self.built, UnbuiltModel) and calls > 1 else None
        waiting: deque[_Task[T]] = deque()
        with runtime.many_calls() if runtime else nullcontext():
            executor = ThreadPoolExecutor(max(1, calls - 1), "scena-predict")
            try:
                failure: Exception | None = None
                source = iter(items)
                while True:
                    try:
                        item = next(source)
                    except StopIteration:
                        break
                    except Exception as error:
                        failure = error
                        break
                    waiting.append(_Task(item, executor.submit(predict, item)))
                    if len(waiting) > calls + 1:  # enough for the others while this thread does a task
                        yield _oldest(waiting, predict, calls > 1)
                while waiting:
                    yield _oldest(waiting, predict, calls > 1)
                if failure is not None:
                    raise failure
            finally:
                executor.shutdown(cancel_futures=True)


@dataclass(slots=True)
class _Task(Generic[T]):
    item: T
    answer: Future[Iterable[Sample]]


def _oldest(waiting: deque[_Task[T]], predict: Callable[[T], Iterable[Sample]], helps: bool) -> Iterable[Sample]:
    """The answer of the oldest task. Until it is there, this thread does what no other thread has begun, if it `helps`."""
    while helps and not waiting[0].answer.done():
        task = next((task for task in waiting if task.answer.cancel()), None)
        if task is None:
            break
        task.answer = Future()
        try:
            task.answer.set_result(predict(task.item))
        except Exception as error:
            task.answer.set_exception(error)
    return waiting.popleft().answer.result()


def grouped(
    predict: Callable[[int, int], list[Sample]], number: int, size: int, threads: int
) -> tuple[Callable[[tuple[int, int]], list[Sample]], Iterator[tuple[int, int]]]:
    """A function that predicts several calls of samples, and what it is called with: about `ENOUGH` seconds of them each time, because a
    model leaves the caches cold for whatever Python does between two calls; fewer at the end, so that no thread waits long for another.

    Args:
        predict: predicts the samples between two positions.
        number: how many samples there are.
        size: of a call.
        threads: how many of them predict at the same time.
    """
    fastest = float("inf")

    def predict_group(limits: tuple[int, int]) -> list[Sample]:
        nonlocal fastest
        started = time.perf_counter()
        found = predict(*limits)
        fastest = min(fastest, (time.perf_counter() - started) / (limits[1] - limits[0]))
        return found

    def groups() -> Iterator[tuple[int, int]]:
        first = 0
        while first < number:
            enough = 1 if fastest == float("inf") else round(ENOUGH / fastest / size)
            calls = max(1, min(enough, (number - first) // (2 * threads * size)))
            last = min(first + calls * size, number)
            yield first, last
            first = last

    return predict_group, groups()


def own_memory(batch: Batch) -> Batch:
    """Copies arrays that lie in memory shared with worker processes, since a caller may keep any number of samples."""
    for arrays in (batch.inputs, batch.targets):
        for name, array in arrays.items():
            if array.base is not None:
                arrays[name] = np.array(array)
    return batch


class DirectPath:
    """Pre- and post-processing of a few samples in the calling thread, with exactly the results of a pipeline.

    Processors are created once. They may keep state, so each thread has its own.
    """

    def __init__(self, data: DataBase[Any], mode: PipelineMode, pipeline: DataPipelineParams) -> None:
        self._data = data
        self._mode = mode
        self._pre = steps_of(data.processors(pipeline), mode)
        self._post = steps_of(data.params.post_proc, mode)
        self.maps_before = not any(step.generating for step in self._pre) and not data.transforms_batches
        """Whether each sample gives exactly one and nothing changes the batch, so that this path applies."""
        self.maps_after = not any(step.generating for step in self._post)
        """The same for post-processing."""
        self._collator = Collator(data.input_layer_specs(), data.target_layer_specs(), data.padding_values(), mode)
        self._keys = self._collator.keys()
        self._local = threading.local()

    def batches(self, samples: Sequence[Sample], size: int, first: int = 0) -> list[Batch]:
        """The samples as batches of this size where variable axes are padded, else as a single batch."""
        if not self._collator.pads:
            return [self.batch(samples, first)]
        starts = range(0, len(samples), size)
        return [self.batch(samples[start : start + size], first + start) for start in starts]

    @property
    def pre_processes(self) -> bool:
        """Whether there is anything to do before samples are batched."""
        return bool(self._pre)

    def batch(self, samples: Sequence[Sample], first: int = 0) -> Batch:
        """The pre-processed samples as one batch; `first` is the index of the first one."""
        for index, sample in enumerate(samples, first):
            sample.index = index
        processed = samples
        if self._pre:
            steps, random = self._tools("pre")
            # a processor may change the dicts of a sample, and the caller may predict it again
            own = map(read_only, samples)
            processed = [apply_steps(steps, sample, random, first + row, 0) for row, sample in enumerate(own)]
        alone = len(processed) == 1
        arrays = self._collator.collate_one(processed[0]) if alone else self._collator.collate(processed)
        inputs, targets = split(self._keys, arrays)
        return Batch(inputs, targets, [sample.meta for sample in processed], len(processed), Cursor())

    def post_process(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        """Yields each sample after post-processing."""
        if self._post:
            yield from map(self.finish, samples, count())
        for index, sample in enumerate(samples):
            sample.index = index
            yield sample

    def finish(self, sample: Sample, index: int) -> Sample:
        """One sample after post-processing."""
        sample.index = index
        if not self._post:
            return sample
        steps, random = self._tools("post")
        return apply_steps(steps, sample, random, index, 0)

    def _tools(self, stage: str) -> tuple[list[MappingStep], SampleRandom]:
        """The steps of a stage and their random numbers, which depend on the index of a sample only."""
        made: tuple[list[MappingStep], SampleRandom] | None = getattr(self._local, stage, None)
        if made is None:
            steps = self._pre if stage == "pre" else self._post
            created = [MappingStep(step, step.params.create(self._data.params, self._mode)) for step in steps]
            made = created, SampleRandom(0, 0)
            setattr(self._local, stage, made)
        return made
