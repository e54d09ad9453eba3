"""Sheets and searches on a real Ray cluster of two nodes on this machine, one of which is lost on the way."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.program import ROOT, scena, start, stop, wait_for

pytestmark = pytest.mark.long

# Holds the cluster in a process of its own: "kill" on its standard input takes one node away, as a power cut would.
CLUSTER = """
import sys
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
nodes = [cluster.add_node(num_cpus=1, resources={name: 1}) for name in ("one", "two")]
cluster.wait_for_nodes()
print(cluster.address, flush=True)
for line in sys.stdin:
    if line.strip() == "kill":
        cluster.remove_node(nodes.pop(), allow_graceful=False)
        print("killed", flush=True)
    if line.strip() == "add":
        nodes.append(cluster.add_node(num_cpus=1))
        print("added", flush=True)
cluster.shutdown()
"""
STAND_IN = """#!/bin/bash
echo "$SCENA_RUN_ID $RAY_NODE_ID $CUDA_VISIBLE_DEVICES" >> started
[ "$1" = fail ] && { echo "went wrong"; exit 3; }
sleep $1
echo "$SCENA_RUN_ID" >> ended
"""


class TwoNodes:
    """The cluster."""

    def __init__(self) -> None:
        self.process: Any = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, cwd=ROOT,
        )  # fmt: skip
        self.address = self._answer()

    def _answer(self) -> str:
        for line in self.process.stdout:
            if line.strip() in ("killed", "added") or ":" in line:
                return str(line.strip())
        raise AssertionError("the cluster did not start")

    def tell(self, word: str) -> None:
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        self._answer()

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


@pytest.fixture
def cluster() -> Iterator[TwoNodes]:
    made = TwoNodes()
    yield made
    made.close()


def write_sheet(folder: Path, *scripts: str) -> None:
    (folder / "stand_in").write_text(STAND_IN)
    (folder / "stand_in").chmod(0o755)
    rows = "".join(f"  - {{id: {number}, script: {script}}}\n" for number, script in enumerate(scripts))
    (folder / "runs.yaml").write_text(f"runs:\n{rows}")


def lines(path: Path) -> list[list[str]]:
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def test_a_sheet_survives_the_loss_of_a_node(cluster: TwoNodes, tmp_path: Path) -> None:
    write_sheet(tmp_path, *["./stand_in 8"] * 4, "./stand_in fail")
    process = start(f"experiment runs.yaml --cluster ray://{cluster.address}", tmp_path)
    wait_for(lambda: len(lines(tmp_path / "started")) >= 2, 90)
    cluster.tell("kill")
    _, said = process.communicate(timeout=400)
    assert process.returncode == 1 and "4 done, 1 failed" in said, said
    assert "its node is lost" in said and "Run 4 failed with status 3: went wrong" in said
    assert {words[0] for words in lines(tmp_path / "ended")} >= {"0", "1", "2", "3"}
    assert {words[-1] for words in lines(tmp_path / "started")} == {"-1"}, "a run without GPUs sees none"


def test_a_training_goes_on_from_its_checkpoint_on_another_node(cluster: TwoNodes, tmp_path: Path) -> None:
    trainings = "scena train tests.toy --trainer.epochs 400 --trainer.random_seed 3"
    write_sheet(tmp_path, trainings, trainings)
    process = start(f"experiment runs.yaml --cluster ray://{cluster.address}", tmp_path)
    histories = [tmp_path / f"runs.runs/runs/{number}/history.csv" for number in (0, 1)]
    wait_for(lambda: all(path.exists() and len(path.read_text().splitlines()) > 3 for path in histories), 300)
    cluster.tell("kill")
    _, said = process.communicate(timeout=500)
    assert process.returncode == 0 and "its node is lost" in said, said
    resumed = [
        f"runs.runs/logs/{number}.log"
        for number in (0, 1)
        if "Resumed at epoch" in (tmp_path / f"runs.runs/logs/{number}.log").read_text()
    ]
    assert len(resumed) == 1, "one was on the lost node"
    seconds = histories[0].read_text().splitlines()[0].split(",").index("seconds")
    values = [
        [
            [cell for place, cell in enumerate(row.split(",")) if place != seconds]
            for row in path.read_text().splitlines()
        ]
        for path in histories
    ]
    assert len(values[0]) == 401 and values[0] == values[1], "the lost node left no trace in the results"


def test_a_cross_validation_and_seeds_run_on_the_cluster(cluster: TwoNodes, tmp_path: Path) -> None:
    cv = f"cv tests.toy --trainer.epochs 1 --cluster ray://{cluster.address}"
    done = scena(f"{cv} --folds 2 --data.count 20 --output folds", tmp_path)
    results = json.loads((tmp_path / "folds" / "results.json").read_text())
    assert list(results["folds"]) == ["fold-1", "fold-2"] and "on ray" in done.stderr
    assert (tmp_path / "folds" / "ensemble" / "ensemble.json").is_file()
    train = f"train tests.toy --trainer.epochs 1 --scheduler ray --scheduler.address ray://{cluster.address}"
    done = scena(f"{train} --seeds 2 --trainer.output_dir seeds", tmp_path)
    assert "2 runs: 2 done." in done.stderr and "(1 group of 2 runs)" in done.stdout


def test_ctrl_c_stops_a_search_and_it_goes_on(cluster: TwoNodes, tmp_path: Path) -> None:
    command = (
        f"tune tests.toy --search model.units=2,3 --sampler grid --direction max --output out --trainer.epochs 150 "
        f"--cluster ray://{cluster.address}"
    )
    process = start(command, tmp_path)
    wait_for(lambda: list(tmp_path.glob("out/trials/*/history.csv")), 300)
    status, said = stop(process)
    assert status == 130 and "The same command resumes them." in said, said
    time.sleep(1)
    done = scena(command, tmp_path)
    assert "2 complete" in done.stderr and " resumed on ray" in done.stderr
    stored = json.loads((tmp_path / "out/trials/0001/trainer_params.json").read_text())
    assert stored["trainer"]["scenario"]["model"]["units"] == 3
