"""Commands and files of classification-api: they stand for the same parameters, and train."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from scena.commands.main import main
from scena.params import ParamsError, load, parse, root_of
from scena.scenario.classification.scenario import ClassificationScenario
from tests.zygote import Zygote

# the example of its documentation, with the folders and the data set replaced
COMMAND = """
  --model.name MobileNetV2
  --model.num_classes 10
  --model.input_size 32 32 3
  --num_epochs 20
  --checkpoint_dir checkpoint
  --log_dir log
  --export.dir exported
  --dataloader.name NAME
  --dataloader.train_list RandomHorizontalFlip Normalize
  --dataloader.val_list Normalize
  --dataloader.val_split_id validation
  --dataloader.train_split_id train
  --dataloader.batch_size 64
  --optimizer.lr 0.0001
"""
CONF = """
model:
  name: MobileNetV2
  num_classes: 10
  input_size: [32, 32, 3]
num_epochs: 20
checkpoint_dir: checkpoint
log_dir: log
export:
  dir: exported
dataloader:
  name: NAME
  train_list: [RandomHorizontalFlip, Normalize]
  val_list: [Normalize]
  val_split_id: validation
  train_split_id: train
  batch_size: 64
optimizer:
  lr: 0.0001
"""
OURS = """
  --model.name MobileNetV2 --model.num_classes 10 --model.input_size 32 32 3 --trainer.epochs 20
  --trainer.checkpoint_dir checkpoint --trainer.log_dir log --trainer.export_dir exported
  --data.dataset NAME --train.augment RandomHorizontalFlip Normalize --val.augment Normalize
  --train.split train --val.split validation --train.batch_size 64 --val.batch_size 64 --learning_rate.lr 0.0001
