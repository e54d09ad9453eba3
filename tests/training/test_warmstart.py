"""Warm starts: from exports, runs, checkpoints and files; partial, with rules, and with a table of what was loaded."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from scena.commands.main import main
from scena.errors import TrainingError
from scena.training.params import WarmStartParams
from scena.training.prepare import prepare_run
from scena.training.warmstart import WarmStarter, match
from tests.toy.scenario import ToyScenario
from tests.training.toy_runs import KeepWeights, toy_params, train_toy


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A run with its last weights."""
    keep = KeepWeights()
    directory = tmp_path_factory.mktemp("source") / "run"
    train_toy(directory, [keep], export_best=True, export_final=True, random_seed=1)
    return directory, keep.weights


def started(tmp_path: Path, units: int = 4, **settings: Any) -> list[np.ndarray]:
    """The first weights of a training that starts from stored ones."""
    params = toy_params(tmp_path, warmstart=WarmStartParams(**settings), scenario__model__units=units)
    run = prepare_run(params, ToyScenario(params.scenario), tmp_path)
    return [np.asarray(weight.value) for weight in run.model.trainable_variables]


def equal(one: list[np.ndarray], other: list[np.ndarray]) -> list[bool]:
    return [bool(a.shape == b.shape and (a == b).all()) for a, b in zip(one, other, strict=True)]


def test_every_kind_of_source(tmp_path: Path, trained: Any) -> None:
    directory, weights = trained
    newest = max((directory / "checkpoint").iterdir(), key=lambda path: int(path.name))
    assert all(equal(started(tmp_path, model=directory / "export"), weights))
    assert all(equal(started(tmp_path, model=newest), weights))
    best = started(tmp_path, model=directory / "best")
    assert all(equal(started(tmp_path, model=directory), best))  # a run: its best model
    paths = [f"root/toy_graph/{layer}/{name}" for layer in ("hidden", "logits") for name in ("kernel", "bias")]
    save_file(dict(zip(paths, weights, strict=True)), tmp_path / "w.safetensors")
    assert all(equal(started(tmp_path, model=tmp_path / "w.safetensors"), weights))


def test_without_a_warm_start_the_weights_are_others(tmp_path: Path, trained: Any) -> None:
    assert not any(equal(started(tmp_path), trained[1])[::2])


def test_a_training_goes_on_from_the_stored_weights_as_the_seed_says(tmp_path: Path, trained: Any) -> None:
    """Building a second model to read an export must not change order, dropout or anything else of the run."""
    directory, _ = trained
    first, second = KeepWeights(), KeepWeights()
    newest = max((directory / "checkpoint").iterdir(), key=lambda path: int(path.name))
    train_toy(tmp_path / "export", [first], warmstart=WarmStartParams(model=directory / "export"))
    train_toy(tmp_path / "checkpoint", [second], warmstart=WarmStartParams(model=newest))
    assert all(equal(first.weights, second.weights))


def test_a_changed_layer_is_an_error_with_a_table_unless_partial(tmp_path: Path, trained: Any) -> None:
    directory, _ = trained
    with pytest.raises(TrainingError) as error:
        started(tmp_path, units=5, model=directory / "export")
    text = str(error.value)
    assert "3 of 4 weights are missing or do not fit" in text
    assert (
        "does not fit" in text
        and "is float32 (8, 5)" in text
        and "is float32 (8, 4)" in text
        and "--warmstart.allow_partial" in text
    )


def test_a_partial_start_says_what_it_did(tmp_path: Path, trained: Any, caplog: pytest.LogCaptureFixture) -> None:
    directory, weights = trained
    with caplog.at_level(logging.INFO, logger="scena"):
        made = started(tmp_path, units=5, model=directory / "export", allow_partial=True)
    assert [a.shape == b.shape and (a == b).all() for a, b in zip(made, weights, strict=True)] == [False] * 3 + [True]
    table = caplog.text
    assert table.count("does not fit") == 3 and table.count("loaded  ") == 1


def test_include_and_exclude_choose_weights(tmp_path: Path, trained: Any) -> None:
    directory, weights = trained
    kernels = started(tmp_path, model=directory / "export", include=".*/kernel", exclude=".*/logits/.*")
    fresh = started(tmp_path)
    assert equal(kernels, weights) == [True, False, False, False]
    assert equal(kernels, fresh) == [False, True, True, True]


def test_rename_and_trimmed_prefixes(tmp_path: Path, trained: Any) -> None:
    _, weights = trained
    names = ["old/net/a/kernel", "old/net/a/bias", "old/net/b/kernel", "old/net/b/bias"]
    save_file(dict(zip(names, weights, strict=True)), tmp_path / "w.safetensors")
    rules = ["^net/a/=root/toy_graph/hidden/", "^net/b/=root/toy_graph/logits/"]
    made = started(tmp_path, model=tmp_path / "w.safetensors", trim_prefix="old/", rename=rules)
    assert all(equal(made, weights))
    with pytest.raises(TrainingError, match="no weight was found"):
        started(tmp_path, model=tmp_path / "w.safetensors", allow_partial=True)


