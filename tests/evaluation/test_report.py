"""Reports: the right parts for classes and for other outputs, the evaluator's plots, and a page that a browser shows."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scena import Evaluator, Sample
from scena.commands.main import main
from scena.evaluation.report.collect import EXAMPLES, Collected
from scena.evaluation.report.page import Report
from scena.evaluation.report.plots import curves, picture_png
from scena.plots import new_figure
from tests.evaluation.browser import dumped, needs_chromium
from tests.evaluation.light import LightEvaluated, Shares


class Plotted(Shares):
    """An evaluator with a plot and names of its own."""

    def plots(self) -> dict[str, Any]:
        figure = new_figure(3, 2)
        figure.add_subplot().plot(self.said)
        return {"Said <second>": figure}

    def class_names(self) -> list[str]:
        return ["first", "second"]


class Reported(LightEvaluated):
    """The toy scenario with that evaluator."""

    @classmethod
    def evaluator_cls(cls) -> type[Plotted]:
        return Plotted


def picture(index: int) -> Sample:
    """A 28 × 28 picture whose class is predicted wrongly every third time."""
    right = index % 3 > 0
    scores = np.full(10, 0.02, "float32")
    scores[(index if right else index + 1) % 10] = 0.82
    return Sample(
        inputs={"img": np.full((28, 28), index % 256, "uint8")},
        targets={"gt": np.uint8(index % 10)},
        outputs={"logits": np.log(scores), "pred": scores},
        meta={"file": f"<{index}>.png"},
    )


def test_classes_are_recognised_and_the_worst_errors_kept() -> None:
    collected = Collected()
    for index in range(300):
        collected(picture(index))
    assert collected.is_classes
    matrix = collected.confusion()
    assert matrix.shape == (10, 10) and matrix.sum() == 300 and np.trace(matrix) == 200
    errors = collected.errors
    assert len(errors) == EXAMPLES
    assert all(
        (error.predicted, error.score) == ((error.target or 0) + 1, pytest.approx(0.82)) or error.target == 9
        for error in errors
    )


def test_other_outputs_are_shown_as_examples() -> None:
    collected = Collected()
    for index in range(50):
        collected(Sample(inputs={"x": np.zeros(3)}, outputs={"sum": np.float32(index)}, targets={"sum": np.float32(1)}))
    assert not collected.is_classes
    assert collected.errors == [] and len(collected.first) == EXAMPLES


def spam(index: int, shape: tuple[int, ...] = (), numbered: bool = True) -> Sample:
    """A scalar probability that is wrong every third time, and surest of it at the end; a logit beside it."""
    right, target = index % 3 > 0, index % 2
    sure = 0.5 + index / 200
    one = sure if (target == 1) == right else 1 - sure
    outputs: dict[str, Any] = {"logit": np.float32(np.log(one / (1 - one))), "p": np.full(shape, one, "float32")}
    if numbered:
        outputs["class"] = np.int64(one >= 0.5)
    return Sample(
        inputs={"x": np.zeros(3)},
        targets={"y": np.full(shape, target, "float32" if shape else "int32")},
        outputs=outputs,
    )


@pytest.mark.parametrize(("shape", "numbered"), [((), True), ((), False), ((1,), False), ((1,), True)])
def test_a_scalar_probability_has_sorted_errors_and_curves(
    tmp_path: Path, shape: tuple[int, ...], numbered: bool
) -> None:
    collected = Collected()
    for index in range(1, 91):
        collected(spam(index, shape, numbered))
    matrix = collected.confusion()
    assert matrix.shape == (2, 2) and matrix.sum() == 90 and np.trace(matrix) == 60
    scores = [error.score or 0 for error in collected.errors]
    assert scores == sorted(scores, reverse=True) and scores[0] == pytest.approx(0.95) and len(scores) == EXAMPLES
    report = Report(tmp_path, "spam")
    report.add_model("best", collected, Evaluator(None))
    text = report.write({}).read_text()
    assert "Receiver operating characteristic</figcaption>" in text and "Precision and recall</figcaption>" in text
    assert "1 instead of 0 (p = 0.95)" in text


def test_numbers_that_only_look_like_probabilities_at_first_are_none() -> None:
    collected = Collected()
    for value in (0.3, 0.7, 1.4):
        collected(Sample(inputs={}, targets={"y": np.float32(1)}, outputs={"y": np.float32(value)}))
    assert not collected.is_classes and collected.errors == [] and len(collected.first) == 3
    collected = Collected()
    for target in (0.0, 1.0, 0.5):
        collected(Sample(inputs={}, targets={"y": np.float32(target)}, outputs={"y": np.float32(0.4)}))
    assert not collected.is_classes


def test_all_pictures_of_a_sample_are_shown_and_names_are_text(tmp_path: Path) -> None:
    class Named(Evaluator[Any]):
        def class_names(self) -> list[str]:
            return ["$\\frac{", "<b>\x1b[31m"]

    collected = Collected()
    for index in range(4):
        collected(
            Sample(
                inputs={"left": np.zeros((8, 8)), "ri<ght": np.ones((8, 8, 3)), "age": np.float32(7)},
                targets={"y": np.int32(index % 2)},
                outputs={"p": np.array([0.2, 0.8], "float32")},
                meta={"file": "a\x1b[2J.png"},
            )
        )
    report = Report(tmp_path, "pairs")
    report.add_model("best", collected, Named(None))
    text = report.write({}).read_text()
    assert text.count('alt="left"') == text.count('alt="ri&lt;ght"') == 2  # both pictures of the two errors
    assert "inputs age: 7" in text and "\x1b" not in text and r"\x1b[2J.png" in text
    assert "&lt;b&gt;" in text and "<b>" not in text


def test_curves() -> None:
    recall, precision, false_rate = curves(np.array([True, False, True, False]), np.array([0.9, 0.8, 0.8, 0.1]))
    assert recall.tolist() == [0, 0.5, 1, 1]
    assert precision.tolist() == pytest.approx([1, 1, 2 / 3, 0.5])
    assert false_rate.tolist() == [0, 0, 0.5, 1]


def test_what_looks_like_a_picture_is_shown() -> None:
    assert (
        picture_png(np.zeros((8, 8))) and picture_png(np.zeros((8, 8, 3), "uint8")) and picture_png(np.zeros((8, 8, 1)))
    )
    assert picture_png(np.zeros((3, 8))) is None and picture_png(np.zeros(8)) is None


def pages_report(directory: Path) -> Path:
    collected = Collected()
    for index in range(40):
        collected(picture(index))
    (directory / "history.csv").write_text("epoch,step,loss,val_loss,acc\n1,10,1.0,1.2,0.5\n2,20,0.5,0.7,\n")
    report = Report(directory / "report", "Digits & <more>")
    report.add_history(directory / "history.csv")
    report.add_model("best", collected, Evaluator(None))
    report.add_details("Parameters", {"a": "<script>alert(1)</script>"})
    return report.write({"best": {"acc": 0.6667, "note": "<b>"}})


def test_a_report_is_one_page_and_its_pictures(tmp_path: Path) -> None:
    page = pages_report(tmp_path)
    text = page.read_text()
    assert {path.name for path in page.parent.glob("*.png")} >= {
        "training_loss.png",
        "training_acc.png",
        "best_confusion.png",
    }
    assert "<script>" not in text and "&lt;script&gt;" in text and "Digits &amp; &lt;more&gt;" in text
    assert not re.findall(r'(?:src|href)="(?!data:)', text)  # nothing is fetched from elsewhere
    assert "1 instead of 0 (p = 0.82)" in text and "&lt;0&gt;.png" in text


LOOK = """<script>addEventListener("load", () => {
  const images = [...document.images];
  document.title = `${images.filter(image => image.naturalWidth > 0).length} of ${images.length}`;
})</script>"""


@needs_chromium
def test_a_browser_shows_every_picture(tmp_path: Path) -> None:
    page = pages_report(tmp_path)
    seen = page.with_name("seen.html")
    seen.write_text(page.read_text().replace("</body>", LOOK + "</body>"))
    shown = dumped(seen.as_uri())
    count = page.read_text().count("<img ")
    assert f"<title>{count} of {count}</title>" in shown
    assert count == 2 + 3 + 14  # two courses, matrix and two curves, and fourteen errors
    assert "<h2>Results</h2>" in shown and "0.6667" in shown


def test_the_command_writes_a_report_with_the_evaluators_plots(
    exports: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["lav", *map(str, exports), "--scenario", "tests.evaluation.test_report:Reported"]
    assert main([*command, "--report", str(tmp_path / "report"), "--lav.num_processes", "0"]) == 0
    assert f"Report: {tmp_path / 'report' / 'index.html'}" in capsys.readouterr().out
    text = (tmp_path / "report" / "index.html").read_text()
    assert text.count("<figcaption>Said &lt;second&gt;</figcaption>") == 3  # two models and their vote
    assert text.count("Confusion matrix</figcaption>") == 3
    assert "second instead of first" in text or "first instead of second" in text
    assert "Versions of" in text and "&quot;keras&quot;" in text and "Halves" in text
