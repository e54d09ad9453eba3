"""Keras files that are made to do harm: their weights are all that is ever read, and only if the file is what it should be."""

import io
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import h5py
import keras
import numpy as np
import pytest

from scena.errors import ModelError
from scena.model.state.archive import WEIGHTS, unpacked_weights
from tests.faults.survivor.scenario import SurvivorScenario
from tests.faults.test_malicious_checkpoints import Payload


def archive(path: Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)


def weights(fill: Callable[[h5py.File], object]) -> bytes:
    memory = io.BytesIO()
    with h5py.File(memory, "w") as file:
        fill(file)
    return memory.getvalue()


def plain(file: h5py.File) -> None:
    file["layers/dense/vars/0"] = np.zeros(3)


def external(file: h5py.File) -> None:
    file["layers"] = h5py.ExternalLink("/etc/passwd", "/")


def soft(file: h5py.File) -> None:
    file["layers"] = h5py.SoftLink("/elsewhere")


def other_file(file: h5py.File) -> None:
    file.create_dataset("values", (8,), "u1", external=[("/etc/passwd", 0, 8)])


def endless(file: h5py.File) -> None:
    group = file.create_group("layers")
    group["again"] = group


def doubling(file: h5py.File) -> None:
    group = file.create_group("layers")
    for _ in range(60):
        inner = group.create_group("a")
        group["b"] = inner
        group = inner


def huge(file: h5py.File) -> None:
    file.create_dataset("values", (1 << 40,), "f8", chunks=(1 << 20,), compression="gzip")


def accept(path: Path) -> None:
    with unpacked_weights(path, 1000):
        pass


def damaged_stream(path: Path) -> None:
    archive(path, {WEIGHTS: weights(plain)})
    content = bytearray(path.read_bytes())
    content[60:300] = bytes(240)
    path.write_bytes(content)


def link_member(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as file:
        entry = zipfile.ZipInfo("model.weights.h5")
        entry.external_attr = 0o120777 << 16
        file.writestr(entry, "/etc/passwd")


CORPUS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a pickle": (lambda path: path.write_bytes(pickle.dumps(Payload(path.with_name("executed")))), "not a Keras model"),
    "a bomb": (lambda path: archive(path, {WEIGHTS: b"\0" * (200 << 20)}), "would unpack to 209,715,200 bytes"),
    "a path out of it": (
        lambda path: archive(path, {WEIGHTS: weights(plain), "../../evil.py": b""}),
        "which points outside it",
    ),
    "an absolute path": (
        lambda path: archive(path, {WEIGHTS: weights(plain), "/evil.py": b""}),
        "which points outside it",
    ),
    "a link": (link_member, "holds a link"),
    "no weights": (lambda path: archive(path, {"config.json": b"{}"}), "holds no model.weights.h5"),
    "weights that are a pickle": (
        lambda path: archive(path, {WEIGHTS: pickle.dumps(Payload(path.with_name("executed")))}),
        "is damaged",
    ),
    "weights in another file": (lambda path: archive(path, {WEIGHTS: weights(other_file)}), "are in another file"),
    "a link to another file": (lambda path: archive(path, {WEIGHTS: weights(external)}), "is a link to /etc/passwd"),
    "a link inside": (lambda path: archive(path, {WEIGHTS: weights(soft)}), "is a link"),
    "a group inside itself": (
        lambda path: archive(path, {WEIGHTS: weights(endless)}) or accept(path) or path.unlink(),
        "There is no",
    ),
    "groups that double": (
        lambda path: archive(path, {WEIGHTS: weights(doubling)}) or accept(path) or path.unlink(),
        "There is no",
    ),
    "values without end": (lambda path: archive(path, {WEIGHTS: weights(huge)}), "more than the whole model needs"),
    "a damaged stream": (damaged_stream, "is damaged"),
    "nothing": (lambda path: None, "There is no"),
}


@pytest.mark.parametrize("name", CORPUS)
def test_a_bad_model_is_refused(tmp_path: Path, name: str) -> None:
    make, message = CORPUS[name]
    make(tmp_path / "model.keras")
    with pytest.raises(ModelError, match=message):
        accept(tmp_path / "model.keras")
    assert not (tmp_path / "executed").exists()


def test_code_in_a_model_is_not_run(tmp_path: Path) -> None:
    """A file with a Lambda layer, whose code Keras would run when it builds the model: only the weights are looked at."""
    source = keras.Input((8,))
    executed = tmp_path / "executed"
    name = str(executed)
    model = keras.Model(source, keras.layers.Lambda(lambda x: (open(name, "w").close(), x)[1])(source))
    executed.unlink()
    model.save(tmp_path / "model.keras")
    built = SurvivorScenario(SurvivorScenario.default_params()).build()
    with pytest.raises(ModelError, match="do not fit the model"):
        built.load_weights(tmp_path / "model.keras")
    assert not executed.exists()
