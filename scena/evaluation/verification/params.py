"""What can be set about verification. Pure Python."""

from scena.evaluation.params import EvaluatorParams
from scena.params import param


class VerificationParams(EvaluatorParams):
    """Compares each sample with all others: is it the same one?"""

    far: list[float] = param([0.01, 0.001], gt=0, lt=1, help="false accept rates at which true accepts are reported")
    most_impostors: int = param(
        2_000_000, ge=1, help="about how many pairs of different classes to compare; if there are more, a random choice"
    )
