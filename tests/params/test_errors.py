"""The texts of everything that can be wrong on a command line."""

import pytest

from scena.params import Params, ParamsError, param, parse
from tests.params.trees import BatchParams, Root, error

MESSAGES = [
    (
        "--model.graph CNN --model.graph.nodes 1",
        "--model.graph.nodes does not exist for --model.graph CNN; MLP has it: --model.graph MLP",
    ),
    (
        "--early_stopping.n_to_go 3",
        "--early_stopping.n_to_go does not exist for --early_stopping None; EarlyStopping has it: --early_stopping EarlyStopping",
    ),
    ("--modle.graph MLP", "--modle.graph does not exist; did you mean --model.graph?"),
    ("--model.grahp MLP", "--model.grahp does not exist; did you mean --model.graph?"),
    ("--filters 3", "--filters does not exist; did you mean --model.graph.filters?"),
    ("--trainer.epcohs 3", "--trainer.epcohs does not exist; did you mean --trainer.epochs?"),
    ("--zzz 3", "--zzz does not exist"),
    (
        "--zzz 3 --filters 1",
        "--zzz does not exist\n--filters does not exist; did you mean --model.graph.filters?",
    ),
    ("--trainer.epochs.x 3", "--trainer.epochs.x does not exist: --trainer.epochs is a plain value"),
    ("--trainer.step 3", "--trainer.step cannot be set: it is state that is stored with the parameters"),
    (
        "--model.graph CNNN",
        "--model.graph: unknown BackendParams 'CNNN' (did you mean CNN?); choose from: CNN, MLP",
    ),
    ("--model.graph cnn", "--model.graph: unknown BackendParams 'cnn' (did you mean CNN?); choose from: CNN, MLP"),
    ("--model.graph", "--model.graph: expected one of CNN, MLP, received nothing"),
    ("--model.graph CNN MLP", "--model.graph: expected one of CNN, MLP, received CNN MLP"),
    ("--model.graph None", "--model.graph: unknown BackendParams 'None'; choose from: CNN, MLP"),
    (
        "--learning_rate fast",
        "--learning_rate: unknown LearningRateParams 'fast'; choose from: LearningRate, ExponentialDecay",
    ),
    ("--learning_rate -1", "--learning_rate.lr must be > 0, received -1.0"),
    ("--trainer.epochs abc", "--trainer.epochs: expected a whole number, received 'abc'"),
    ("--trainer.epochs 3.5", "--trainer.epochs: expected a whole number, received '3.5'"),
    ("--trainer.epochs True", "--trainer.epochs: expected a whole number, received 'True'"),
    ("--trainer.epochs", "--trainer.epochs: expected a whole number, received nothing"),
    ("--trainer.epochs 1 2", "--trainer.epochs: expected one value (a whole number), received 1 2"),
    ("--trainer.epochs 0", "--trainer.epochs must be >= 1, received 0"),
    ("--trainer.epochs None", "--trainer.epochs: expected a whole number, received 'None'"),
    ("--trainer.epochs 3 --trainer.epochs 4", "--trainer.epochs is given twice"),
    (
        "--trainer.output-dir 3 --trainer.output_dir 4",
        "--trainer.output-dir is given twice, also as --trainer.output_dir",
    ),
    ("--trainer.epochs 3 --trainer.n_epochs 4", "--trainer.n_epochs is given twice, also as --trainer.epochs"),
    ("--model.graph MLP --scenario.model.graph CNN", "--scenario.model.graph is given twice, also as --model.graph"),
    ("--model.graph.filters 3 x", "--model.graph.filters: expected a whole number at position 2, received 'x'"),
    ("--model.graph.filters 40,20", "--model.graph.filters: expected a whole number at position 1, received '40,20'"),
    ("--model.graph.filters 3 0", "--model.graph.filters must be >= 1, received 0"),
    (
        "--data.processors.Crop.size 1",
        "--data.processors.Crop.size: expected 2 values (a whole number, a whole number), received ['1']",
    ),
    ("--data.processors.Augment.p 2", "--data.processors.Augment.p must be <= 1, received 2.0"),
    ("--data.processors.Augment.p nan", "--data.processors.Augment.p must be >= 0, received nan"),
    ("--data.dataset cifar", "--data.dataset: expected one of digits, mnist, received 'cifar'"),
    ("--trainer.force_eager maybe", "--trainer.force_eager: expected True or False, received 'maybe'"),
    (
        "--trainer.val_every often",
        "--trainer.val_every: expected a number of epochs, or a time such as 10min, received 'often'",
    ),
    ("--trainer.shapes 1,a", "--trainer.shapes: expected a whole number at position 1 at position 2, received 'a'"),
    ("--data.weights a", "--data.weights: expected name=value pairs, each name once, received a"),
    ("--data.weights a=x", "--data.weights: expected a number for 'a', received 'x'"),
    (
        "--early_stopping EarlyStopping --early_stopping.mode best",
        "--early_stopping.mode: expected one of min, max, received 'best'",
    ),
    (
        "--data.processors Augment Augment --data.processors.Augment.p 1",
        (
            "--data.processors.Augment.p: there are 2 Augment in --data.processors; say which one: "
            "--data.processors.0.p or --data.processors.1.p"
        ),
    ),
    (
        "--data.processors Crop --data.processors.Augment.p 1",
        (
            "--data.processors.Augment.p does not exist: --data.processors has the items 0 (Crop); "
            "add it: --data.processors Crop Augment"
        ),
    ),
    (
        "--data.processors.7.p 1",
        "--data.processors.7.p does not exist: --data.processors has the items 0 (Augment), 1 (Crop)",
    ),
    ("--data.processors --data.processors.0.p 1", "--data.processors.0.p does not exist: --data.processors is empty"),
    ("--data.processors Flip", "--data.processors: unknown Processor 'Flip'; choose from: Augment, Crop"),
    (
        "--data.processors.Augment.size 1",
        (
            "--data.processors.Augment.size does not exist for --data.processors.Augment Augment; "
            "Crop has it: --data.processors.Augment Crop"
        ),
    ),
    (
        "--data.heads a=Tall",
        "--data.heads: unknown HeadParams 'Tall'; choose from: Head, Wide",
    ),
    (
        "--data.heads a=Wide a=Head",
        "--data.heads: expected name=Class pairs, each name once and without dots, received a=Wide a=Head",
    ),
    ("word", "unexpected 'word': a value needs its flag before it"),
    (
        "-model.graph MLP",
        "unexpected '-model.graph': a value needs its flag before it; flags begin with two dashes: --model.graph",
    ),
    ("--config_set big", "--config_set big needs a file: --config FILE --config_set NAME, or a project.yaml here"),
    ("--config", "--config expects at least one file"),
]


