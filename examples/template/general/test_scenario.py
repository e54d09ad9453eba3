"""Tests of the scenario: run them with pytest. Start with `test_data` when the input looks wrong."""

from pathlib import Path

from scena.testing import run_scenario_test

from .scenario import TemplateScenario


def test_data() -> None:
    """Runs the input pipeline in this process, sample by sample: set a breakpoint in a processor and debug."""
    params = TemplateScenario.default_trainer_params()
    params.gen.train.num_processes = 0
    data = TemplateScenario(params.scenario).create_data()
    with params.gen.train_data(data).generate_input_samples(auto_repeat=False) as samples:
        count = 0
        for sample in samples:
            assert sample.inputs["point"].shape == (2,)
            assert sample.targets["label"] in (0, 1)
            count += 1
    assert count == params.gen.train_val.count
    with params.gen.train_data(data).generate_input_batches() as batches:
        assert next(batches).inputs["point"].shape == (params.gen.train.batch_size, 2)


def test_contract(tmp_path: Path) -> None:
    """Everything Scena promises for any scenario."""
    run_scenario_test(TemplateScenario, directory=tmp_path)


def test_training_learns(tmp_path: Path) -> None:
    """A short training reaches a value that only learning explains."""
    params = TemplateScenario.default_trainer_params()
    params.epochs, params.output_dir, params.random_seed = 8, tmp_path / "run", 1
    params.learning_rate.lr = 0.01
    history = TemplateScenario.create_trainer(params).train()
    assert max(row["val_acc"] for row in history) > 0.9
