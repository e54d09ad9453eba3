"""Parameters of a training."""

from pathlib import Path
from typing import Generic, TypeVar

from scena.devices.params import DeviceParams
from scena.params import Params, param
from scena.training.optimizers.params import Adam, OptimizerParams
from scena.training.pipeline_params import TrainerPipelineParamsBase
from scena.training.schedules.params import Constant, LearningRateParams
from scena.training.trigger import Trigger

TScenarioParams = TypeVar("TScenarioParams", bound=Params)
TPipelines = TypeVar("TPipelines", bound=TrainerPipelineParamsBase)


class TrainerParams(Params, Generic[TScenarioParams, TPipelines], builds="scena.training.trainer:Trainer"):
    """How long to train, and what to keep."""

    epochs: int = param(100, ge=1, help="number of epochs to train")
    output_dir: Path | None = param(None, help="where the run is stored (default: runs/SCENARIO-TIME)")
    samples_per_epoch: int | None = param(None, ge=1, help="samples that make one epoch (default: the whole data set)")
    val_every_n: Trigger = param(Trigger(1), help="validate every so often: 1, 2epochs, 200steps, 10min (0: never)")
    lav_every_n: Trigger = param(Trigger(0), help="LAV, with the evaluator, every so often (0: never)")
    checkpoint_every: Trigger = param(Trigger(1), help="write a checkpoint every so often (0: never)")
    keep_checkpoints: int = param(2, ge=1, help="how many of the last checkpoints to keep")
    export_best: bool = param(True, help="keep the best model in OUTPUT_DIR/best")
    export_final: bool = param(True, help="export the last model to OUTPUT_DIR/export")
    random_seed: int | None = param(
        None, help="makes weights, order and augmentation repeatable (default: drawn, and stored)"
    )
    force_eager: bool = param(False, help="run op by op, so that a debugger stops inside the model")
    stop_on_nan: bool = param(True, help="stop when the loss is no longer finite")
    progress_every: float = param(
        10.0, gt=0, help="seconds between two progress lines when the output is not a terminal"
    )

    scenario: TScenarioParams = param(flat=True, help="the scenario")
    gen: TPipelines = param(flat=True, help="where the data comes from")
    optimizer: OptimizerParams = param(Adam(), flat=True, help="how gradients change the weights")
    learning_rate: LearningRateParams = param(Constant(), flat=True, help="the learning rate and how it changes")
    device: DeviceParams = param(flat=True, help="what to compute on")
