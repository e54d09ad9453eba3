"""Trackers get parameters by the names that a user types, the same ones during a training and from a finished run."""

import pytest

from scena.experiments.stored_run import flat_values
from scena.params import root_of, to_raw
from scena.params.settable import Index
from scena.scenario.finding import find_scenario
from scena.training.trackers.params import MlflowParams
from scena.training.trackers.values import flag_names, tracked_params, typed_values


@pytest.mark.parametrize(
    ("name", "some"),
    [
        ("tests.toy", {"train.batch_size", "data.count", "model.units", "learning_rate.lr", "trainer.epochs"}),
        ("examples.tutorial.full", {"data.pre_proc.processors.Shift.pixels", "val.batch_size"}),
        ("examples.imageclassification", {"data.images", "train.augment.RandomRotate.angle"}),
    ],
)
def test_parameters_have_the_names_of_their_flags(name: str, some: set[str]) -> None:
    trainer = find_scenario(name).default_trainer_params().replace(tracker=[MlflowParams(uri="http://there")])
    typed, root = typed_values(trainer), root_of(trainer=trainer)
    known = Index(to_raw(root), type(root))
    assert some <= set(typed) and not [flag for flag in typed if not known.get(flag)]
    assert tracked_params(flat_values(to_raw(trainer))) == typed
    assert not [flag for flag in typed if flag.startswith("tracker")]


def test_stored_paths_have_the_names_of_their_flags() -> None:
    names = flag_names(find_scenario("tests.toy").default_trainer_params())
    stored = ["gen.train.batch_size", "gen.train_val.count", "scenario.model.units", "epochs", "optimizer.class"]
    assert [names[path] for path in stored] == [
        "train.batch_size", "data.count", "model.units", "trainer.epochs", "optimizer",
    ]  # fmt: skip
