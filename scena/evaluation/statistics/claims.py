"""What may be said about two models or two groups of runs, and what may not, in sentences."""

from dataclasses import dataclass

from scena.evaluation.statistics.bootstrap import FEW_SAMPLES
from scena.evaluation.statistics.paired import McNemar, PairedTest
from scena.evaluation.statistics.student import Interval

FEW_SEEDS = 5
TWO_MODELS = (
    "This is about two trained models. Another seed could turn it around: for a claim about how they were trained, compare groups of runs "
    "(scena train --seeds 5)."
)
CHOSEN = "These samples also chose the best epoch of the models, so all values are too good. Compare on test data for a paper (--data)."


@dataclass(frozen=True)
class Comparison:
    """One result of two sides, A and B."""

    name: str
    test: PairedTest
    seeds: Interval | None = None
    """The difference of the means over seeds with Welch's interval, if both sides have several."""


def claims(
    primary: Comparison,
    mode: str | None,
    runs: tuple[int, int],
    tested: int,
    *,
    mcnemar: McNemar | None = None,
    chosen_on_these: bool = False,
) -> list[str]:
    """The sentences, the claim first.

    Args:
        primary: the result that decides, the one that selects the best model where there is one.
        mode: `min` or `max`, whichever is better; None if it is not known.
        runs: how many runs each side has.
        tested: how many results were tested in all.
        mcnemar: the test of right and wrong answers, if outputs are classes.
        chosen_on_these: whether the samples also chose the best epoch of the models.
    """
    several = max(runs) > 1
    lines = [_claim(primary, mode, runs)]
    if mcnemar is not None:
        lines.append(_answers(mcnemar))
    if not several:
        lines.append(TWO_MODELS)
    elif min(runs) < FEW_SEEDS:
        lines.append(
            f"A has {runs[0]} and B {runs[1]} seeds: with fewer than {FEW_SEEDS}, the interval over seeds is rough."
        )
    if chosen_on_these:
        lines.append(CHOSEN)
    if tested > 1:
        lines.append(
            f"{tested} results were tested. The claim is about {primary.name} only; the others are for orientation."
        )
    return lines


def claims_of_answers(mcnemar: McNemar, *, chosen_on_these: bool = False) -> list[str]:
    """The sentences when only right and wrong answers are known."""
    few = (
        [
            f"Claim nothing yet: there are only {mcnemar.n} samples. With fewer than {FEW_SAMPLES}, p values are too small."
        ]
        if mcnemar.n < FEW_SAMPLES
        else []
    )
    return [*few, _answers(mcnemar), TWO_MODELS, *([CHOSEN] if chosen_on_these else [])]


def _answers(mcnemar: McNemar) -> str:
    verb = "differ" if mcnemar.mid < 0.05 else "may well be equal"
    return (
        f"Right answers: only A {mcnemar.only_first}, only B {mcnemar.only_second} of {mcnemar.n} samples; the shares {verb} "
        f"(McNemar, mid-p = {_p(mcnemar.mid)})."
    )


def _claim(primary: Comparison, mode: str | None, runs: tuple[int, int]) -> str:
    name, test, seeds = primary.name, primary.test, primary.seeds
    shown = f"{test.first:.4g} against {test.second:.4g}"
    apart = test.difference
    if test.n < FEW_SAMPLES:
        return (
            f"Claim nothing yet: there are only {test.n} samples ({name}: {shown}). With fewer than {FEW_SAMPLES}, intervals are too short "
            "and p values too small."
        )
    if apart.low == apart.value == apart.high == 0:
        return (
            f"A and B have the same {name} on each of these {test.n} samples ({shown}): nothing here tells them apart."
        )
    if not apart.excludes(0) or test.p >= 0.05:
        return (
            f"These {test.n} samples do not show which is better in {name} ({shown}). That does not prove them equal: the difference "
            f"may lie anywhere from {apart.low:.3g} to {apart.high:.3g} (p = {_p(test.p)})."
        )
    relation = "lower" if apart.value < 0 else "higher"
    better = "" if mode is None else f", which is {'better' if (mode == 'min') == (relation == 'lower') else 'worse'}"
    if max(runs) == 1:
        return f"On samples such as these {test.n}, model A has a {relation} {name} than model B ({shown}){better}."
    if seeds is None:
        return (
            f"On these {test.n} samples, the runs of A have a {relation} {name} than those of B ({shown}){better}; with a single run on "
            "one side, nothing can be said about other seeds."
        )
    if seeds.without_width:
        return (
            f"On these {test.n} samples, the runs of A have a {relation} {name} than those of B ({shown}), but on each side all runs "
            "have the same value, so how much seeds vary is not known. Claim no difference in training."
        )
    if not seeds.excludes(0):
        return (
            f"On these {test.n} samples, the runs of A have a {relation} {name} than those of B ({shown}), but seeds vary as much: "
            f"other seeds may give a difference from {seeds.low:.3g} to {seeds.high:.3g}. Claim no difference in training."
        )
    return (
        f"Training as in A gives a {relation} {name} than as in B ({shown}){better}: the difference holds over samples ({test.n}) "
        f"and over seeds ({runs[0]} and {runs[1]} runs)."
    )


def _p(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else "below 0.001"