"""


def root() -> Any:
    return root_of(trainer=ClassificationScenario.default_trainer_params())


def parsed(words: str) -> Any:
    return parse(root(), words.split()).raw


def test_command_and_file_stand_for_our_flags(tmp_path: Path) -> None:
    (tmp_path / "conf.yml").write_text(CONF)
    assert parsed(COMMAND) == parsed(OURS)
    assert parsed(f"--yaml_config {tmp_path / 'conf.yml'}") == parsed(OURS)
    assert load(root(), [tmp_path / "conf.yml"]).trainer.epochs == 20
    both = parsed(f"--yaml_config {tmp_path / 'conf.yml'} --num_epochs 3 --dataloader.batch_size 8")
    assert both == parsed(
        OURS.replace("--trainer.epochs 20", "--trainer.epochs 3").replace("batch_size 64", "batch_size 8")
    )


def test_a_file_of_foreign_names_only_is_a_file_of_parameters(tmp_path: Path) -> None:
    (tmp_path / "conf.yml").write_text("num_epochs: 3\nconfiguration: {with_mixed_precision: true}\n")
    assert parsed(f"--config {tmp_path / 'conf.yml'}") == parsed("--trainer.epochs 3 --trainer.precision mixed_float16")


LR = "--optimizer.lr_decay_strategy."
RATE = "--learning_rate."


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("--model_name VGG16 --num_classes 3 --input_size 64 64 3 --framework upstride_type2 --factor 4",
         "--model.name VGG16 --model.num_classes 3 --model.input_size 64 64 3 --model.framework upstride_type2 --model.factor 4"),
        ("--export_dir x --configuration.mirrored True --configuration.profiler",
         "--trainer.export_dir x --device.dist_strategy mirror --trainer.profile"),
        ("--configuration.with_mixed_precision False --configuration.mirrored False", ""),
        ("--dataloader.name cifar10 --dataloader.data_dir there", "--data.dataset cifar10 --data.data_dir there"),
        ("--optimizer.name adam", "--optimizer Adam"),
        ("--optimizer.name Adam_amsgrad", "--optimizer Adam --optimizer.amsgrad"),
        ("--optimizer.name sgd_momentum", "--optimizer SGD --optimizer.momentum 0.9"),
        ("--optimizer.name sgd_nesterov --optimizer.momentum 0.5",
         "--optimizer SGD --optimizer.momentum 0.5 --optimizer.nesterov"),
        ("--optimizer.name rmsprop --optimizer.momentum 0.5", "--optimizer RMSprop --optimizer.momentum 0.5"),
        (f"{LR}activate", "--learning_rate ReduceOnPlateau"),
        (f"{LR}activate False", "--learning_rate Constant"),
        (f"{LR}activate True {LR}lr_params.strategy cosine_decay {LR}lr_params.alpha 0.1 --optimizer.lr 0.3",
         "--learning_rate CosineDecay --learning_rate.alpha 0.1 --learning_rate.lr 0.3 --learning_rate.per epoch"),
        (f"{LR}activate True {LR}lr_params.strategy step_decay_schedule {LR}lr_params.drop_schedule 3 5",
         "--learning_rate StepListDecay --learning_rate.boundaries 3 5 --learning_rate.per epoch"),
        (f"{LR}activate True {LR}lr_params.strategy inverse_time_decay {LR}lr_params.decay_rate 0.25",
         "--learning_rate InverseTimeDecay --learning_rate.decay 0.25 --learning_rate.per epoch"),
        (f"{LR}activate True {LR}lr_params.strategy inverse_time_decay {LR}lr_params.staircase True",
         f"--learning_rate InverseTimeDecay {RATE}decay 1 {RATE}every 2 {RATE}staircase {RATE}per epoch"),
    ],
)  # fmt: skip
def test_other_flags(theirs: str, ours: str) -> None:
    assert parsed(theirs) == parsed(ours)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--optimizer.name sgd_momentun", "--optimizer.name: expected one of adadelta, .* received 'sgd_momentun' .did you mean sgd_mom"),
        ("--optimizer.name adam --optimizer.momentum 0.5", "--optimizer.momentum does not exist for --optimizer Adam; "),
        (f"{LR}lr_params.strategy cosine_decay", "strategy: has no effect without optimizer.lr_decay_strategy.activate: set it to True"),
        (f"{LR}activate True {LR}lr_params.power 2", "power: has no effect on ReduceOnPlateau, which has decay_rate, patience"),
        (f"{LR}activate {LR}lr_params.strategy inverse_time_decay {LR}lr_params.staircase {LR}lr_params.decay_rate 0",
         "decay_rate must be > 0 with a staircase, received 0.0"),
        (f"{LR}activate maybe", "activate: expected True or False, received 'maybe'"),
        ("--num_epochs 3 --trainer.epochs 4", "--trainer.epochs is given twice"),
        ("--dataloader.batchsize 3", "--dataloader.batchsize does not exist"),
        ("--num_epochs many", "--trainer.epochs: expected a whole number, received 'many'"),
    ],
)  # fmt: skip
def test_what_is_refused(words: str, message: str) -> None:
    with pytest.raises(ParamsError, match=message):
        parsed(words)


def test_the_whole_way(tmp_path: Path, zygote: Zygote, monkeypatch: pytest.MonkeyPatch) -> None:
    """From images to records and to a trained network, with the flags of its documentation."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for number in range(40):
        folder = tmp_path / "images" / f"class{number % 10}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (32, 32, 3), dtype=np.uint8)).save(folder / f"{number}.png")
    words = "--tfrecord_dir_path records --name example_dataset --data.images_dir_path images --image_size 32 32"
    words += (
        " --preprocessing CENTER_CROP_THEN_SCALE --data.split_names train validation --data.split_percentages 0.5 0.5"
    )
    assert main(["records", "write", *words.split()]) == 0
    (tmp_path / "conf.yml").write_text(CONF.replace("NAME", "example_dataset\n  data_dir: records"))
    small = "--num_epochs 1 --model.depth 0.1 --model.factor 8 --trainer.output_dir run"
    log = tmp_path / "out"
    words = f"train classification --yaml_config conf.yml {small}"
    assert zygote.run(*words.split(), log=log, folder=tmp_path) == 0, log.read_text()
    assert (tmp_path / "exported" / "best").is_dir()
    assert any((tmp_path / "checkpoint").iterdir())
