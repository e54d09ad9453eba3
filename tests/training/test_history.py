"""What a training returns: rows that become a table, a plot, and HTML."""

import sys

import pytest

from scena.errors import TrainingError
from scena.training.history import History

ROWS = History(
    [{"epoch": 1, "step": 4, "loss": 2.0, "val_loss": 3.0}, {"epoch": 2, "step": 8, "loss": 1.0, "<b>": 0.5}]
)


def test_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = ROWS.to_frame()
    assert list(frame.index) == [1, 2] and list(frame["loss"]) == [2.0, 1.0]
    assert History().to_frame().empty
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(TrainingError, match=r"history\.to_frame\(\) needs pandas: pip install pandas"):
        ROWS.to_frame()


def test_a_plot() -> None:
    figure = ROWS.plot()
    assert [[line.get_label() for line in axes.lines] for axes in figure.axes] == [["loss", "val_loss"], ["<b>"]]
    assert list(figure.axes[0].lines[0].get_xydata()[1]) == [2, 1.0]
    assert len(ROWS.plot("step").axes) == 1 and figure._repr_png_().startswith(b"\x89PNG")
    with pytest.raises(TrainingError, match="The history has no 'los'; it has: step, loss, val_loss, <b>"):
        ROWS.plot("los")


def test_short_forms() -> None:
    assert repr(ROWS) == "History(epoch 2, step 8, loss 1, <b> 0.5)" and repr(History()) == "History(no epochs)"
    assert "<th>&lt;b&gt;</th>" in ROWS._repr_html_() and "<b>" not in ROWS._repr_html_()
