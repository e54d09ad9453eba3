"""Several models validated in one pass over the data, each on its own and, if they can vote, together."""

from collections.abc import Callable, Iterable, Iterator
from itertools import tee
from typing import TYPE_CHECKING, Any

from scena.data.params import DataGeneratorParams, PipelineMode
from scena.data.sample import Arrays, Batch, Sample
from scena.evaluation.evaluator import Evaluator
from scena.evaluation.lav import LAV, Progress, counted, unbatched

if TYPE_CHECKING:
    from scena.model.measures.given_outputs import GivenOutputs

Vote = Callable[[list[Arrays]], Arrays]
"""Combines the outputs of the models on one batch."""
NamedObserver = Callable[[str, Sample], None]
"""Called with the name of a model (or "voted") and each of its predicted samples."""

VOTED = "voted"


class MultiLAV:
    """Validates several models of one scenario on the same batches; each batch is prepared once.

    Args:
        lavs: a LAV for each model, by name; the first one's pipeline prepares the batches.
        vote: combines the models' outputs; the result is called "voted".
        evaluator: an evaluator for the voted outputs.
        measures: losses and metrics of the voted outputs.
    """

    def __init__(
        self,
        lavs: dict[str, LAV],
        vote: Vote | None = None,
        evaluator: Evaluator[Any] | None = None,
        measures: "GivenOutputs | None" = None,
    ) -> None:
        if not lavs:
            raise ValueError("A MultiLAV needs at least one model. Received: none.")
        self.lavs = lavs
        self.vote = vote
        self.evaluator: Evaluator[Any] = evaluator if evaluator is not None else Evaluator(None)
        self.measures = measures
        self._voted: dict[str, Any] = {}

    def run(
        self,
        source: DataGeneratorParams | Iterable[Sample],
        progress: Progress | None = None,
        observer: NamedObserver | None = None,
    ) -> dict[str, dict[str, Any]]:
        """The results of each model, and of their vote, on one source.

        Args:
            source: what to validate on.
            progress: called with the number of samples of each batch.
            observer: called with the name of a model and each of its predicted samples.
        """
        first = next(iter(self.lavs.values()))
        for lav in self.lavs.values():
            lav.begin(source, lav.callbacks)
        with first.create_pipeline(source).stream(repeat=False) as batches:
            for name, sample in self._interleaved(_Outputs(batch) for batch in counted(batches, progress)):
                for callback in self.lavs[name].callbacks if name in self.lavs else ():
                    callback.on_sample_end(source, sample)
                if observer is not None:
                    observer(name, sample)
        results = {name: lav.results for name, lav in self.lavs.items()}
        for lav in self.lavs.values():
            for callback in lav.callbacks:
                callback.on_lav_end(source, lav.results)
        return {**results, VOTED: self._voted} if self._votes else results

    def measure(self, batch: Batch) -> dict[str, tuple[Arrays, dict[str, float]]]:
        """Outputs of one batch, and its losses and metrics, by model and for the vote."""
        found = {name: lav.measure(batch) for name, lav in self.lavs.items()}
        if self._votes:
            assert self.vote is not None
            if self.measures is not None:
                self.measures.reset()
            _, outputs = self._measured(batch, self.vote([outputs for outputs, _ in found.values()]))
            measured = self.measures.results() if self.measures is not None else {}
            found[VOTED] = outputs, {name: value for name, value in measured.items() if isinstance(value, float)}
        return found

    def names(self) -> list[str]:
        """The names of its results: the models, and the vote."""
        return [*self.lavs, VOTED] if self._votes else list(self.lavs)

    def evaluator_of(self, name: str) -> Evaluator[Any]:
        """The evaluator of a model, or of the vote."""
        return self.lavs[name].evaluator if name in self.lavs else self.evaluator

    @property
    def _votes(self) -> bool:
        return self.vote is not None and len(self.lavs) > 1

    def _interleaved(self, outputs: "Iterable[_Outputs]") -> Iterator[tuple[str, Sample]]:
        """The samples of all models in turn, so that no batch has to wait for long."""
        copies = tee(outputs, len(self.lavs) + 1)
        streams = {
            name: lav.validate(_predicted(lav, copy))
            for (name, lav), copy in zip(self.lavs.items(), copies[1:], strict=True)
        }
        if self._votes:
            streams[VOTED] = self._validate_vote(copies[0])
        del copies  # an unused copy would keep every batch
        while streams:
            for name, stream in list(streams.items()):
                sample = next(stream, None)
                if sample is None:
                    del streams[name]
                else:
                    yield name, sample

    def _validate_vote(self, outputs: "Iterable[_Outputs]") -> Iterator[Sample]:
        assert self.vote is not None
        vote, lavs = self.vote, list(self.lavs.values())
        voted = (self._measured(shared.batch, vote([shared.of(lav) for lav in lavs])) for shared in outputs)
        post_proc = lavs[0].built.data.create_post_proc(PipelineMode.EVALUATION)
        if self.measures is not None:
            self.measures.reset()
        with self.evaluator:
            for sample in post_proc.apply(unbatched(voted)):
                self.evaluator.update_state(sample)
                yield sample
            measured = self.measures.results() if self.measures is not None else {}
            self._voted = {**measured, **self.evaluator.result()}

    def _measured(self, batch: Batch, outputs: Arrays) -> tuple[Batch, Arrays]:
        if self.measures is not None:
            self.measures.count(batch.inputs, batch.targets, outputs)
        return batch, outputs


def _predicted(lav: LAV, outputs: "Iterable[_Outputs]") -> Iterator[tuple[Batch, Arrays]]:
    for shared in outputs:
        yield shared.batch, shared.of(lav)


class _Outputs:
    """A batch and what each model makes of it, computed when it is first asked for."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self._outputs: dict[int, Arrays] = {}

    def of(self, lav: LAV) -> Arrays:
        if id(lav) not in self._outputs:
            self._outputs[id(lav)] = lav.predict_batch(self.batch)
        return self._outputs[id(lav)]
