"""Parameters of a training."""

import re
from pathlib import Path
from typing import Any, Generic, Literal, Self, TypeVar

from scena.backends.params import TrainerDeviceParams
from scena.params import Params, param
from scena.params.declare import FlagValue, short_name
from scena.prediction.params import ExportFormatParams
from scena.training.callbacks.params import (
    BestModelParams,
    CallbackParams,
    EarlyStoppingParams,
    EpochTableParams,
    HistoryParams,
    PlateauParams,
    ProfilerParams,
    ProgressParams,
    TensorBoardParams,
    TrackerParams,
    check_steps,
)
from scena.training.optimizers.params import Adam, OptimizerParams
from scena.training.pipelines import TrainerPipelineParamsBase
from scena.training.schedules.params import Constant, LearningRateParams, ReduceOnPlateau
from scena.training.trackers.params import JournalParams, TrackerServiceParams, services_of
from scena.training.trigger import Duration, Trigger

TScenarioParams = TypeVar("TScenarioParams", bound=Params)
TPipelines = TypeVar("TPipelines", bound=TrainerPipelineParamsBase)


class BestBy(FlagValue):
    """The value that selects the best model: `min:val_loss`, `max:acc`, `max:lav_NAME`, `min:train_loss`.

    Attributes:
        mode: "min" or "max".
        name: the value; a plain name is the validation's, else LAV's, else the training's.
    """

    __slots__ = ("mode", "name")

    def __init__(self, mode: str, name: str) -> None:
        self.mode, self.name = mode, name

    @classmethod
    def from_param(cls, raw: Any) -> Self:
        """Parses the text of a flag."""
        mode, colon, name = str(raw).partition(":")
        if mode not in ("min", "max") or not colon or not name or name != name.strip():
            raise ValueError("a direction and a value, such as min:val_loss or max:acc")
        return cls(mode, name)

    def to_param(self) -> str:
        return f"{self.mode}:{self.name}"


class WarmStartParams(Params, builds=".warmstart:WarmStarter"):
    """Weights to start from instead of random ones. A subclass with a warm starter of its own is chosen with `--warmstart NAME`."""

    model: Path | None = param(
        None,
        help="where the weights are: an export, a run, a checkpoint (OUTPUT_DIR/checkpoint/STEP) or a .safetensors file",
        known_as=["init_checkpoint", "pretrained"],
    )
    allow_partial: bool = param(False, help="start even if some weights of the model are missing or do not fit")
    include: str | None = param(None, help="regular expression: set only the weights whose whole path matches")
    exclude: str | None = param(None, help="regular expression: skip the weights whose whole path matches")
    rename: list[str] = param([], help="rules OLD=NEW for the stored paths; OLD is a regular expression")
    trim_prefix: str = param("", help="prefix to remove from the stored paths before all other rules")

    def __post_init__(self) -> None:
        for rule in self.rename:
            if "=" not in rule:
                raise ValueError(f"a rule of rename is OLD=NEW, for example 'encoder/=backbone/'; received {rule!r}")
        for name, pattern in [
            ("include", self.include),
            ("exclude", self.exclude),
            *(("rename", rule.partition("=")[0]) for rule in self.rename),
        ]:
            try:
                re.compile(pattern or "")
            except re.error as error:
                raise ValueError(f"{name} is not a regular expression ({error}): {pattern!r}") from None


