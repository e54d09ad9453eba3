"""SIGKILL at random moments, for everything that trains: what is resumed ends with exactly what an undisturbed run ends with.

`python -m tests.reliability.kills --count 1000` kills that often, each of the `KINDS` alike (`--kinds train jax`: some), and compares
each result with that of a run that was not killed. Trainings are forked from processes that have imported TensorFlow, or JAX;
only `launch`, `experiment` and `tune` start new ones, as they do for users. A process is killed when it and its children have used a
random amount of processor time, so a busy machine changes nothing: sometimes all of them, sometimes the first, sometimes any one.
"""

import argparse
import json
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scena.backends.local_cluster import free_ports
from scena.storage.run_layout import PARAMS_FILE
from tests.faults.harness import SCENARIO, fingerprint, flags
from tests.zygote import Child, Zygote

FLAGS = flags("--trainer.epochs 3")
MIRROR = "--device.dist_strategy mirror --device.virtual_devices 2".split()
TICKS = os.sysconf("SC_CLK_TCK")
Result = dict[str, Any]


class Kind:
    """One way to train: `command` is what is started first and after each kill."""

    backend = "tensorflow"
    alone = True
    """Whether a process that the command has started may be killed alone."""

    def command(self, folder: Path) -> list[str]:
        """Trains, or resumes if there is a run."""
        run = folder / "run"
        if (run / PARAMS_FILE).exists():
            return ["resume", str(run)]
        return ["train", SCENARIO, "--trainer.output_dir", str(run), *FLAGS]

    def environment(self) -> list[dict[str, str]]:
        """What each of its processes gets."""
        return [{}]

    def result(self, folder: Path) -> Result:
        """What must not differ."""
        return {str(path.parent.relative_to(folder)): fingerprint(path.parent) for path in folder.rglob(PARAMS_FILE)}


class Jax(Kind):
    """A training with JAX."""

    backend = "jax"


class Mirror(Kind):
    """A training on two parts of the processor."""

    def command(self, folder: Path) -> list[str]:
        words = super().command(folder)
        return words if words[0] == "resume" else [*words, *MIRROR]


