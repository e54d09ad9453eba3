"""The model summary: totals that Keras agrees with, few lines, nested layers folded."""

import keras

from scena.model.built import ROWS, summarize


def test_layers_and_totals() -> None:
    inner = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3), keras.layers.Dropout(0.1)], name="inner")
    model = keras.Sequential(
        [keras.Input((4,)), inner, keras.layers.Dense(2, trainable=False, name="frozen")], name="model"
    )
    model.compile("adam")
    model.optimizer.build(model.trainable_variables)
    assert summarize(model, model.optimizer).splitlines() == [
        "layer   type                   parameters  trainable",
        "inner   Sequential (2 layers)          15         15",
        "frozen  Dense                           8          0",
        "total                                  23         15",
        "Memory: weights 92 bytes, optimizer 132 bytes",  # two moments, the step and the learning rate
    ]


def test_a_deep_network_takes_few_lines() -> None:
    layers = [part for n in range(30) for part in (keras.layers.Dense(5, name=f"dense{n}"), keras.layers.ReLU())]
    around = keras.Sequential([keras.Input((5,)), keras.Sequential(layers)])
    lines = summarize(around).splitlines()
    assert len(lines) == ROWS + 3 <= 12
    assert lines[1].split() == ["dense0", "Dense", "30", "30"] and lines[-3].split()[0] == "dense29"
    assert lines[5].split() == ["…", "23", "more", "layers", "690", "690"]
    assert lines[-2].split() == ["total", "900", "900"] and around.count_params() == 900
