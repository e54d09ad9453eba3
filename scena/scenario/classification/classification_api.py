"""The flags of classification-api's train.py, and the keys of its conf.yml, in ours. Pure Python.

A name that has one meaning here is only renamed. Names of optimizers and of decay strategies also imply values. A value that
would have no effect is refused.
"""

from pathlib import Path
from typing import Any

from scena.errors import ParamsError, did_you_mean
from scena.params.cli.words import from_words
from scena.params.convert import Mismatch, convert
from scena.params.files.entries import Entry, Spellings

RENAMED = {
    "model_name": ["model.name"],
    "num_classes": ["model.num_classes"],
    "input_size": ["model.input_size"],
    "framework": ["model.framework"],
    "factor": ["model.factor"],
    "num_epochs": ["trainer.epochs"],
    "checkpoint_dir": ["trainer.checkpoint_dir"],
    "log_dir": ["trainer.log_dir"],
    "export_dir": ["trainer.export_dir"],
    "export.dir": ["trainer.export_dir"],
    "dataloader.train_list": ["train.augment"],
    "dataloader.val_list": ["val.augment"],
    "dataloader.train_split_id": ["train.split"],
    "dataloader.val_split_id": ["val.split"],
    "dataloader.batch_size": ["train.batch_size", "val.batch_size"],
    "optimizer.lr": ["learning_rate.lr"],
    "configuration.profiler": ["trainer.profile"],
}
NAME, FOLDER = "dataloader.name", "dataloader.data_dir"
OPTIMIZER = "optimizer.name"
OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "adadelta": ("Adadelta", {}),
    "adagrad": ("Adagrad", {}),
    "adam": ("Adam", {}),
    "adam_amsgrad": ("Adam", {"amsgrad": True}),
    "sgd": ("SGD", {}),
    "sgd_momentum": ("SGD", {"momentum": 0.9}),
    "sgd_nesterov": ("SGD", {"momentum": 0.9, "nesterov": True}),
    "nadam": ("Nadam", {}),
    "rmsprop": ("RMSprop", {}),
}
MOMENTUM = "optimizer.momentum"
SWITCHES = {
    "configuration.with_mixed_precision": ("trainer.precision", "mixed_float16", "float32"),
    "configuration.mirrored": ("device.dist_strategy", "mirror", "default"),
}
DECAY = "optimizer.lr_decay_strategy."
ACTIVATE = DECAY + "activate"
STRATEGY = DECAY + "lr_params.strategy"
# the schedule, what it has anyway, and the names of its parameters there and here
STRATEGIES: dict[str, tuple[str, dict[str, Any], dict[str, str]]] = {
    "exponential_decay": ("ExponentialDecay", {"decay": 0.9}, {}),
    "step_decay": ("StepDecay", {"per": "epoch"}, {"decay_rate": "decay", "drop_after_num_epoch": "every"}),
    "step_decay_schedule": ("StepListDecay", {"per": "epoch"}, {"decay_rate": "decay", "drop_schedule": "boundaries"}),
    "polynomial_decay": ("PolynomialDecay", {"per": "epoch"}, {"power": "power"}),
    "inverse_time_decay": (
        "InverseTimeDecay",
        {"per": "epoch"},
        {"decay_rate": "decay", "decay_step": "every", "staircase": "staircase"},
    ),
    "cosine_decay": ("CosineDecay", {"per": "epoch"}, {"alpha": "alpha"}),
    "lr_reduce_on_plateau": ("ReduceOnPlateau", {}, {"decay_rate": "decay", "patience": "patience"}),
}
LR_PARAMS = {DECAY + "lr_params." + name: name for _, _, names in STRATEGIES.values() for name in names}


def translate(given: dict[str, Entry]) -> list[Entry]:
    """What the names stand for."""
    entries = [Entry(name, entry.value, entry.origin) for old, entry in given.items() for name in RENAMED.get(old, ())]
    entries += _data_set(given.get(NAME), given.get(FOLDER))
    for old, (name, on, off) in SWITCHES.items():
        if old in given:
            entries.append(_derived(given[old], name, on if _read(given[old], bool) else off))
    entries += _optimizer(given.get(OPTIMIZER), given.get(MOMENTUM))
    return entries + _schedule(given)


