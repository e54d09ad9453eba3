"""Parameters of the learning-rate finder."""

from pathlib import Path

from scena.params import Params, param


class RateFinderParams(Params):
    """The range to try, and where the picture goes."""

    picture: Path = param(Path("lr-find.png"), help="file of the picture")
    lowest: float = param(1e-7, gt=0, help="the learning rate to start from")
    highest: float = param(10.0, gt=0, help="the learning rate to end at")
    steps: int = param(200, ge=10, help="number of batches")
    smoothing: float = param(0.3, ge=0, help="how far the loss is smoothed, in decades of the learning rate")

    def __post_init__(self) -> None:
        if self.lowest >= self.highest:
            raise ValueError(f"lowest {self.lowest:g} must be below highest {self.highest:g}")
