"""Parameters of trackers whose services get each value exactly once."""

import importlib.util
import os
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from scena.errors import TrainingError
from scena.params import Params, param
from scena.params.declare import short_name
from scena.training.callbacks.params import CallbackParams, TrackerParams


class TrackerServiceParams(TrackerParams, abstract=True):
    """A tracker that gets each value exactly once. Subclass it with `builds=".services:MyService"`, a `TrackerService`."""

    once = True
    package: ClassVar[str | None] = None
    """The package that it needs, and the extra that brings it, if they have the same name."""
    addresses: ClassVar[tuple[str, ...]] = ()
    """Parameters that say where values go. A stored one is used only if the user repeats it, since it may come from somebody else."""

    tags: list[str] = param([], help="facts to find the run by, as KEY=VALUE")

    def __post_init__(self) -> None:
        for tag in self.tags:
            if not tag.partition("=")[0] or "=" not in tag:
                raise ValueError(f"a tag is KEY=VALUE, for example paper=v2; received {tag!r}")

    def all_tags(self) -> dict[str, str]:
        """The tags by their keys."""
        return dict(tag.split("=", 1) for tag in self.tags)

    def foreign_addresses(self) -> dict[str, str]:
        """The addresses that these parameters hold and this machine's environment does not, by name."""
        return {name: value for name in self.addresses if (value := getattr(self, name)) is not None}

    def check_ready(self) -> None:
        """Raises TrainingError for what would keep it from working on this machine; called before a training starts."""
        if self.package is not None and importlib.util.find_spec(self.package.partition("-")[0]) is None:
            name = short_name(type(self))
            raise TrainingError(f"--tracker {name} needs the package {self.package}: pip install 'scena[{name}]'")

    def environment(self) -> dict[str, str]:
        """Environment variables of the process that sends."""
        return {}


class MlflowParams(TrackerServiceParams, name="mlflow", builds="scena.training.trackers.mlflow:MlflowService"):
    """An MLflow server. A user name, password or token comes from the environment, as MLflow reads it (MLFLOW_TRACKING_TOKEN, …)."""

    package = "mlflow-skinny"
    addresses = ("uri",)

    uri: str | None = param(
        None, help="the address of the server, such as http://localhost:5000 (default: MLFLOW_TRACKING_URI)"
    )
    experiment: str | None = param(None, help="the experiment (default: the scenario's name)")

    def __post_init__(self) -> None:
        super().__post_init__()
        parts = urlsplit(self.uri or "")
        if parts.username or parts.password or parts.query:
            raise ValueError(
                "uri must have no credentials in it, because parameters are stored and shown; set MLFLOW_TRACKING_USERNAME and "
                "MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN"
            )

    def address(self) -> str | None:
        """The server's address."""
        return self.uri or os.environ.get("MLFLOW_TRACKING_URI")

    def foreign_addresses(self) -> dict[str, str]:
        return {} if self.uri == os.environ.get("MLFLOW_TRACKING_URI") else super().foreign_addresses()

    def check_ready(self) -> None:
        super().check_ready()
        if not (self.address() or "").startswith(("http://", "https://", "databricks")):
            raise TrainingError(
                "--tracker mlflow needs the address of a server: --tracker.mlflow.uri http://localhost:5000, or the variable "
                f"MLFLOW_TRACKING_URI. Received: {self.address()!r}."
            )

    def environment(self) -> dict[str, str]:
        return {
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
            "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",  # the sender asks before it tries again
        }


class WandbParams(TrackerServiceParams, name="wandb", builds="scena.training.trackers.wandb:WandbService"):
    """Offline files of Weights & Biases in OUTPUT_DIR/tracking/wandb; `wandb sync` uploads them."""

    package = "wandb"

    project: str | None = param(None, help="the project (default: the scenario's name)")

    def environment(self) -> dict[str, str]:
        return {"WANDB_ERROR_REPORTING": "false", "WANDB_MODE": "offline", "WANDB_SILENT": "true"}


class TrackioParams(TrackerServiceParams, name="trackio", builds="scena.training.trackers.trackio:TrackioService"):
    """trackio's database on this machine: the folder TRACKIO_DIR, or huggingface/trackio in the user's cache. `trackio show` shows it."""

    package = "trackio"

    project: str | None = param(None, help="the project (default: the scenario's name)")


class JournalParams(CallbackParams, abstract=True, builds=".callback:JournalTracker"):
    """Writes the journal from which services are sent to. Part of every training with such a tracker."""

    services: list[TrackerServiceParams] = param([], help="the services")


class Trackers(Params):
    """The trackers of a stored run."""

    tracker: list[TrackerParams] = param([], help="the trackers")


def services_of(trackers: list[TrackerParams]) -> dict[str, TrackerServiceParams]:
    """Those that are sent to from the journal, by name."""
    return {short_name(type(each)): each for each in trackers if isinstance(each, TrackerServiceParams)}


def stored_services(description: dict[str, Any]) -> dict[str, TrackerServiceParams]:
    """The services of a run, from the content of its parameters file.

    Raises:
        ParamsError: their parameters cannot be read.
    """
    from scena.params import build

    trainer = description.get("trainer")
    raw = trainer.get("tracker") if isinstance(trainer, dict) else None
    return services_of(build({"tracker": raw or []}, Trackers).tracker)


def service_folder(tracking: Path, name: str) -> Path:
    """The folder for the files of a service."""
    return tracking / name
