"""Reports: the right parts for classes and for other outputs, the evaluator's plots, and a page that a browser shows."""

import re
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from PIL import Image

import scena
from scena import Evaluator, Sample
from scena.commands.main import main
from scena.evaluation.report.collect import EXAMPLES, Collected, class_scores, confusions
from scena.evaluation.report.page import Report
from scena.evaluation.report.plots import (
    confusion_figure,
    curve_figures,
    curves,
    history_figure,
    image_png,
    model_figures,
    themed_svg,
)
from scena.plots import new_figure
from tests.evaluation.light import LightEvaluated, Shares
from tests.pages.browser import Browser, needs_chromium
from tests.pages.checks import check_layout, check_theme_switch


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
    assert cells(text)[0] == ["0", "1", "0.950"]


def test_predicted_numbers_are_plotted_over_their_targets(tmp_path: Path) -> None:
    collected = Collected()
    for index in range(20):
        outputs = {"other": np.float32(-1), "sum": np.float32([index * 2])}
        collected(Sample(inputs={}, outputs=outputs, targets={"name": "x", "sum": np.int32(index)}))
    assert collected.numbers == [(index, index * 2) for index in range(20)]
    (figure,) = model_figures(collected, Evaluator(None)).values()
    drawn = figure.axes[0].lines[-1].get_xydata()
    assert np.asarray(drawn).tolist() == [[index, index * 2] for index in range(20)]
    report = Report(tmp_path, "sums")
    report.add_model("best", collected, Evaluator(None))
    assert "<figcaption>Predictions</figcaption>" in report.write({}).read_text()
    assert (tmp_path / "best_predictions.png").is_file()
    words = Collected()
    words(Sample(inputs={}, outputs={"text": "a"}, targets={"text": "b"}))
    assert words.numbers == [] and model_figures(words, Evaluator(None)) == {}


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
    assert "<dt>input age</dt><dd>7</dd>" in text and "\x1b" not in text and r"\x1b[2J.png" in text
    assert "&lt;b&gt;" in text and "<b>" not in text and "frac{" in text


def test_curves() -> None:
    recall, precision, false_rate = curves(np.array([True, False, True, False]), np.array([0.9, 0.8, 0.8, 0.1]))
    assert recall.tolist() == [0, 0.5, 1, 1]
    assert precision.tolist() == pytest.approx([1, 1, 2 / 3, 0.5])
    assert false_rate.tolist() == [0, 0, 0.5, 1]


def test_what_looks_like_a_picture_is_shown() -> None:
    assert image_png(np.zeros((8, 8))) and image_png(np.zeros((8, 8, 3), "uint8")) and image_png(np.zeros((8, 8, 1)))
    assert image_png(np.zeros((3, 8))) is None and image_png(np.zeros(8)) is None


def cells(text: str) -> list[list[str]]:
    """True class, predicted class and confidence of each error that is shown."""
    tables = re.findall(r'aria-label="\d+ most certain errors">.*?</table>', text, re.DOTALL)
    rows = [row for one in tables for row in re.findall(r"<tr>(.*?)</tr>", one, re.DOTALL) if "<td" in row]
    return [re.findall(r"<t[hd][^>]*>([^<]*)<", row)[:3] for row in rows]


def pages_report(directory: Path) -> Path:
    collected = Collected()
    for index in range(40):
        collected(picture(index))
    (directory / "history.csv").write_text("epoch,step,loss,val_loss,acc\n1,10,1.0,1.2,0.5\n2,20,0.5,0.7,\n")

    class Named(Evaluator[Any]):
        def class_names(self) -> list[str]:
            return ["<b>zero</b>", "a long name of a class with many words in it", "x" * 60, *"3456789"]

    facts = {"Date": "17 November 2026", "Model": "<i>run</i>/best"}
    report = Report(directory / "report", "Digits & <more>", "Which <digit>?", facts)
    report.add_history(directory / "history.csv")
    report.add_model("best", collected, Named(None))
    report.add_values("Parameters", {"a": {"x": {"y": "<script>alert(1)</script>"}}, "b": {"x": {"y": 1}, "z": [1, 2]}})
    return report.write({"best": {"acc": 0.6667, "note": "<b>"}})


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pages_report(tmp_path_factory.mktemp("report"))


def test_a_report_is_one_page_and_its_plots(report: Path) -> None:
    text = report.read_text()
    assert {path.name for path in report.parent.glob("*.png")} >= {
        "training_loss.png",
        "training_acc.png",
        "best_confusion.png",
    }
    assert "<script>alert" not in text and "&lt;script&gt;" in text and "Digits &amp; &lt;more&gt;" in text
    assert "<b>" not in text and "<i>" not in text and "<digit>" not in text
    assert not re.findall(r'(?:src|href)="(?!data:|#)', text)  # nothing is fetched from elsewhere
    assert "url(" not in text.replace("url(#", "") and "@import" not in text
    assert len(report.read_bytes()) < 200_000
    assert "&lt;0&gt;.png" in text and "Parameters (2 differ)" in text and "<td>1 2</td>" in text


def test_the_scores_of_classes() -> None:
    matrix = np.array([[3, 1, 0, 0], [1, 2, 0, 0], [2, 0, 0, 0], [0, 0, 0, 0]])
    scores = class_scores(matrix)
    assert scores[0] == (0.5, 0.75, 0.6, 4)
    assert scores[1] == (pytest.approx(2 / 3), pytest.approx(2 / 3), pytest.approx(2 / 3), 3)
    assert scores[2] == (None, 0.0, 0.0, 2)  # never predicted
    assert scores[3] == (None, None, None, 0)  # never seen
    assert confusions(matrix, 2) == [(2, 0, 2), (0, 1, 1)]


