"""Text recognition keeps the contract, and reads a user's own files. How well it learns: test_readmes.py."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from examples.atr import draw
from examples.atr.data import LineFiles
from examples.atr.evaluator import edit_distance
from examples.atr.model import AtrGraph
from examples.atr.params import AtrModelParams, Beam, Greedy, LineFilesParams, RenderedParams
from examples.atr.rendering import make_text, render
from examples.atr.scenario import AtrScenario
from scena import PipelineMode
from scena.commands.main import main
from scena.errors import DataError
from scena.testing import run_scenario_test


@pytest.fixture
def line_files(tmp_path: Path) -> list[Path]:
    """Four pictures of lines, each with its text."""
    paths = [tmp_path / f"line{number}.png" for number in range(4)]
    for number, path in enumerate(paths):
        rng = np.random.default_rng(number)
        text = make_text(rng)
        Image.fromarray(render(text, RenderedParams(), rng)).save(path)
        path.with_suffix(".gt.txt").write_text(text + "\n")
    return paths


@pytest.mark.parametrize(
    ("one", "other", "edits"),
    [("", "", 0), ("abc", "abc", 0), ("abc", "", 3), ("kitten", "sitting", 3), ("ab", "ba", 2)],
)
def test_the_edit_distance_counts_single_edits(one: str, other: str, edits: int) -> None:
    assert edit_distance(one, other) == edit_distance(other, one) == edits


@pytest.mark.parametrize("decoder", ["greedy", pytest.param("beam", marks=pytest.mark.long)])
def test_contract(tmp_path: Path, line_files: list[Path], decoder: str, capsys: pytest.CaptureFixture[str]) -> None:
    params = AtrScenario.default_trainer_params()
    params.scenario.model.filters, params.scenario.model.lstm = [4, 8], 8
    if decoder == "beam":
        params.scenario.model.decoder = Beam(width=3)
    source = LineFilesParams(image_files=line_files)
    run_scenario_test(AtrScenario, params, directory=tmp_path / "run", predict_source=source, samples=8, tolerance=1e-4)
    export = next((tmp_path / "run").rglob("scenario.json")).parent
    predictor = AtrScenario.create_predictor(export)
    served = predictor.predict_sample(predictor.sample_from_file(line_files[0].read_bytes(), "line.png"))
    assert served.outputs == next(iter(predictor.predict(source))).outputs
    if decoder == "greedy":  # the flag tells the source: only LineFiles has it
        outputs = []
        for chosen in (["--data", "LineFiles"], []):
            capsys.readouterr()
            assert main(["lav", "--export_dir", str(export), *chosen, "--data.image_files", *map(str, line_files)]) == 0
            outputs.append(capsys.readouterr().out)
        assert outputs[0] == outputs[1] and "cer" in outputs[0]
        assert main(["lav", "--export_dir", str(export), "--data", "Rendered", "--data.image_files", "x"]) == 2


def test_a_beam_adds_up_all_ways_to_write_a_text() -> None:
    """Where no single way is likely, the best one (nothing, 0.36) is worse than three that write the same (0.64)."""
    chances = np.zeros((2, 2, 4), "float32")
    chances[0, :, :2] = 0.6, 0.4
    chances[1, [0, 1], [2, 3]] = 1
    read = {}
    for name, decoder in (("greedy", Greedy()), ("beam", Beam(width=3))):
        graph = AtrGraph(AtrModelParams(decoder=decoder), characters=3)
        read[name] = np.asarray(graph._decode(np.log(chances + 1e-9), np.array([2, 2], "int32")))
    assert [list(filter(None, line)) for line in read["greedy"]] == [[], [2, 3]]
    assert [list(filter(None, line)) for line in read["beam"]] == [[1], [2, 3]]


def test_lines_and_texts_of_a_users_own_work_too(line_files: list[Path], tmp_path: Path) -> None:
    (tmp_path / "lines.lst").write_text("# mine\n" + "\n".join(path.name for path in line_files))
    params = AtrScenario.default_trainer_params()
    params.gen.val_source = LineFilesParams(lists=[tmp_path / "lines.lst"])
    params.gen.val.num_processes = 0
    pipeline = params.gen.val_data(AtrScenario(params.scenario).create_data())
    with pipeline.generate_input_samples() as samples:
        texts = [len(sample.targets["text"]) for sample in samples]
    assert texts == [len(path.with_suffix(".gt.txt").read_text().strip()) for path in line_files]


def test_a_character_that_the_codec_lacks_is_named(line_files: list[Path]) -> None:
    line_files[0].with_suffix(".gt.txt").write_text("grüße")
    params = AtrScenario.default_trainer_params()
    params.gen.val_source = LineFilesParams(image_files=line_files)
    params.gen.val.num_processes = 0
    pipeline = params.gen.val_data(AtrScenario(params.scenario).create_data())
    with pipeline.generate_input_samples() as samples, pytest.raises(DataError, match="codec lacks: .*'ß', 'ü'"):
        next(samples)


def test_padding_does_not_change_what_is_read() -> None:
    """Normalisation makes something of the zeros beyond a line's end; it must not reach the line."""
    built = AtrScenario(AtrScenario.default_params()).build()
    rng = np.random.default_rng(1)
    for weight in built.root.weights:
        weight.assign(np.abs(rng.normal(0.1, 0.1, weight.shape)))
    line = rng.integers(0, 255, (1, 61, 32)).astype("uint8")
    padded = np.pad(line, ((0, 0), (0, 39), (0, 0)))
    width = np.array([61], "int32")
    alone, among_others = (built.root({"img": image, "width": width}) for image in (line, padded))
    length = int(alone["length"][0])
    assert length == int(among_others["length"][0]) == 15
    assert np.std(alone["logits"]) > 0
    np.testing.assert_allclose(alone["logits"][:, :length], among_others["logits"][:, :length], rtol=1e-5)


def test_lines_are_written_as_files_with_their_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["draw", str(tmp_path / "lines"), "--count", "2"])
    draw.main()
    params = LineFilesParams(lists=[tmp_path / "lines" / "lines.lst"])
    files = [sample.inputs for sample in LineFiles(params, PipelineMode.PREDICTION).generate()]
    assert [file.name for file in files] == ["0000.png", "0001.png"]
    assert all(file.is_file() and file.with_suffix(".gt.txt").read_text().strip() for file in files)
