"""`scena track --to` of a run that was trained without a tracker: everything that it has stored, once; then a report that came later."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scena import Evaluator
from scena.commands.main import main
from scena.experiments.stored_run import read_history
from scena.model.tensorboard import HistogramData, ImageData, TextData
from scena.training.trackers.event_media import stored_media
from scena.training.trigger import Trigger
from tests.toy.scenario import ToyScenario
from tests.training.toy_runs import train_toy
from tests.training.trackers.mlflow_rest import MlflowRest

IMAGES = np.arange(2 * 3 * 4 * 3, dtype=np.uint8).reshape(2, 3, 4, 3)


class Shown(Evaluator[Any]):
    def result(self) -> dict[str, Any]:
        return {"pictures": ImageData(IMAGES), "words": TextData("**hello**"), "spread": HistogramData([1.0, 2.0])}


class ShowingScenario(ToyScenario):
    @classmethod
    def evaluator_cls(cls) -> type[Evaluator[Any]]:
        return Shown


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("backfill") / "first"
    train_toy(directory, scenario=ShowingScenario, lav_every_n=Trigger(1))
    return directory


def test_images_and_texts_are_in_the_files_of_tensorboard(run: Path) -> None:
    steps = [int(row["step"]) for row in read_history(run)]
    found = stored_media(run / "tensorboard")
    assert [(one.key, one.step) for one in found] == [
        (key, step) for step in steps for key in ("lav/pictures", "lav/words")
    ]
    assert np.array_equal(found[0].data.images, IMAGES)  # type: ignore[union-attr]
    assert found[1].data.text == "**hello**"  # type: ignore[union-attr]
    (file,) = (run / "tensorboard" / "lav").glob("*tfevents*")
    whole = file.read_bytes()
    file.write_bytes(whole[:-5])  # killed while it was written
    assert len(stored_media(run / "tensorboard")) in (3, 4)
    file.write_bytes(whole)


@pytest.mark.filterwarnings("ignore")  # of MLflow's imports
def test_a_run_without_a_tracker_is_sent_once(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rest = MlflowRest().start()
    words = ["track", str(run), "--to", "mlflow", "--to.mlflow.uri", rest.uri]
    for _ in range(2):
        assert main(words) == 0 and "up to date" in capsys.readouterr().out
    (found,) = rest.runs.values()
    steps = [int(row["step"]) for row in read_history(run)]
    numbers = [(each["key"], each["step"], each["value"]) for each in found["metrics"]]
    assert [step for key, step, _ in numbers if key == "val/loss"] == steps
    assert len({(key, step) for key, step, _ in numbers}) == len(numbers)
    assert {(key, step, value) for key, step, value in numbers if key == "train/loss"} == {
        ("train/loss", int(row["step"]), row["loss"]) for row in read_history(run)
    }
    assert found["status"] == "FINISHED" and found["params"]["trainer.epochs"] == "2"
    assert not [
        name for name in found["params"] if name.startswith(("gen.", "scenario.data", "scenario.model", "tracker"))
    ]
    sent = {path.partition("/")[2].partition("/")[2] for path in rest.artifacts}
    assert sent == {
        "history.csv",
        *(f"images/lav/pictures/{number}/{step}.png" for number in range(2) for step in steps),
        *(f"texts/lav/words/{step}.md" for step in steps),
    }
    (run / "report").mkdir()
    (run / "report" / "index.html").write_text("<html>")
    rest.artifacts.clear()
    for _ in range(2):
        assert main(words) == 0
    assert [path.partition("/")[2].partition("/")[2] for path in rest.artifacts] == ["report/index.html"]
    rest.stop()