def _data_set(name: Entry | None, folder: Entry | None) -> list[Entry]:
    """Record files where the folder holds such a data set; otherwise a data set by its name."""
    if name is not None and folder is not None:
        from scena.data.image.statistics import INFO_FILE  # needs numpy, which --help does not load

        path = Path(_read(folder, str), _read(name, str))
        if (path / INFO_FILE).is_file():
            return [_derived(name, "data", "ImageRecords"), _derived(folder, "data.records", str(path))]
    given = {"data.dataset": name, "data.data_dir": folder}
    return [Entry(ours, entry.value, entry.origin) for ours, entry in given.items() if entry is not None]


def _optimizer(name: Entry | None, momentum: Entry | None) -> list[Entry]:
    entries = [] if momentum is None else [momentum]
    if name is not None:
        cls, values = _one_of(OPTIMIZERS, name)
        entries.append(_derived(name, "optimizer", cls))
        entries += [
            _derived(name, f"optimizer.{key}", value)
            for key, value in values.items()
            if key != "momentum" or momentum is None
        ]
    return entries


def _schedule(given: dict[str, Entry]) -> list[Entry]:
    values = {LR_PARAMS[name]: entry for name, entry in given.items() if name in LR_PARAMS}
    activate, strategy = given.get(ACTIVATE), given.get(STRATEGY)
    if activate is None or not _read(activate, bool):
        if entry := next((entry for entry in (strategy, *values.values()) if entry is not None), None):
            raise ParamsError(entry.error(f"has no effect without {ACTIVATE}: set it to True, or remove this"))
        return [] if activate is None else [_derived(activate, "learning_rate", "Constant")]
    cls, fixed, names = _one_of(STRATEGIES, strategy) if strategy is not None else STRATEGIES["lr_reduce_on_plateau"]
    for name, entry in values.items():
        if name not in names:
            raise ParamsError(entry.error(f"has no effect on {cls}, which has {', '.join(names) or 'none of these'}"))
    entries = [_derived(strategy or activate, "learning_rate", cls)]
    entries += [_derived(activate, f"learning_rate.{name}", value) for name, value in fixed.items()]
    if cls == "InverseTimeDecay" and "staircase" in values and _read(values["staircase"], bool):
        # there the product with the rate is rounded down, here the number of epochs
        rate, step = (_read(values[name], float) if name in values else default for name, default in _INVERSE.items())
        if not rate > 0:
            raise ParamsError(values["decay_rate"].error(f"must be > 0 with a staircase, received {rate}"))
        return [
            *entries,
            _derived(activate, "learning_rate.decay", 1.0),
            _derived(activate, "learning_rate.every", step / rate),
            _derived(activate, "learning_rate.staircase", True),
        ]
    return entries + [
        Entry(f"learning_rate.{names[name]}", entry.value, entry.origin) for name, entry in values.items()
    ]


_INVERSE = {"decay_rate": 0.5, "decay_step": 1.0}


def _one_of(choices: dict[str, Any], entry: Entry) -> Any:
    name = _read(entry, str).lower()
    if name not in choices:
        raise ParamsError(
            entry.error(f"expected one of {', '.join(choices)}, received {name!r}{did_you_mean(name, choices)}")
        )
    return choices[name]


def _read(entry: Entry, kind: type) -> Any:
    """The value of an entry, from a file or from words."""
    try:
        return convert(from_words(entry.value, kind) if entry.is_text else entry.value, kind)
    except Mismatch as error:
        raise ParamsError(entry.error(str(error))) from None


def _derived(entry: Entry, name: str, value: Any) -> Entry:
    """Another value under another name, as if the user had given it where this entry stands."""
    return Entry(name, [str(value)] if entry.is_text else value, entry.origin)


SPELLINGS = Spellings(
    {*RENAMED, NAME, FOLDER, OPTIMIZER, MOMENTUM, ACTIVATE, STRATEGY, *SWITCHES, *LR_PARAMS}, translate
)