class TrainerParams(Params, Generic[TScenarioParams, TPipelines], builds="scena.training.trainer:Trainer"):
    """How long to train, and what to keep."""

    epochs: int = param(
        100,
        ge=1,
        le=10**9,
        help="number of epochs to train",
        common=True,
        known_as=["max_epochs", "num_train_epochs", "num_epochs", "n_epochs"],
    )
    output_dir: Path | None = param(
        None,
        help="where the run is stored (default: runs/SCENARIO-TIME)",
        affects_results=False,
        common=True,
        known_as=["default_root_dir", "save_dir", "logdir"],
    )
    samples_per_epoch: int | None = param(
        None,
        ge=1,
        le=10**12,
        help="samples that make one epoch (default: the whole data set)",
        known_as=["steps_per_epoch"],
    )
    val_every_n: Trigger = param(
        Trigger(1),
        help="how often to validate: 1, 2epochs, 200steps, 10min (0: never)",
        known_as=["check_val_every_n_epoch", "val_check_interval", "validation_freq", "eval_steps", "eval_strategy"],
    )
    lav_every_n: Trigger = param(Trigger(0), help="how often to run LAV, with the evaluator (0: never)")
    checkpoint_every: Trigger = param(
        Trigger(1),
        help="how often to write a checkpoint (0: never)",
        affects_results=False,
        known_as=["save_steps", "save_strategy", "save_freq", "every_n_train_steps"],
    )
    keep_checkpoints: int = param(
        2,
        ge=1,
        help="how many of the last checkpoints to keep",
        affects_results=False,
        known_as=["save_total_limit", "save_top_k", "max_to_keep"],
    )
    keep_every_checkpoint: int = param(
        0, ge=0, help="keep every Nth checkpoint permanently (0: none)", affects_results=False
    )
    time_limit: Duration = param(
        Duration(0, "seconds"),
        help="save and exit with status 75 after this time, such as 3h (0s: never); `scena resume` continues",
        affects_results=False,
        known_as=["max_time"],
    )
    checkpoint_dir: Path | None = param(
        None, help="directory of checkpoints (default: OUTPUT_DIR/checkpoint)", affects_results=False
    )
    checkpoint_name: str = param("", help="name of checkpoints: NAME-STEP (default: STEP)", affects_results=False)
    log_dir: Path | None = param(
        None, help="directory of train.log and tensorboard/ (default: OUTPUT_DIR)", affects_results=False
    )
    export_dir: Path | None = param(
        None, help="directory of best/ and export/ (default: OUTPUT_DIR)", affects_results=False
    )
    best: BestBy | None = param(
        None,
        help="the value that selects the best model: min:val_loss, max:acc, max:lav_acc, min:train_loss (default: the model's own); of "
        "equal values the earliest counts",
        known_as=["monitor", "metric_for_best_model"],
    )
    best_dir: Path | None = param(
        None, aliases=["best_model_dir"], help="directory of best/ (default: that of export/)", affects_results=False
    )
    export_best: bool = param(True, help="keep the best model in OUTPUT_DIR/best", affects_results=False)
    export_final: bool = param(True, help="export the last model to OUTPUT_DIR/export", affects_results=False)
    export_formats: list[ExportFormatParams] = param(
        [],
        help="other formats to convert best/ and export/ to at the end, for example onnx; predictions then need no Keras",
        affects_results=False,
    )
    verify_export: bool = param(
        True,
        help="read exports back when they are written, and compare their outputs with those of the model in memory",
        affects_results=False,
    )
    scale_epoch_size: float = param(1.0, gt=0, le=1e6, help="factor on the number of steps in an epoch")
    lav_min_epoch: int = param(0, ge=0, help="no LAV before this epoch, except in the last one")
    ema_decay: float = param(
        0.0,
        ge=-1,
        lt=1,
        aliases=["calc_ema"],
        help="decay of a moving average of the weights, used for validation and exports (0: none, -1: from the number of steps)",
        known_as=["ema_momentum", "use_ema", "swa"],
    )
    no_train_scope: str | None = param(
        None,
        help="regular expression on layer paths: freeze these layers and all inside them",
        known_as=["freeze", "freeze_layers"],
    )
    precision: Literal["float32", "mixed_float16", "mixed_bfloat16"] = param(
        "float32",
        help="precision of the layers; weights, losses and outputs stay float32",
        known_as=["fp16", "bf16", "amp", "dtype_policy", "mixed_precision"],
    )
    input_gradient_penalty: float = param(
        0.0,
        ge=0,
        help="weight of the squared gradient of the loss with respect to the inputs, added to the loss",
        backends=["tensorflow"],
    )
    preload_data: bool = param(
        False,
        help="process training and validation data once and keep them in memory: --train.preload and --val.preload",
        affects_results=False,
    )
    xla: bool = param(False, help="compile steps with XLA", one_device=True, known_as=["jit_compile"])
    deterministic: bool = param(
        False,
        help="use only operations that give the same bits each time; slower on GPUs",
        known_as=["full_determinism"],
    )
    steps_per_execution: int | None = param(
        None,
        ge=1,
        help="steps per compiled call (default: chosen by the time a step takes; results never depend on it)",
        affects_results=False,
    )
    random_seed: int | None = param(
        None,
        ge=0,
        lt=2**32,
        help="seed of weights, order and augmentation (default: drawn at random, and stored)",
        common=True,
        known_as=["seed", "seed_everything"],
    )
    force_eager: bool = param(
        False, help="run op by op, so that a debugger stops inside the model", one_device=True, known_as=["run_eagerly"]
    )
    profile: bool = param(
        False,
        help="profile some steps for TensorBoard's Profile tab (extra 'profile')",
        affects_results=False,
        backends=["tensorflow"],
        known_as=["profiler"],
    )
    profile_steps: list[int] = param(
        [10, 29], ge=1, help="the first and the last step to profile", affects_results=False
    )
    sanity_check: bool = param(
        True,
        help="try a few samples of the training, the validation and LAV before the first step",
        affects_results=False,
        known_as=["num_sanity_val_steps", "fast_dev_run"],
    )
    summary: bool = param(
        True,
        help="log the layers, their parameters and the memory they take before the first step",
        affects_results=False,
        known_as=["enable_model_summary"],
    )
    stop_on_nan: bool = param(True, help="stop when the loss is no longer finite", affects_results=False)
    check_numerics: bool = param(
        False,
        help="stop at the first tensor that is not finite, and name it (slow)",
        backends=["tensorflow"],
        one_device=True,
        known_as=["detect_anomaly", "terminate_on_nan"],
    )
    progress_every: float = param(
        10.0,
        gt=0,
        help="seconds between two progress lines when the output is not a terminal",
        affects_results=False,
        known_as=["verbose", "enable_progress_bar"],
    )

    callbacks: list[CallbackParams] = param(
        [], help="further callbacks and trackers, from your own module (--import) or an installed plugin"
    )

    scenario: TScenarioParams = param(flat=True, help="the scenario")
    gen: TPipelines = param(flat=True, help="where the data comes from")
    optimizer: OptimizerParams = param(
        Adam(), flat=True, help="how gradients change the weights", common=True, known_as=["optim"]
    )
    learning_rate: LearningRateParams = param(
        Constant(),
        flat=True,
        help="the learning rate and how it changes",
        known_as=["lr_scheduler", "lr_scheduler_type"],
    )
    warmstart: WarmStartParams = param(flat=True, help="weights to start from")
    early_stopping: EarlyStoppingParams = param(flat=True, help="when to stop before the last epoch")
    tracker: list[TrackerParams] = param(
        [],
        flat=True,
        help="where else values are recorded, several at once",
        affects_results=False,
        known_as=["logger", "report_to"],
    )
    tensorboard: TensorBoardParams = param(flat=True, help="what TensorBoard shows", affects_results=False)
    device: TrainerDeviceParams = param(flat=True, help="what to compute on")

    def __post_init__(self) -> None:
        if -1 < self.ema_decay < 0:
            raise ValueError(
                f"ema_decay must be from 0 to below 1, or -1 for an automatic value; received {self.ema_decay}"
            )
        if self.xla and self.force_eager:
            raise ValueError("choose one of xla and force_eager: XLA compiles what eager mode runs op by op")
        if "/" in self.checkpoint_name or self.checkpoint_name.startswith((".", "-")):
            raise ValueError(
                f"checkpoint_name must be the first part of a folder name, such as model.ckpt; received {self.checkpoint_name!r}"
            )
        check_steps("profile_steps", self.profile_steps)
        for callback in self.callbacks:
            if isinstance(callback, TrackerServiceParams):
                name = short_name(type(callback))
                raise ValueError(f"callbacks: {name} is a tracker; use --tracker {name}")
        services = [tracker for tracker in self.tracker if isinstance(tracker, TrackerServiceParams)]
        kinds = [type(callback) for callback in (*self.all_callbacks(), *services)]
        for name, chosen in (("callbacks", self.callbacks), ("tracker", self.tracker)):
            for callback in chosen:
                if callback.once and kinds.count(type(callback)) > 1:
                    kind = short_name(type(callback))
                    raise ValueError(f"{name}: a training can have only one {kind}, and already has it")
        if self.no_train_scope is not None:
            try:
                re.compile(self.no_train_scope)
            except re.error as error:
                raise ValueError(
                    f"no_train_scope is not a regular expression ({error}): {self.no_train_scope!r}"
                ) from None

    def all_callbacks(self) -> list[CallbackParams]:
        """What accompanies a training with these parameters, in order: Scena's own callbacks and those of `callbacks`."""
        own: list[CallbackParams] = [ProgressParams(every=self.progress_every)]
        own += [BestModelParams()] if self.export_best else []
        own += [HistoryParams(), self.tensorboard]
        own += [ProfilerParams(steps=self.profile_steps)] if self.profile else []
        own += [self.early_stopping]
        own += [PlateauParams()] if isinstance(self.learning_rate, ReduceOnPlateau) else []
        own += [tracker for tracker in self.tracker if not isinstance(tracker, TrackerServiceParams)]
        services = list(services_of(self.tracker).values())
        own += [JournalParams(services=services)] if services else []
        return [params for params in (*own, *self.callbacks, EpochTableParams()) if params.active()]
