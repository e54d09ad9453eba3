"""MLflow: runs of an experiment on a tracking server.

The server gives runs their ids, so a run carries its own identity as a tag and is found by it. Numbers are sent with the time of the
journal: to MLflow's database, a number that arrives twice with the same time is one number, even if an answer was lost.
"""

import logging
import math
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag
from mlflow.exceptions import MlflowException

from scena.storage.checksums import file_checksum, json_checksum, tree_checksums
from scena.training.trackers.params import MlflowParams
from scena.training.trackers.service import Held, Picture, Point, ServiceError, TrackerRun, TrackerService

logger = logging.getLogger(__name__)

IDENTITY = "scena.run"
SHOWN = "scena.images"
"""How many images and texts of a run are on the server."""
MOST_PARAMS = 100
LONGEST_VALUE = 6000
HOPELESS = ("INVALID_PARAMETER_VALUE", "PERMISSION_DENIED", "UNAUTHENTICATED", "BAD_REQUEST")
"""Codes of errors that do not get better by themselves."""


class MlflowService(TrackerService):
    """Sends to an MLflow server."""

    params: MlflowParams

    def __init__(self, params: MlflowParams, directory: Path) -> None:
        super().__init__(params, directory)
        self._client = MlflowClient(tracking_uri=params.address())
        self._ids: dict[str, tuple[str, str]] = {}
        """Experiment and run by identity."""
        self._shown: dict[str, int] = {}
        self._passed: dict[str, int] = {}

    def open(self, run: TrackerRun) -> Held:
        try:
            experiment = self._experiment(self.params.experiment or run.branch.scenario)
            found = self._find(experiment, run.identity) or self._create(experiment, run)
            self._ids[run.identity] = experiment, found.info.run_id
            self._shown[run.identity] = int(found.data.tags.get(SHOWN, 0))
            self._send_params(run, found.data.params)
            return self._held(found.info.run_id, list(found.data.metrics))
        except MlflowException as error:
            raise _explained(error) from error

    def send(self, run: TrackerRun, points: list[Point]) -> None:
        metrics = [Metric(self.name(point.key), _finite(point.value), point.time, point.step) for point in points]
        self._client.log_batch(self._id(run), metrics=metrics)

    def send_tags(self, run: TrackerRun, tags: dict[str, str]) -> None:
        self._client.log_batch(self._id(run), tags=[RunTag(name, text[:5000]) for name, text in tags.items()])

    def send_picture(self, run: TrackerRun, picture: Picture) -> None:
        with self._counted(run) as new:
            if new:
                self._upload(run, picture.file, f"images/{self.name(picture.key)}", f"{picture.step}.png")

    def send_text(self, run: TrackerRun, key: str, step: int, text: str) -> None:
        with self._counted(run) as new:
            if new:
                self._client.log_text(self._id(run), text, f"texts/{self.name(key)}/{step}.md")

    def send_artifact(self, run: TrackerRun, name: str, path: Path) -> None:
        mark, content = f"scena.artifact.{name}", _content(path)
        if self._client.get_run(self._id(run)).data.tags.get(mark) == content:
            return
        if path.is_dir():
            self._client.log_artifacts(self._id(run), str(path), name)
        else:
            self._client.log_artifact(self._id(run), str(path))
        self._client.set_tag(self._id(run), mark, content)

    def end(self, run: TrackerRun, time: int) -> None:
        self._client.set_terminated(self._id(run), "FINISHED", time)

    def name(self, key: str) -> str:
        """Only the characters that MLflow accepts."""
        return re.sub(r"[^A-Za-z0-9_\-. /]", "_", key)[:250]

    def same(self, held: float, value: float) -> bool:
        return super().same(held, _finite(value))

    def url(self, run: TrackerRun) -> str | None:
        if run.identity not in self._ids or not self.params.uri:
            return None
        experiment, found = self._ids[run.identity]
        return f"{self.params.uri.rstrip('/')}/#/experiments/{experiment}/runs/{found}"

    def _id(self, run: TrackerRun) -> str:
        return self._ids[run.identity][1]

    def _experiment(self, name: str) -> str:
        found = self._client.get_experiment_by_name(name)
        if found is None:
            try:
                return str(self._client.create_experiment(name))
            except MlflowException:
                found = self._client.get_experiment_by_name(name)  # another run has just created it
                if found is None:
                    raise
        if found.lifecycle_stage != "active":
            raise ServiceError(
                f"The experiment {name!r} is deleted on the MLflow server: restore it, or choose another."
            )
        return str(found.experiment_id)

    def _find(self, experiment: str, identity: str) -> Any:
        """The run with this identity. A lost answer may have left an empty second one, which is deleted."""
        found = self._client.search_runs([experiment], f"tags.`{IDENTITY}` = '{identity}'", max_results=10)
        runs = sorted(found, key=lambda each: (not each.data.metrics, each.info.start_time, each.info.run_id))
        for other in runs[1:]:
            if not other.data.metrics:
                self._client.delete_run(other.info.run_id)
        return runs[0] if runs else None

    def _create(self, experiment: str, run: TrackerRun) -> Any:
        tags = {**run.described(), **self.params.all_tags()}
        if run.parent is not None and (parent := self._find(experiment, run.parent)) is not None:
            tags["mlflow.parentRunId"] = parent.info.run_id
        return self._client.create_run(experiment, start_time=run.branch.time, tags=tags, run_name=run.name)

    def _send_params(self, run: TrackerRun, known: dict[str, str]) -> None:
        new = {self.name(name): str(value)[:LONGEST_VALUE] for name, value in run.branch.params.items()}
        missing = [Param(name, text) for name, text in new.items() if name not in known]
        for start in range(0, len(missing), MOST_PARAMS):
            self._client.log_batch(self._id(run), params=missing[start : start + MOST_PARAMS])

    def _held(self, run_id: str, keys: list[str]) -> Held:
        return {
            (key, metric.step): metric.value for key in keys for metric in self._client.get_metric_history(run_id, key)
        }

    @contextmanager
    def _counted(self, run: TrackerRun) -> Iterator[bool]:
        """Whether an image or text is not on the server yet. They come in order, so a tag with their number says that."""
        number = self._passed.get(run.identity, 0) + 1
        new = number > self._shown.get(run.identity, 0)
        yield new
        self._passed[run.identity] = number
        if new:
            self._client.set_tag(self._id(run), SHOWN, str(number))

    def _upload(self, run: TrackerRun, file: Path, folder: str, name: str) -> None:
        copy = self.directory / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())
        self._client.log_artifact(self._id(run), str(copy), folder)
        copy.unlink()


def _content(path: Path) -> str:
    return json_checksum(dict(tree_checksums(path))) if path.is_dir() else file_checksum(path)


def _finite(value: float) -> float:
    """The value as MLflow's database has it: without infinity."""
    return math.copysign(sys.float_info.max, value) if math.isinf(value) else value


def _explained(error: MlflowException) -> Exception:
    return ServiceError(str(error)) if error.error_code in HOPELESS else error
