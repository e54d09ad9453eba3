"""What a user sees who asks for help or gets a flag wrong: one short message, at once, without TensorFlow."""

import subprocess
import sys
from pathlib import Path

import pytest

from scena.commands.main import main

ROOT = Path(__file__).parents[2]
FULL = "examples.tutorial.full"
HEAVY = ("keras", "tensorflow", "numpy", "pandas")


def fails(capsys: pytest.CaptureFixture[str], command: str) -> str:
    """The message of a command that must fail with status 2 and print nothing else."""
    assert main(command.split()) == 2
    output = capsys.readouterr()
    assert output.out == "" and "Traceback" not in output.err
    return output.err.removeprefix("scena train: error: ").strip()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            "--model.graph CNN --model.graph.nodes 1",
            "--model.graph.nodes does not exist for --model.graph CNN; MLP has it: --model.graph MLP",
        ),
        ("--model.grap CNN", "--model.grap does not exist; did you mean --model.graph?"),
        # as Keras, Lightning and Hugging Face's Trainer call them
        ("--max_epochs 3", "--max_epochs does not exist; did you mean --trainer.epochs?"),
        ("--trainer.patience 3", "--trainer.patience does not exist; did you mean --early_stopping.n_to_go?"),
        (
            "--seed 3",
            "--seed does not exist; did you mean --trainer.random_seed?",
        ),  # not --seeds, which is another thing
        (
            "--per_device_train_batch_size 3",
            "--per_device_train_batch_size does not exist; did you mean --train.batch_size or --val.batch_size?",
        ),
        (
            "--model.graph CNNN",
            "--model.graph: unknown BackboneParams 'CNNN' (did you mean CNN?); choose from: MLP, CNN",
        ),
        ("--trainer.epochs many", "--trainer.epochs: expected a whole number, received 'many'"),
        ("--trainer.epochs 0", "--trainer.epochs must be >= 1, received 0"),
        (
            "--optimizer.clip_norm 1 --optimizer.clip_value 1",
            "--optimizer: choose one of clip_value and clip_norm: gradients are clipped in one way only",
        ),
        (
            "--trainer.val_every_n 3weeks",
            "--trainer.val_every_n: expected an interval such as 1, 2epochs, 200steps, 30s, ",
        ),
    ],
)
def test_a_wrong_flag_is_named_with_its_remedy(capsys: pytest.CaptureFixture[str], flags: str, message: str) -> None:
    assert fails(capsys, f"train {FULL} {flags}").startswith(message)


def test_help_finds_a_flag_by_its_name_in_other_frameworks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", FULL, "--help", "max_epochs"]) == 0
    assert capsys.readouterr().out.startswith("trainer:\n  --trainer.epochs INT  number of epochs to train")


def test_a_name_of_other_frameworks_is_no_name_here_and_leads_to_one_flag() -> None:
    from examples.tutorial.full.scenario import TutorialScenario
    from scena.params.settable import Index
    from scena.params.tree import to_raw

    params = TutorialScenario.default_trainer_params()
    index = Index(to_raw(params), type(params))
    words = {word for node in index.nodes for word in node.field.known_as}
    assert len(words) > 60
    own = {name.rpartition(".")[2] for name in index.by_name}
    assert not words & own
    flags = {word: {name.rpartition(".")[2] for name in index.known_elsewhere(word)} for word in words}
    assert not {word: found for word, found in flags.items() if len(found) > 1}


def test_an_unknown_key_in_a_file_is_named_with_its_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "params.yaml"
    file.write_text("model:\n  graph:\n    class: CNN\n    nodes: [1]\n")
    message = fails(capsys, f"train {FULL} --config {file}")
    assert f"{file}:4" in message and "model.graph.nodes" in message and "MLP" in message


def test_a_required_flag_shows_its_help() -> None:
    from examples.tutorial.full.params import ImageFilesParams
    from scena.commands.model.predict import PredictRoot
    from scena.params import ParamsError, parse

    with pytest.raises(ParamsError, match=r"--data\.image_files is required: the images to predict"):
        parse(PredictRoot(data=ImageFilesParams()), [])


def test_an_unknown_command_gets_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trian"]) == 2
    assert "there is no command 'trian' (did you mean train?)" in capsys.readouterr().err


def test_the_scenario_comes_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert "name the scenario first: scena train SCENARIO" in fails(capsys, f"train --trainer.epochs 2 {FULL}")


