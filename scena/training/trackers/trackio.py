"""trackio: a project's SQLite database in the user's cache, which `trackio show` shows and `trackio sync` uploads.

Values are written as trackio's own importers write them, to its database, because `trackio.log` drops what it cannot write and keeps
the rest in memory for a while. One request is one transaction, and each of its rows has an id that follows from what is in it.
"""

import hashlib
import json
import re
import shutil
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from trackio import Artifact, Image, Markdown, utils
from trackio.media import get_project_media_path
from trackio.sqlite_storage import SQLiteStorage

from scena.training.trackers.params import TrackioParams
from scena.training.trackers.service import Held, Picture, Point, ServiceError, TrackerRun, TrackerService


class TrackioService(TrackerService):
    """Writes to trackio's database."""

    params: TrackioParams

    def __init__(self, params: TrackioParams, directory: Path) -> None:
        super().__init__(params, directory)
        if utils.get_storage_mode() != "sqlite":
            raise ServiceError(
                f"trackio keeps no database in {utils.TRACKIO_DIR}, because it is on a network file system. Set TRACKIO_DIR to a folder on "
                "a local disk, then call `scena track`."
            )
        self._shown: dict[str, set[tuple[str, int]]] = {}
        """Images and texts by run, key and step."""

    def open(self, run: TrackerRun) -> Held:
        self._describe(run)
        held: Held = {}
        shown = self._shown[run.identity] = set()
        for row in SQLiteStorage.get_logs(self._project(run), run.name, run_id=run.identity):
            step = int(row.pop("step"))
            del row["timestamp"]
            for key, value in row.items():
                if isinstance(value, int | float):
                    held[key, step] = float(value)
                else:
                    shown.add((key, step))
        return held

    def send(self, run: TrackerRun, points: list[Point]) -> None:
        rows = []
        for (step, time), group in groupby(points, lambda point: (point.step, point.time)):
            rows.append((step, time, {self.name(point.key): point.value for point in group}))
        self._write(run, rows)

    def send_picture(self, run: TrackerRun, picture: Picture) -> None:
        if (self.name(picture.key), picture.step) not in self._shown[run.identity]:
            folder = get_project_media_path(self._project(run), run.identity, picture.step)
            copy = folder / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', picture.key)}.png"
            shutil.copyfile(picture.file, copy)
            content = {"_type": Image.TYPE, "file_path": str(copy.relative_to(utils.MEDIA_DIR)), "caption": None}
            self._show(run, picture.key, picture.step, picture.time, content)

    def send_text(self, run: TrackerRun, key: str, step: int, text: str) -> None:
        if (self.name(key), step) not in self._shown[run.identity]:
            self._show(run, key, step, run.branch.time, {"_type": Markdown.TYPE, "_value": text})

    def send_tags(self, run: TrackerRun, tags: dict[str, str]) -> None:
        self._describe(run)

    def send_artifact(self, run: TrackerRun, name: str, path: Path) -> None:
        artifact = Artifact(f"{run.identity}-{name}", "model" if path.is_dir() else "result")
        if path.is_dir():
            artifact.add_dir(path)
        else:
            artifact.add_file(path)
        SQLiteStorage.commit_artifact_version(  # content that is there is no new version
            self._project(run), artifact.name, artifact.type, None, artifact._build_manifest(self._project(run)),
            None, None, run.name, run.identity,
        )  # fmt: skip

    def name(self, key: str) -> str:
        """trackio has columns of its own."""
        return f"__{key}" if key in utils.RESERVED_KEYS or key.startswith("__") else key

    def url(self, run: TrackerRun) -> str | None:
        return f"trackio show --project {self._project(run)}"

    def _project(self, run: TrackerRun) -> str:
        """The project, with the characters of its file."""
        return utils.canonical_project_name(
            self.params.project or run.branch.scenario.replace(":", "-").replace(".", "-")
        )

    def _show(self, run: TrackerRun, key: str, step: int, time: int, content: dict[str, Any]) -> None:
        self._write(run, [(step, time, {self.name(key): content})])
        self._shown[run.identity].add((self.name(key), step))

    def _describe(self, run: TrackerRun) -> None:
        """Sets the parameters and tags. A run is in trackio's list once it has a row, so it begins with an empty one."""
        tags = {**run.described(), **self.params.all_tags()}
        own = {"_Created": _iso(run.branch.time), "_Group": run.branch.run}
        self._write(run, [(run.branch.step, run.branch.time, {})], {**run.branch.params, **tags, **own})

    def _write(
        self, run: TrackerRun, rows: list[tuple[int, int, dict[str, Any]]], config: dict[str, Any] | None = None
    ) -> None:
        """Adds rows in one transaction; one that is there is not added again."""
        steps, times, values = map(list, zip(*rows, strict=True))
        SQLiteStorage.bulk_log(
            self._project(run),
            run.name,
            values,
            steps,
            [_iso(time) for time in times],
            config,
            [_row_id(run, step, row) for step, _, row in rows],
            run_id=run.identity,
        )


def _row_id(run: TrackerRun, step: int, row: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps([run.identity, step, sorted(row)]).encode()).hexdigest()


def _iso(time: int) -> str:
    return datetime.fromtimestamp(time / 1000, UTC).isoformat()