def test_nothing_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="it does not exist"):
        started(tmp_path, model=tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(TrainingError, match="it holds no weights"):
        started(tmp_path, model=tmp_path / "empty")


def test_rules_are_checked_at_once() -> None:
    with pytest.raises(ValueError, match="OLD=NEW.*received 'a'"):
        WarmStartParams(rename=["a"])
    with pytest.raises(ValueError, match="include is not a regular expression"):
        WarmStartParams(include="(")


@pytest.mark.parametrize(
    ("targets", "sources", "pairs"),
    [
        (["a/k", "b/k"], ["b/k", "a/k"], {0: 1, 1: 0}),  # by path
        (["d/k", "d_1/k"], ["d_1/k", "d_2/k"], {0: 0, 1: 1}),  # numbered from elsewhere: by order
        (["d/k", "d_1/k", "d_2/k"], ["d_1/k", "d/k"], {0: 1, 1: 0}),  # one layer more: by path
        (["d/k"], ["e/k"], {}),
    ],
)
def test_paths_are_matched(targets: list[str], sources: list[str], pairs: dict[int, int]) -> None:
    shape = (2,)
    assert match([(name, shape) for name in targets], [(name, shape) for name in sources]).pairs == pairs


class Ones(WarmStartParams, builds=":OnesStarter"):
    """A warm starter of one's own."""


class OnesStarter(WarmStarter):
    def apply(self, weights: Any) -> Any:
        for weight in weights:
            weight.assign(np.ones(weight.shape))


def test_a_warm_starter_of_ones_own_is_selectable(tmp_path: Path, capsys: Any) -> None:
    assert main(["params", "tests.toy", "--warmstart", "Ones", "--warmstart.model", "x"]) == 0
    assert "Ones" in capsys.readouterr().out
    params = toy_params(tmp_path, warmstart=Ones(model=Path("x")))
    run = prepare_run(params, ToyScenario(params.scenario), tmp_path)
    assert all((np.asarray(weight.value) == 1).all() for weight in run.model.trainable_variables)


def test_vocabularies_and_statistics_come_along(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """From an export and from a checkpoint; a layer that is excluded keeps its own."""
    from tests.derived.scenario import DerivedScenario

    kinds = ["normalization", "string", "discretization"]
    settings: dict[str, Any] = {"epochs": 1, "export_best": True, "verify_export": False}
    train_toy(tmp_path / "run", scenario=DerivedScenario, scenario__model__kinds=kinds, **settings)
    newest = max((tmp_path / "run" / "checkpoint").iterdir(), key=lambda path: int(path.name))
    expected = None
    for source in (tmp_path / "run" / "best", newest):
        settings = {"scenario__model__kinds": kinds, "scenario__model__adapt": False, "random_seed": 9}
        params = toy_params(tmp_path, DerivedScenario, warmstart=WarmStartParams(model=source), **settings)
        with caplog.at_level(logging.INFO, logger="scena"):
            parts = prepare_run(params, DerivedScenario(params.scenario), tmp_path).built.root.graph.parts
        found = [
            np.asarray(parts["normalization"].mean).tolist(),
            parts["string"].get_vocabulary(),
            parts["discretization"].bin_boundaries,
        ]
        assert abs(found[0][0][0] - 50) < 5 and "dark\u2028blue" in found[1] and len(found[2]) == 3
        assert expected is None or found == expected
        expected = found
    assert "string_lookup" in caplog.text and "has its stored state" in caplog.text
    params.warmstart.exclude = ".*string_lookup.*"
    parts = prepare_run(params, DerivedScenario(params.scenario), tmp_path).built.root.graph.parts
    assert parts["string"].get_vocabulary() == ["[UNK]"]


def test_quantized_weights_do_not_fit_others(tmp_path: Path) -> None:
    from tests.derived.scenario import DerivedScenario

    settings: dict[str, Any] = {"scenario__model__kinds": ["quantized"], "epochs": 1}
    settings |= {"export_best": True, "verify_export": False}
    train_toy(tmp_path / "run", scenario=DerivedScenario, **settings)
    params = toy_params(
        tmp_path, DerivedScenario, warmstart=WarmStartParams(model=tmp_path / "run"), scenario__model__adapt=False,
        scenario__model__kinds=["quantized"],
    )  # fmt: skip
    with pytest.raises(TrainingError, match=r"does not fit .*kernel +is float32 \(4, 3\), .*kernel is int8 \(4, 3\)"):
        prepare_run(params, DerivedScenario(params.scenario), tmp_path)
