"""The history of a training: a list with one dict of values for each epoch, which becomes a table or a plot."""

from typing import TYPE_CHECKING, Any

from scena.display import html_table, number
from scena.errors import TrainingError

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

NOT_PLOTTED = ("epoch", "step", "seconds", "learning_rate")


class History(list[dict[str, Any]]):
    """The values of each epoch."""

    def to_frame(self) -> "pandas.DataFrame":
        """A table of pandas with a row for each epoch.

        Raises:
            TrainingError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise TrainingError("history.to_frame() needs pandas: pip install pandas") from error
        frame = pandas.DataFrame(list(self))
        return frame.astype({"epoch": int}).set_index("epoch") if self else frame

    def plot(self, *names: str) -> "Figure":
        """A figure of matplotlib: values over the epochs, those of training and validation in one plot.

        Args:
            names: the values (default: all, except steps, seconds and the learning rate).

        Raises:
            TrainingError: there is no such value.
            PlotError: matplotlib is not installed.
        """
        from scena.plots import new_figure

        known = dict.fromkeys(name for row in self for name in row if name != "epoch")
        for name in names:
            if name not in known:
                raise TrainingError(f"The history has no {name!r}; it has: {', '.join(known) or 'nothing'}.")
        groups: dict[str, list[str]] = {}
        for name in names or [name for name in known if name not in NOT_PLOTTED]:
            groups.setdefault(name.removeprefix("val_").removeprefix("lav_"), []).append(name)
        figure = new_figure(5 * max(len(groups), 1), 3.5)
        for column, (title, members) in enumerate(groups.items(), 1):
            axes = figure.add_subplot(1, len(groups), column)
            for name in members:
                points = [(row["epoch"], row[name]) for row in self if name in row]
                axes.plot([x for x, _ in points], [y for _, y in points], label=name, marker=".")
            axes.set(title=title, xlabel="epoch")
            axes.grid(alpha=0.3)
            axes.legend()
        return figure

    def __repr__(self) -> str:
        last = ", ".join(f"{name} {number(value)}" for name, value in self[-1].items()) if self else "no epochs"
        return f"History({last})"

    def _repr_html_(self) -> str:
        names = list(dict.fromkeys(name for row in self for name in row))
        return html_table([[number(row.get(name)) for name in names] for row in self], names)
