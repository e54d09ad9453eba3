"""How long layers of an algebra take, beside the real Keras layer of the same block size.

    python benchmarks/layers.py [--rounds 15] [--threads 1]

A typed layer with N components and C channels runs one real operation on N × C channels; what it adds is the making of the block kernel.
Prints the median time of the real layer, forwards and with gradients, and the median of the others' ratios to it; in each round they take
turns, so that a busy machine is unfair to none of them. The bar of 1.15 holds for the cases marked with *; the others show where making
the kernel begins to count.
"""

import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.options import read_options
from scena.params import Params, param

BAR = 1.15
ALGEBRAS = {"type1": 2, "type2": 4, "type3": 8}


class Options(Params):
    """What to measure."""

    rounds: int = param(15, ge=3, help="how often each layer is run")
    threads: int = param(1, ge=1, help="threads of TensorFlow")


class Case(NamedTuple):
    """One size of a layer; channels are those of the whole block."""

    kind: str
    batch: int
    size: int
    channels: int
    kernel: int = 3
    bar: bool = True

    def __str__(self) -> str:
        if self.kind == "Dense":
            return f"Dense {self.channels}→{self.channels}, batch {self.batch}"
        return (
            f"Conv2D {self.kernel}×{self.kernel}, {self.channels}→{self.channels}, {self.batch}×{self.size}×{self.size}"
        )


CASES = [
    Case("Conv2D", 16, 32, 64),
    Case("Conv2D", 16, 16, 128),
    Case("Conv2D", 32, 14, 256, 1),
    Case("Conv2D", 16, 8, 256),
    Case("Dense", 256, 0, 512),
    Case("Dense", 256, 0, 1024),
    Case("Dense", 32, 0, 1024, bar=False),
    Case("Conv2D", 1, 8, 256, bar=False),
]


def make(case: Case, algebra: str | None) -> Any:
    """The layer: Keras' own, or that of an algebra."""
    import keras

    from scena.model.layers import AlgebraConv2D, AlgebraDense

    keywords: dict[str, Any] = {} if case.kind == "Dense" else {"padding": "same"}
    arguments = () if case.kind == "Dense" else (case.kernel,)
    if algebra is None:
        return getattr(keras.layers, case.kind)(case.channels, *arguments, **keywords)
    layer = AlgebraDense if case.kind == "Dense" else AlgebraConv2D
    return layer(case.channels // ALGEBRAS[algebra], *arguments, algebra=algebra, **keywords)


def compiled(layer: Any, x: Any, gradients: bool) -> Callable[[], Any]:
    """The layer as one graph, forwards or with the gradients of a training step."""
    import tensorflow as tf

    layer.build(x.shape)
    variables = [weight.value for weight in layer.trainable_weights]

    def forward() -> Any:
        return layer(x)

    def backward() -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.square(layer(x)))
        return tape.gradient(loss, [x, *variables])

    return tf.function(backward if gradients else forward)


def measure(functions: dict[str, Callable[[], Any]], rounds: int) -> tuple[float, list[float]]:
    """The median seconds of the first function, and for each other the median of its ratio to the first in the same round."""
    for function in functions.values():
        function()
        function()
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            start = time.perf_counter()
            for _ in range(3):
                function()
            times[name].append((time.perf_counter() - start) / 3)
    real, *others = times.values()
    ratios = [[own / first for own, first in zip(values, real, strict=True)] for values in others]
    return statistics.median(real), [statistics.median(values) for values in ratios]


def main() -> int:
    """Measures and prints; the exit status is 1 if a case is over the bar."""
    options = read_options(Options, __doc__)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ["TF_NUM_INTRAOP_THREADS"] = str(options.threads)
    import tensorflow as tf

    print(f"{'':51}{'real':>9}" + "".join(f"{name:>9}" for name in ALGEBRAS) + "   (ms, then ratios to real)")
    over = 0
    for case in CASES:
        shape = (
            (case.batch, case.channels) if case.kind == "Dense" else (case.batch, case.size, case.size, case.channels)
        )
        x = tf.random.normal(shape)
        for gradients in (False, True):
            functions = {name or "real": compiled(make(case, name), x, gradients) for name in (None, *ALGEBRAS)}
            real, ratios = measure(functions, options.rounds)
            over += case.bar and max(ratios) > BAR
            label = f"{'*' if case.bar else ' '} {case}{', gradients' if gradients else ''}"
            print(f"{label:<52}{real * 1e3:>8.2f}" + "".join(f"{ratio:>9.2f}" for ratio in ratios), flush=True)
    print(f"{over} of the cases with * are over {BAR}" if over else f"all cases with * are at most {BAR}")
    return int(over > 0)


if __name__ == "__main__":
    sys.exit(main())
