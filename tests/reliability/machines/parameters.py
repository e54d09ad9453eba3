"""Parameters {file, set, argv, round trip}: whatever was set in whichever way, writing and reading them changes nothing."""

import json
import shutil
import tempfile
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from scena.params import build, dump_words, dump_yaml, load, parse, to_raw
from tests.params.trees import Root, parsed
from tests.reliability.machines.base import Machine

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=6)
FLAGS: dict[str, st.SearchStrategy[list[str]]] = {
    "trainer.epochs": st.integers(1, 10**6).map(lambda value: [str(value)]),
    "trainer.tag": TEXTS.map(lambda text: [text]),
    "model.n_classes": st.integers(2, 99).map(lambda value: [str(value)]),
    "model.graph": st.sampled_from(["CNN", "MLP"]).map(lambda value: [value]),
    "data.processors": st.lists(st.sampled_from(["Augment", "Crop"]), max_size=4),
    "data.weights": st.lists(st.tuples(st.sampled_from("abc"), st.floats(-9, 9)), max_size=3, unique_by=lambda p: p[0]).map(
        lambda pairs: [f"{key}={value!r}" for key, value in pairs]
    ),
    "data.heads": st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from(["Wide", "Head"])), max_size=3, unique_by=lambda p: p[0]).map(
        lambda pairs: [f"{key}={value}" for key, value in pairs]
    ),
    "early_stopping": st.sampled_from(["EarlyStopping", "None"]).map(lambda value: [value]),
    "learning_rate": st.floats(1e-9, 10).map(lambda value: [repr(value)]) | st.just(["ExponentialDecay"]),
}  # fmt: skip


class ParametersMachine(Machine):
    """One tree of parameters, changed by flags, by files, and in Python."""

    @initialize()
    def start(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="scena-machine-", dir="/dev/shm"))
        self.default, self.params = parsed().params, parsed().params
        self.files = 0

    @rule(name=st.sampled_from(sorted(FLAGS)), data=st.data())
    def argv(self, name: str, data: st.DataObject) -> None:
        """Changes one flag."""
        words = data.draw(FLAGS[name])
        self.params = parse(self.params, [f"--{name}={words[0]}"] if len(words) == 1 else [f"--{name}", *words]).params

    @rule(full=st.booleans(), comments=st.booleans())
    def file(self, full: bool, comments: bool) -> None:
        """Writes what differs from the defaults into a file, and reads it."""
        self.files += 1
        path = self.folder / f"{self.files}.yaml"
        path.write_text(dump_yaml(self.params, self.default, full=full, comments=comments), encoding="utf-8")
        found = load(self.default, [path])
        assert found == self.params
        self.params = found

    @rule()
    def words(self) -> None:
        """Writes a command line, and reads it."""
        found = parse(self.default, dump_words(self.params, self.default)).params
        assert found == self.params
        self.params = found

    @rule()
    def raw(self) -> None:
        """Stores the parameters as a run does."""
        found = build(json.loads(json.dumps(to_raw(self.params))), Root)
        assert found == self.params
        self.params = found

    @rule(epochs=st.integers(1, 100), dense=st.integers(1, 100))
    def set(self, epochs: int, dense: int) -> None:
        """Changes attributes in Python."""
        self.params.trainer.epochs = epochs
        if hasattr(self.params.trainer.scenario.model.graph, "dense"):
            self.params.trainer.scenario.model.graph.dense = dense

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)
