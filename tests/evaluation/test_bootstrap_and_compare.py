"""`lav --bootstrap`, `evaluate-dump --bootstrap` and `compare` on real models: intervals, tests, and what they refuse."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scena import Sample
from scena.commands.main import main
from scena.evaluation.compare import Side, check_same_classes, check_same_samples, compare
from scena.evaluation.evaluator import Evaluator
from scena.evaluation.per_sample import SampleResults, StatisticsError, bootstrap, measure_samples
from scena.evaluation.statistics.bootstrap import mean_intervals
from scena.evaluation.statistics.claims import Comparison, claims, claims_of_answers
from scena.evaluation.statistics.paired import mcnemar, paired_bootstrap
from scena.evaluation.statistics.student import difference
from scena.scenario.ensemble import write_ensemble
from tests.evaluation.exporting import export
from tests.toy.params import HalvesParams
from tests.toy.scenario import ToyScenario


class Counting(Evaluator[Any]):
    """The share of right answers, and how often class 1 was found, which a resample without it does not know."""

    def __enter__(self) -> "Counting":
        self.pairs: list[tuple[int, int]] = []
        return self

    def update_state(self, sample: Sample) -> None:
        self.pairs.append((int(sample.targets["y"]), int(sample.outputs["pred"].argmax())))

    def result(self) -> dict[str, Any]:
        return {"share": float(np.mean([target == predicted for target, predicted in self.pairs])), "note": "text"}


def test_intervals_of_a_validation_come_from_single_samples(
    exports: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "out.json"
    words = ["lav", str(exports[0]), "--data.count", "40", "--bootstrap", "300", "--json", str(file)]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "95 % interval" in out and "Percentile intervals of 300 resamples of 40 samples." in out
    (found,) = json.loads(file.read_text()).values()
    lav = ToyScenario.create_multi_lav([exports[0]])
    plain = lav.run(HalvesParams(count=40))[str(exports[0])]
    measured = measure_samples(lav, HalvesParams(count=40))[str(exports[0])]
    assert found["loss"]["value"] == pytest.approx(plain["loss"], rel=1e-6)
    for name in ("loss", "acc"):
        assert measured.values[name].mean() == pytest.approx(plain[name], rel=1e-5)
        expected = mean_intervals({name: measured.values[name]}, 300)[name]
        assert (found[name]["low"], found[name]["high"]) == (pytest.approx(expected.low), pytest.approx(expected.high))
    assert set(measured.values["acc"]) <= {0.0, 1.0} and len(measured.samples) == 40


def test_votes_have_intervals_too(exports: list[Path]) -> None:
    lav = ToyScenario.create_multi_lav(exports)
    source = HalvesParams(count=12)
    results, measured = lav.run(source), measure_samples(lav, source)
    assert list(measured) == list(results) == [*map(str, exports), "voted"]
    assert measured["voted"].values["loss"].mean() == pytest.approx(results["voted"]["loss"], rel=1e-5)


def test_what_is_no_mean_over_samples_gets_no_interval() -> None:
    values = np.array([0.0, 1.0, 1.0, 0.0])
    samples = [Sample(targets={"y": n % 2}, outputs={"pred": np.eye(2)[1]}) for n in range(4)]
    results = {"acc": 0.5, "auc": 0.8, "share": 0.5, "note": "text"}
    found = bootstrap(SampleResults({"acc": values, "auc": values}, samples), results, Counting(None), 200)
    assert set(found.by_name) == {"acc", "share"} and found.n == 4
    assert found.notes == [
        "auc: no interval. It is not a mean over samples; compute it in an evaluator, which is resampled as a whole."
    ]
    other = bootstrap(SampleResults({}, samples), {"share": 0.9}, Counting(None), 200)
    assert not other.by_name and "finds another value on the samples of a dump" in other.notes[0]


def test_two_models_are_compared_on_their_samples(
    exports: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, plot = tmp_path / "compare.json", tmp_path / "compare.svg"
    words = ["compare", *map(str, exports), "--data.count", "60", "--resamples", "400"]
    assert main([*words, "--json", str(file), "--plot", str(plot)]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"A: {exports[0]}\nB: {exports[1]}\n") and "95 % over samples" in out
    found = json.loads(file.read_text())
    lav = ToyScenario.create_multi_lav(exports)
    one, two = (measure_samples(lav, HalvesParams(count=60))[str(path)] for path in exports)
    expected = paired_bootstrap(one.values["loss"], two.values["loss"], 400)
    assert found["results"]["loss"]["p"] == pytest.approx(expected.p)
    assert found["results"]["loss"]["effect_size"] == pytest.approx(expected.effect, rel=1e-4)
    answers = mcnemar(one.values["acc"] > 0.5, two.values["acc"] > 0.5)
    assert (found["mcnemar"]["only_a"], found["mcnemar"]["mid_p"]) == (answers.only_first, pytest.approx(answers.mid))
    text = " ".join(found["claims"])
    assert "Another seed could turn it around" in text and "2 results were tested. The claim is about acc only" in text
    assert b"<svg" in plot.read_bytes()


def test_an_ensemble_is_compared_by_its_votes(exports: list[Path], tmp_path: Path) -> None:
    ensemble, file = tmp_path / "ensemble", tmp_path / "compare.json"
    write_ensemble(ensemble, ToyScenario, {"one": exports[0], "two": exports[1]})
    assert main(["compare", str(ensemble), str(exports[0]), "--data.count", "40", "--json", str(file)]) == 0
    found = json.loads(file.read_text())
    assert found["runs"] == [1, 1] and found["mcnemar"]["samples"] == 40
    results = ToyScenario.create_multi_lav(exports).run(HalvesParams(count=40))
    assert found["results"]["loss"]["a"] == pytest.approx(results["voted"]["loss"], rel=1e-5)
    assert found["results"]["loss"]["b"] == pytest.approx(results[str(exports[0])]["loss"], rel=1e-5)


def test_models_that_were_validated_on_other_data_are_not_paired(
    exports: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    params = ToyScenario.default_trainer_params()
    params.gen.train_val.count = 50
    other = export(tmp_path / "other", 3, params=params)
    assert main(["compare", str(exports[0]), str(other)]) == 1
    assert "were validated on different data, so their results cannot be paired" in capsys.readouterr().err


def test_dumps_are_compared_only_if_their_samples_match(
    exports: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, count in ((0, 40), (1, 40), (1, 39)):
        dump = tmp_path / f"{number}-{count}.jsonl"
        assert main(["lav", str(exports[number]), "--data.count", str(count), "--dump", str(dump)]) == 0
    capsys.readouterr()
    assert main(["compare", str(tmp_path / "0-40.jsonl"), str(tmp_path / "1-40.jsonl"), "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (
        found["mcnemar"]["samples"] == 40 and not found["results"] and found["claims"][0].startswith("Right answers:")
    )
    assert main(["compare", str(tmp_path / "0-40.jsonl"), str(tmp_path / "1-39.jsonl")]) == 1
    assert "not measured on the same samples: 40 samples on one side, 39 on the other" in capsys.readouterr().err
    assert main(["compare", str(tmp_path / "0-40.jsonl"), str(exports[0])]) == 2
    assert "two dumps or two models" in capsys.readouterr().err


def test_models_that_mean_other_classes_are_not_paired() -> None:
    check_same_classes(["a", "b"], [], ["a", "b", "c"])
    with pytest.raises(StatisticsError, match="0 is 'a' for one and 'b' for another"):
        check_same_classes(["a", "b"], ["b", "a"])


def test_right_answers_alone_are_no_claim_with_few_samples() -> None:
    few = claims_of_answers(mcnemar(np.ones(9, bool), np.arange(9) > 4))
    assert few[0].startswith("Claim nothing yet: there are only 9 samples") and "only A 5, only B 0 of 9" in few[1]


def test_samples_in_another_order_or_with_other_targets_are_refused() -> None:
    def side(*targets: int) -> Side:
        samples = [Sample(targets={"y": np.int32(target)}, meta={"id": target}) for target in targets]
        return Side("x", [SampleResults({}, samples)])

    check_same_samples(side(1, 2, 3), side(1, 2, 3))
    with pytest.raises(StatisticsError, match="the same samples, but in another order"):
        check_same_samples(side(1, 2, 3), side(2, 1, 3))
    with pytest.raises(StatisticsError, match="sample 1 has another target or meta"):
        check_same_samples(side(1, 2, 3), side(1, 5, 3))
    with pytest.raises(StatisticsError, match="no samples"):
        check_same_samples(side(), side())


def test_a_claim_about_training_needs_seeds_and_samples() -> None:
    rng = np.random.default_rng(0)
    second = rng.normal(1, 0.2, 100)
    test = paired_bootstrap(second - 0.1 + rng.normal(0, 0.05, 100), second, 300)
    sure = Comparison("loss", test, difference([0.5, 0.51, 0.49, 0.5, 0.5], [0.6, 0.61, 0.6, 0.59, 0.6]))
    unsure = Comparison("loss", test, difference([0.3, 0.7, 0.5], [0.2, 0.8, 0.8]))
    assert claims(sure, "min", (5, 5), 1)[0].startswith("Training as in A gives a lower loss than as in B")
    assert "which is better" in claims(sure, "min", (5, 5), 1)[0] and len(claims(sure, "min", (5, 5), 1)) == 1
    lines = claims(unsure, "min", (3, 3), 1)
    assert "Claim no difference in training." in lines[0] and "with fewer than 5" in lines[1]
    assert "nothing can be said about other seeds" in claims(Comparison("loss", test), "min", (5, 1), 1)[0]
    nothing = Comparison("acc", paired_bootstrap(second, rng.permutation(second), 300))
    assert "That does not prove them equal" in claims(nothing, "max", (1, 1), 1)[0]
    few = Comparison("loss", paired_bootstrap(second[:9] - 1, second[:9], 300))
    lines = claims(few, "max", (1, 1), 1, chosen_on_these=True)
    assert lines[0].startswith("Claim nothing yet: there are only 9 samples") and "too good" in lines[-1]
    enough = Comparison("loss", paired_bootstrap(second - 1, second, 300))
    assert "which is worse" in claims(enough, "max", (1, 1), 1)[0]
    same = Comparison("loss", paired_bootstrap(second, second, 300))
    assert "A and B have the same loss on each of these 100 samples" in claims(same, "min", (1, 1), 1)[0]
    # the runs of each side agree by chance, for example in the number of right answers
    equal = claims(Comparison("acc", test, difference([0.9, 0.9], [0.91, 0.91])), "max", (2, 2), 1)
    assert "all runs have the same value" in equal[0] and "Claim no difference in training." in equal[0]
    # an interval that excludes zero by a hair is no claim against the p value
    hair = Comparison("loss", replace(test, p=0.06))
    assert "do not show which is better" in claims(hair, "min", (1, 1), 1)[0]


def test_values_that_are_not_finite_are_not_compared() -> None:
    def side(*values: float) -> Side:
        samples = [Sample(targets={"y": np.int32(n % 2)}, outputs={"pred": np.eye(2)[1]}) for n in range(len(values))]
        return Side("x", [SampleResults({"loss": np.array(values), "acc": np.ones(len(values))}, samples)])

    found, _, without = compare(side(1, 2, math.nan), side(1, 2, 3), Counting(None), 100)
    assert without == ["loss"] and set(found) == {"acc", "share"}


def test_runs_that_lack_a_result_on_some_samples_are_compared_without_it() -> None:
    class PerClass(Counting):
        def result(self) -> dict[str, Any]:
            chosen = {predicted for _, predicted in self.pairs}
            return {**super().result(), **{f"precision of {one}": np.float32(1) for one in chosen}}

    def member(*predicted: int) -> SampleResults:
        samples = [
            Sample(targets={"y": np.int32(n % 2)}, outputs={"pred": np.eye(2)[p]}) for n, p in enumerate(predicted)
        ]
        return SampleResults({}, samples)

    groups = [Side("A", [member(0, 1, 1, 0), member(0, 0, 0, 0)]), Side("B", [member(0, 1, 1, 0), member(1, 1, 1, 0)])]
    found, _, without = compare(*groups, PerClass(None), 100)
    assert set(found) == {"share"} and set(without) == {"precision of 0", "precision of 1"}