def test_help_without_a_scenario_lists_those_it_finds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["train", "--help"]) == 0
    output = capsys.readouterr().out
    assert "  examples.tutorial.full\n" in output and "  examples.tutorial.min\n" in output


def test_help_shows_only_what_the_selection_accepts(capsys: pytest.CaptureFixture[str]) -> None:
    shown = {}
    for graph in ("CNN", "MLP"):
        assert main(["train", FULL, "--model.graph", graph, "--help"]) == 0
        shown[graph] = capsys.readouterr().out
    assert "--model.graph.filters" in shown["CNN"] and "--model.graph.nodes" not in shown["CNN"]
    assert "--model.graph.nodes" in shown["MLP"] and "--model.graph.filters" not in shown["MLP"]


@pytest.mark.parametrize(
    "command",
    [
        "--help",
        "train --help",
        f"train {FULL} --help",
        f"train {FULL} --model.graph CNN --model.graph.nodes 1",
        f"train {FULL} --trainer.epochs many",
        "lav --help",
        "predict --help",
        f"params {FULL} --model.graph MLP",
        f"schema {FULL}",
    ],
)
def test_help_and_errors_need_no_heavy_package(command: str) -> None:
    code = (
        "import sys\nfrom scena.commands.main import main\n"
        f"main({command.split()!r})\n"
        f"print('LOADED', [name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("LOADED []"), done.stdout[-200:]


def test_seed_spellings_are_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    flags = (
        "--trainer.optimizer RMSprop --trainer.optimizer.beta1 0.01 --trainer.optimizer.clip_global_norm 1 "
        "--learning-rate ExponentialDecay --learning_rate.decay=0.95 --learning_rate.lr 1e-4 --train.prefech 128 "
        "--trainer.device.gpus 0 1 --val.limit 100"
    )
    assert main(["params", FULL, *flags.split()]) == 0
    shown = capsys.readouterr().out
    for line in ("class: RMSprop", "momentum: 0.01", "clip_global_norm: 1.0", "class: ExponentialDecay", "decay: 0.95",
                 "lr: 0.0001", "prefetch: 128", "gpus: [0, 1]", "limit: 100"):  # fmt: skip
        assert line in shown


def test_a_number_for_the_learning_rate_sets_lr(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["params", FULL, "--learning_rate", "0.0001"]) == 0
    assert capsys.readouterr().out.split() == ["learning_rate:", "lr:", "0.0001"]


def test_parameters_are_printed_as_a_command_line_that_reproduces_them(capsys: pytest.CaptureFixture[str]) -> None:
    flags = "--model.graph MLP --model.graph.nodes 7 8 --trainer.epochs 3"
    assert main(["params", FULL, "--as", "command", *flags.split()]) == 0
    printed = capsys.readouterr().out.split()[2:]
    assert main(["params", *printed, "--as", "command"]) == 0
    assert capsys.readouterr().out.split()[2:] == printed
    assert set(flags.split()) <= set(printed)


def test_where_a_flag_chooses_one_of_two_things_the_real_choice_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert fails(capsys, "train classification --data ImageFolder").endswith(
        "unknown SplitSourceParams 'ImageFolder' (did you mean ImageFiles?); "
        "choose from: NamedDataSet, ImageFiles, ImageArrays, ImageRecords, Records"
    )


COMMON = (
    "--trainer.epochs --trainer.output_dir --trainer.random_seed --train.batch_size --train.limit --train.num_processes "
    "--optimizer --learning_rate.lr --early_stopping.n_to_go --device.gpus"
).split()


def test_long_help_starts_with_the_flags_people_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "examples.tutorial.full", "--help"]) == 0
    first, second = capsys.readouterr().out.split("\n\n")[2:4]
    assert first == "most used:\n  `--help WORD` searches all flags."
    assert [line.split()[0] for line in second.splitlines() if line.startswith("  --")] == COMMON
    assert main(["runs", "--help"]) == 0
    assert "most used" not in capsys.readouterr().out


def test_help_takes_a_scenario_or_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--help", "examples.tutorial.min", "--optimizer", "SGD"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("usage: scena train examples.tutorial.min") and "--optimizer.momentum" in text
    assert main(["train", "examples.tutorial.min", "--help", "lr", "--optimizer", "SGD"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("  --")] == [
        "--optimizer.lr_factors",
        "--learning_rate.lr",
        "--optimizer.inner.lr_factors:",
    ]