class Workers(Kind):
    """A training in two processes, which have what `launch` gives them."""

    def command(self, folder: Path) -> list[str]:
        words = super().command(folder)
        return words if words[0] == "resume" else [*words, "--device.dist_strategy", "multi_worker"]

    def environment(self) -> list[dict[str, str]]:
        addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
        tasks = [{"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}} for index in (0, 1)]
        return [{"TF_CONFIG": json.dumps(task)} for task in tasks]


class Launch(Kind):
    """`scena launch --workers 2 train …`."""

    def command(self, folder: Path) -> list[str]:
        return ["launch", "--workers", "2", "--share_cores", "--patience", "20", *super().command(folder)]


class Experiment(Kind):
    """A sheet of two trainings."""

    def command(self, folder: Path) -> list[str]:
        sheet = folder / "sheet.yaml"
        if not sheet.exists():
            names = [flag[2:] for flag in FLAGS[::2]]
            params = dict(zip(names, FLAGS[1::2], strict=True))
            runs = [{"id": "a", "params": {"model.units": 4}}, {"id": "b", "params": {"model.units": 5}}]
            sheet.write_text(json.dumps({"script": f"scena train {SCENARIO}", "params": params, "runs": runs}))
        return ["experiment", str(sheet), "--output", str(folder / "out"), "--cpus", "2"]


class Tune(Kind):
    """A search over three learning rates, in two processes."""

    alone = False  # a trial that is killed has failed: its parameters may need too much memory

    def command(self, folder: Path) -> list[str]:
        search = ["--search", "learning_rate.lr=0.01,0.02,0.03", "--sampler", "grid", "--cpus", "2"]
        return ["tune", SCENARIO, *search, "--output", str(folder / "out"), "--study", "s", *FLAGS]

    def result(self, folder: Path) -> Result:
        import optuna

        study = optuna.load_study(study_name="s", storage=f"sqlite:///{folder / 'out' / 'study.db'}")
        done = [trial for trial in study.trials if trial.state == optuna.trial.TrialState.COMPLETE]
        assert len(done) == 3, f"{len(done)} of 3 trials are complete"
        return {str(trial.params): trial.value for trial in done}


KINDS: dict[str, Kind] = {
    "train": Kind(),
    "jax": Jax(),
    "mirror": Mirror(),
    "workers": Workers(),
    "launch": Launch(),
    "experiment": Experiment(),
    "tune": Tune(),
}


class Killer:
    """Runs one kind again and again, killed and not killed."""

    def __init__(self, kind: Kind, zygote: Zygote, folder: Path) -> None:
        self.kind, self.zygote = kind, zygote
        whole = folder / "whole"
        whole.mkdir()
        self.used = 0.0
        """Processor time of all processes so far, without the last moments of each."""
        _, failed = self._attempt(whole, None)
        assert not failed, failed
        self.whole = self.used
        """The processor time that an undisturbed run takes."""
        self.expected = kind.result(whole)

    def kill_until_finished(self, folder: Path, rng: random.Random, kills: int) -> tuple[int, str]:
        """Starts and kills until it ends by itself; how often it was killed, and what is wrong with the result."""
        folder.mkdir()
        done = 0
        for _ in range(kills * 10):
            after = rng.uniform(0, self.whole) if done < kills else None
            killed, failed = self._attempt(folder, after, rng)
            done += killed
            if not killed:
                if failed:
                    return done, failed
                found = self.kind.result(folder)
                return (
                    done,
                    "" if found == self.expected else "; ".join(differences(found, self.expected)),
                )
        return done, "it never ends"

    def _attempt(self, folder: Path, after: float | None, rng: random.Random | None = None) -> tuple[bool, str]:
        """Whether it was killed, after this much processor time; and how it failed otherwise."""
        log = folder / "log"
        command = self.kind.command(folder)
        children = [
            self.zygote.start(*command, log=log, environment=environment) for environment in self.kind.environment()
        ]
        last = 0.0
        killed = after is not None and rng is not None and _kill_after(children, after, rng, self.kind.alone)
        others = {pid for child in children for pid in descendants(child.pid)}
        while any(child.is_alive() for child in children):
            others |= {pid for child in children for pid in descendants(child.pid)}
            last = max(last, sum(processor_time(child.pid) for child in children))
            time.sleep(0.05)
        statuses = [child.wait() for child in children]
        _until(lambda: not any(_is_alive(pid) for pid in others))
        self.used += last
        if all(status == 0 for status in statuses):
            return False, ""
        return killed, "" if killed else f"ended with {statuses}: {log.read_text()[-1500:]}"


def differences(found: Any, expected: Any, where: str = "") -> list[str]:
    """What differs, by its place in nested results."""
    if isinstance(found, dict) and isinstance(expected, dict):
        names = [*expected, *(name for name in found if name not in expected)]
        return [line for name in names for line in differences(found.get(name), expected.get(name), f"{where}/{name}")]
    if isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        pairs = enumerate(zip(found, expected, strict=True))
        return [line for place, (one, other) in pairs for line in differences(one, other, f"{where}/{place}")]
    return [] if found == expected else [f"{where} is {found!r:.200}, not {expected!r:.200}"]


def _kill_after(children: list[Child], seconds: float, rng: random.Random, alone: bool) -> bool:
    """Kills some processes once all have used this much processor time; False if they ended before."""
    _until(
        lambda: (
            not any(child.is_alive() for child in children)
            or sum(processor_time(child.pid) for child in children) >= seconds
        )
    )
    alive = [child.pid for child in children if child.is_alive()]
    if not alive:
        return False
    everybody = [*alive, *(pid for pid in alive for pid in descendants(pid))]
    chosen = rng.choice([everybody, alive[:1], [rng.choice(everybody if alone else alive)]])
    for pid in chosen:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return True


def descendants(pid: int) -> list[int]:
    """The processes that a process has started, and those that these have started."""
    try:
        words = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [one for word in words for one in (int(word), *descendants(int(word)))]


def processor_time(pid: int) -> float:
    """Seconds of a process and all that it has started."""
    total = 0.0
    for one in (pid, *descendants(pid)):
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:15])) / TICKS
    return total


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _until(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.01)


def main() -> int:
    """Kills, compares and counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=list(KINDS))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    wrong = total = 0
    for position, name in enumerate(options.kinds):
        wanted = options.count * (position + 1) // len(options.kinds) - options.count * position // len(options.kinds)
        zygote = Zygote.started(KERAS_BACKEND=KINDS[name].backend)
        with tempfile.TemporaryDirectory(prefix="scena-kills-") as folder:
            killer = Killer(KINDS[name], zygote, Path(folder))
            done = number = 0
            while done < wanted:
                rng = random.Random(f"{options.seed} {name} {number}")
                kills, problem = killer.kill_until_finished(Path(folder) / str(number), rng, min(6, wanted - done))
                done, number, wrong = done + kills, number + 1, wrong + bool(problem)
                if problem:
                    print(f"WRONG: {name} {number - 1}: {problem}", flush=True)
        zygote.close()
        total += done
        print(
            f"{name}: {done} kills, {(killer.used - killer.whole) / max(done, 1):.1f} s of processor time for each",
            flush=True,
        )
    print(f"{total} kills, {wrong} wrong")
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
