"""The batcher of the service: clients that come, give up and are too many; a model that is slow, fails, or loses samples."""

from collections import Counter
from concurrent.futures import Future
from typing import Any

from scena.data.sample import Sample
from scena.prediction.serving.batcher import Batcher, ClosedError, CountError, QueueFullError
from tests.reliability.simulation.world import World


def simulate(seed: int) -> Counter[str]:
    """One schedule; raises AssertionError if an answer is wrong, missing or late."""
    world = World(seed)
    rng = world.rng
    counts: Counter[str] = Counter()
    max_batch, max_queue = rng.choice([1, 2, 4, 8]), rng.choice([1, 4, 16])
    poisoned, merges = rng.choice([0.0, 0.0, 0.2]), rng.choice([0.0, 0.0, 0.1])
    predicted: Counter[int] = Counter()

    def predict(samples: Any) -> list[Sample]:
        world.sleep(rng.choice([0.0, 0.01, 0.1]))
        if len(samples) > 1 and rng.random() < merges:
            return [Sample(outputs=-1)]
        if any(sample.meta == "bad" for sample in samples):
            raise ValueError("bad sample")
        predicted.update(sample.inputs for sample in samples)
        return [Sample(outputs=sample.inputs) for sample in samples]

    batcher = Batcher(
        predict, max_batch=max_batch, max_delay=rng.choice([0.0, 0.005]), max_queue=max_queue, clock=world.clock,
        make_queue=world.queue, start=lambda run: world.start(run, "batcher"), observe=lambda size: sizes.append(size),
    )  # fmt: skip
    sizes: list[int] = []

    def client(number: int) -> None:
        world.sleep(rng.uniform(0, 0.3))
        count = rng.choice([1, 1, 2, 5, 9])
        samples = [
            Sample(inputs=100 * number + one, meta="bad" if rng.random() < poisoned else None) for one in range(count)
        ]
        waiting = batcher.waiting
        try:
            answer: Future[Any] = batcher.submit(samples)
        except QueueFullError:
            assert waiting and waiting + count > max_queue
            counts["refused"] += 1
            return
        except ClosedError:
            counts["closed"] += 1
            return
        if not world.wait(answer.done, rng.choice([None, None, 0.05])):
            counts["gave up"] += answer.cancel()
            return
        outcomes = answer.result()
        assert len(outcomes) == count
        for sample, outcome in zip(samples, outcomes, strict=True):
            if isinstance(outcome, CountError):
                assert merges
            elif isinstance(outcome, Exception):
                assert sample.meta == "bad", outcome
            else:
                assert sample.meta is None and outcome.outputs == sample.inputs, "the answer of another sample"
        counts["answered"] += 1

    clients = [
        world.start(lambda number=number: client(number), f"client {number}") for number in range(rng.randint(1, 8))
    ]  # type: ignore[misc]

    def close() -> None:
        if rng.random() < 0.3:
            world.sleep(rng.uniform(0, 0.3))  # while clients still come
        else:
            for one in clients:
                one.join()
        batcher.close()

    world.start(close, "shutdown")
    world.run()
    assert batcher.waiting == 0
    assert all(size <= max_batch for size in sizes)
    assert counts.total() == len(clients)
    assert merges or poisoned or all(times == 1 for times in predicted.values()), "a sample was predicted twice"
    return counts