def test_legends_stand_beside_the_curves() -> None:
    names = [f"class {number}" for number in range(10)]
    targets = np.arange(100) % 10
    scores = np.random.default_rng(0).dirichlet(np.ones(10), 100)
    figures = [
        *curve_figures(targets, scores, names).values(),
        history_figure([{"epoch": 1.0, "loss": 1.0, "val_loss": 2.0}, {"epoch": 2.0, "loss": 0.5, "val_loss": 1.0}], ["loss", "val_loss"]),
    ]  # fmt: skip
    for figure in figures:
        figure.draw_without_rendering()
        legend = figure.legends[0].get_window_extent()
        assert not legend.overlaps(figure.axes[0].get_window_extent())
        assert legend.x0 >= 0 and legend.x1 <= figure.bbox.width  # and inside of the figure


def test_plots_follow_the_theme_and_stay_small() -> None:
    figure = confusion_figure(np.eye(3, dtype=int), ["a", "<b>", "$c$"])
    text = themed_svg(figure, "first")
    assert text.startswith("<svg") and "currentColor" not in text.replace("stroke: currentColor", "")
    assert "var(--line)" in text and "&lt;b&gt;" in text and "$c$" in text and "#000000" not in text
    figure = new_figure()
    figure.add_subplot().scatter(*np.random.default_rng(0).random((2, 10_000)))
    assert len(themed_svg(figure, "many")) < 100_000  # a million as shapes


def test_a_report_without_matplotlib_is_refused_before_the_validation(
    exports: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    command = ["lav", "--export_dir", str(exports[0]), "--scenario", "tests.toy.scenario"]
    assert main([*command, "--report", str(tmp_path / "report")]) == 1
    captured = capsys.readouterr()
    assert "Plots need matplotlib: pip install 'scena[plot]'." in captured.err and captured.out == ""


@needs_chromium
def test_a_report_in_a_browser(report: Path, chromium: Browser) -> None:
    chromium.open(report.as_uri())
    chromium.run("for (const one of document.querySelectorAll('details')) one.open = true")
    check_layout(chromium)
    check_theme_switch(chromium)
    shown = "return [...document.images].filter(image => image.naturalWidth > 0).length"
    assert chromium.run(shown) == 14  # the errors
    assert chromium.run("return document.querySelectorAll('.plot svg').length") == 2 + 3  # history, matrix and curves
    chromium.resize(1280)
    column = (
        "return [...document.querySelectorAll('[aria-label=Classes] tbody tr')].map(row => row.cells[{}].textContent)"
    )
    recall = [float(value) for value in chromium.run(column.format(2))]
    for descending in (True, False):
        chromium.click("[aria-label=Classes] th:nth-child(3) button")
        assert [float(value) for value in chromium.run(column.format(2))] == sorted(recall, reverse=descending)
    chromium.click("[aria-label=Classes] th:nth-child(1) button")
    assert chromium.run(column.format(0))[:2] == ["<b>zero</b>", "3"]
    gallery = "return [...document.querySelectorAll('.gallery figure')].map(item => item.dataset[arguments[0]])"
    confidence = chromium.run(gallery, "confidence")
    assert confidence == sorted(confidence, reverse=True)
    chromium.click("[data-sorts] button:nth-child(2)")
    assert chromium.run(gallery, "true")[0] == "<b>zero</b>"


def test_the_command_writes_a_report_with_the_evaluators_plots(
    exports: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["lav", *map(str, exports), "--scenario", "tests.evaluation.test_report:Reported"]
    assert main([*command, "--report", str(tmp_path / "report"), "--lav.num_processes", "0"]) == 0
    assert f"Report: {tmp_path / 'report' / 'index.html'}" in capsys.readouterr().out
    text = (tmp_path / "report" / "index.html").read_text()
    assert text.count("<figcaption>Said &lt;second&gt;</figcaption>") == 3  # two models and their vote
    assert text.count("Confusion matrix</figcaption>") == 3
    assert {tuple(row[:2]) for row in cells(text)} & {("first", "second"), ("second", "first")}
    for fact in ("Date", "Scenario", "tests.evaluation.test_report:Reported", "The toy scenario with", "Halves"):
        assert fact in text
    assert f"Scena {scena.__version__}, Keras {keras.__version__} on TensorFlow" in text
    assert '<th scope="row">trainer.epochs</th>' in text


def test_the_command_draws_the_matrix_and_what_the_evaluator_draws(
    exports: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = ["--scenario", "tests.evaluation.test_report:Reported"]
    dump, alone, both = (tmp_path / name for name in ("dump.jsonl", "alone.svg", "both.png"))
    flags = ["--data.count", "6", "--lav.num_processes", "0", "--lav.print_limit", "0"]
    assert main(["lav", *map(str, exports), *scenario, *flags, "--dump", str(dump), "--plot", str(both)]) == 0
    assert f"Plot: {both}" in capsys.readouterr().out
    with Image.open(both) as image:  # matrix and plot of two models and of their vote: two rows of three panels
        assert image.size == (3600, 2400)
        panels = [image.crop((x, y, x + 1200, y + 1200)) for y in (0, 1200) for x in (0, 1200, 2400)]
    assert all(len(panel.convert("RGB").getcolors(1_000_000) or []) > 20 for panel in panels)
    assert main(["evaluate-dump", str(dump), "--scenario", "tests.toy", "--plot", str(alone)]) == 0
    assert alone.read_text().startswith("<?xml")
    assert main(["evaluate-dump", str(dump), "--scenario", "tests.toy", "--plot", str(tmp_path / "plot.txt")]) == 1
    assert "The suffix of a plot's file decides its format, for example .png." in capsys.readouterr().err
