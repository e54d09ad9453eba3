"""The batcher of the service {submit, cancel, predict, fail, close}: each sample gets its own answer, and no client waits forever."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from scena.data.sample import Sample
from scena.prediction.serving.batcher import Batcher, ClosedError, CountError, QueueFullError
from tests.reliability.machines.base import Machine
from tests.reliability.simulation.world import World


class BatcherMachine(Machine):
    """Clients and a model whose steps are chosen one by one; the batcher's thread runs in between."""

    @initialize(max_batch=st.integers(1, 6), max_queue=st.integers(1, 12), seed=st.integers(0, 99))
    def start(self, max_batch: int, max_queue: int, seed: int) -> None:
        self.world = World(seed)
        self.max_queue = max_queue
        self.number = 0
        self.clients: list[tuple[list[Sample], Future[Any]]] = []
        self.mood = "good"
        self.closed = False
        self.batcher = Batcher(
            self.predict, max_batch=max_batch, max_delay=0.01, max_queue=max_queue, clock=self.world.clock,
            make_queue=self.world.queue, start=self.begin,
        )  # fmt: skip

    def begin(self, run: Callable[[], None]) -> Any:
        self.thread = self.world.start(run, "batcher")
        return self

    def join(self) -> None:
        """Waits for the batcher's thread, as `close` does."""
        self.work(10_000)
        assert self.thread.done

    def predict(self, samples: Any) -> list[Sample]:
        if self.mood == "fails" or any(sample.meta == "bad" for sample in samples):
            raise ValueError(self.mood)
        if self.mood == "merges":
            return [Sample(outputs=0)] * (len(samples) + 1)
        return [Sample(outputs=sample.inputs) for sample in samples]

    @precondition(lambda self: not self.closed)
    @rule(count=st.integers(1, 9), bad=st.booleans())
    def submit(self, count: int, bad: bool) -> None:
        samples = [Sample(inputs=self.number + one, meta="bad" if bad and one == 0 else None) for one in range(count)]
        self.number += count
        waiting = self.batcher.waiting
        try:
            self.clients.append((samples, self.batcher.submit(samples)))
        except QueueFullError:
            assert waiting and waiting + count > self.max_queue
        else:
            assert not waiting or waiting + count <= self.max_queue

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from(self.clients))[1].cancel()

    @rule(mood=st.sampled_from(["good", "good", "fails", "merges"]))
    def model(self, mood: str) -> None:
        self.mood = mood

    @rule(turns=st.integers(1, 8), seconds=st.sampled_from([0.0, 0.001, 0.02]))
    def work(self, turns: int, seconds: float = 1.0) -> None:
        """Lets the batcher run, and time pass."""
        for _ in range(turns):
            if self.thread.done:
                break
            if self.thread.ready():
                self.thread.resume()
                assert self.thread.error is None, self.thread.error
            elif self.thread.deadline is None:
                break
            else:
                self.world.now = min(self.thread.deadline, self.world.now + max(seconds, 1e-4))
        self.check()

    def check(self) -> None:
        for samples, answer in self.clients:
            if not answer.done() or answer.cancelled():
                continue
            for sample, outcome in zip(samples, answer.result(), strict=True):
                if not isinstance(outcome, Exception):
                    assert outcome.outputs == sample.inputs and sample.meta is None
                elif not isinstance(outcome, CountError):
                    assert str(outcome) == "fails" or sample.meta == "bad"

    @precondition(lambda self: not self.closed)
    @rule(chance=st.integers(0, 9))
    def close(self, chance: int) -> None:
        if chance:
            return
        self.closed = True
        self.batcher.close()
        assert all(answer.done() for _, answer in self.clients), "a client waits forever"
        try:
            self.batcher.submit([Sample(inputs=0)])
        except ClosedError:
            return
        raise AssertionError("a closed batcher took a sample")

    def teardown(self) -> None:
        if hasattr(self, "world"):
            if not self.closed:
                self.batcher.close()
                assert all(answer.done() for _, answer in self.clients), "a client waits forever"
            self.world.end()
