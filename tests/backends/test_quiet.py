"""Loading Keras leaves the garbage collector as it was."""

import gc
import os
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from scena.backends.quiet import load_tensorflow

ROOT = Path(__file__).parents[2]
LOAD = """
import gc, threading
BEFORE
import scena

def load():
    try:
        import keras
        print("loaded,", keras.collector, end=" ")
    except RuntimeError as error:
        print(error, end=" ")

START
print(gc.isenabled(), gc.get_freeze_count() > 0)
"""
KERAS = "import gc; collector = gc.isenabled()\n"


@pytest.mark.parametrize(
    ("before", "start", "keras", "expected"),
    [
        ("", "load()", KERAS, "loaded, False True False"),
        ("", "one = threading.Thread(target=load); one.start(); one.join()", KERAS, "loaded, False True False"),
        ("", "load()", "raise RuntimeError('broken')", "broken True False"),
        ("gc.disable()", "load()", KERAS, "loaded, False False False"),
        ("gc.freeze()", "load()", KERAS, "loaded, False True True"),
    ],
    ids=["main thread", "thread", "failing import", "disabled by the user", "frozen by the user"],
)
def test_the_collector_is_off_only_while_keras_loads(
    tmp_path: Path, before: str, start: str, keras: str, expected: str
) -> None:
    (tmp_path / "keras.py").write_text(keras)
    done = subprocess.run(
        [sys.executable, "-c", LOAD.replace("BEFORE", before).replace("START", start)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == expected, done.stderr


def test_a_second_command_in_a_process_does_not_freeze_the_garbage_of_the_first() -> None:
    class Model:
        itself: "Model"

    load_tensorflow()
    model = Model()
    model.itself = model
    alive = weakref.ref(model)
    del model
    load_tensorflow()
    gc.collect()
    assert alive() is None
