"""Parameters of a warm start. A subclass with a warm starter of its own is chosen with `--warmstart NAME`."""

import re
from pathlib import Path

from scena.params import Params, param


class WarmStartParams(Params, builds=".warmstarter:WarmStarter"):
    """Weights to start from instead of random ones."""

    model: Path | None = param(
        None,
        help="where the weights are: an export, a run, a checkpoint (OUTPUT_DIR/checkpoint/STEP) or a .safetensors file",
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