@pytest.mark.parametrize(("words", "message"), MESSAGES, ids=[words for words, _ in MESSAGES])
def test_wrong_words(words: str, message: str) -> None:
    assert error(*words.split()) == message


class Streams(Params):
    train: BatchParams = param()
    val: BatchParams = param()
    lav: BatchParams = param()


class MoreStreams(Streams):
    test: BatchParams = param()


@pytest.mark.parametrize(
    ("default", "flag", "meant"),
    [
        (Streams(), "--batch_size", "--train.batch_size or --val.batch_size or --lav.batch_size"),
        (Streams(), "--tran.batchsize", "--train.batch_size or --val.batch_size"),  # the closest ones only
        (MoreStreams(), "--tran.batch_size", "--train.batch_size or --val.batch_size"),
    ],
)
def test_a_few_similar_names_are_suggested(default: Params, flag: str, meant: str) -> None:
    with pytest.raises(ParamsError) as caught:
        parse(default, [flag, "3"])
    assert str(caught.value) == f"{flag} does not exist; did you mean {meant}?"


def test_something_required_is_missing() -> None:
    with pytest.raises(ParamsError) as caught:
        parse(Root(), [])
    assert str(caught.value) == "--data.lists is required: list files to train on (expected a list of paths)"


def test_everything_that_is_wrong_is_said_at_once() -> None:
    assert error("--trainer.epochs", "0", "--model.n_classes", "x").splitlines() == [
        "--trainer.epochs must be >= 1, received 0",
        "--model.n_classes: expected a whole number, received 'x'",
    ]


@pytest.mark.parametrize(
    "words",
    [
        ["--trainer.epochs", "9" * 5000],
        ["--trainer.epochs", "9" * 400, "--trainer.epochs.x", "1"],
        ["--trainer.note"],
        ["--"],
        ["--=3"],
        ["--.", "1"],
        ["--..", "1"],
        ["--trainer.", "1"],
        ["--trainer..epochs", "1"],
        ["--trainer", "1"],
        ["--class", "Root"],
        ["--trainer.class", "Trainer"],
        ["--trainer.shapes", "[[[[[[[["],
        ["--trainer.shapes", "[" * 5000],
        ["--\udc80", "1"],
        ["--trainer.epochs", ""],
        ["--trainer.output_dir", ""],
        ["--model.graph", ""],
        ["--model.graph", "os:system"],
        ["--data.heads", "=Wide"],
        ["--data.heads", "a.b=Wide"],
    ],
)
def test_odd_words_are_errors_and_nothing_else(words: list[str]) -> None:
    assert error(*words)


def test_a_huge_number_is_read_or_refused_but_never_shown_in_full() -> None:
    assert len(error("--model.graph.dense", "-" + "9" * 4000)) < 300
