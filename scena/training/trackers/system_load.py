"""How busy the machine is, from /proc: what the training takes of it, and what is left."""

import os
import time
from collections.abc import Callable
from threading import Event, Thread

PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")
INTERVAL = 15.0


class SystemLoad:
    """Processor and memory use since the last call of `sample`."""

    def __init__(self) -> None:
        self._before = self._now()

    def sample(self) -> dict[str, float]:
        """The load by name: processors in percent of one (of all for the machine), memory in megabytes and percent."""
        wall, own, busy, total = self._now()
        before, self._before = self._before, (wall, own, busy, total)
        found = {
            "system/process_cpu_percent": 100 * (own - before[1]) / max(wall - before[0], 1e-9),
            "system/cpu_percent": 100 * (busy - before[2]) / max(total - before[3], 1e-9),
            "system/process_memory_mb": _resident() / 1e6,
        }
        memory = _memory()
        if "MemTotal" in memory:
            found["system/memory_percent"] = 100 * (1 - memory.get("MemAvailable", 0) / max(memory["MemTotal"], 1))
        return {name: round(value, 2) for name, value in found.items()}

    def _now(self) -> tuple[float, float, float, float]:
        with open("/proc/stat", encoding="ascii") as file:
            fields = [float(text) for text in file.readline().split()[1:9]]
        idle = fields[3] + fields[4]
        times = os.times()
        own = times.user + times.system + times.children_user + times.children_system
        return time.monotonic(), own, (sum(fields) - idle) / TICKS, sum(fields) / TICKS


class LoadSampler:
    """Calls `record` with the load every few seconds, in a thread."""

    def __init__(self, record: Callable[[dict[str, float]], None], interval: float = INTERVAL) -> None:
        self._record, self._interval = record, interval
        self._stopped = Event()
        self._thread = Thread(target=self._run, name="scena-system-load", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        load = SystemLoad()
        while not self._stopped.wait(self._interval):
            self._record(load.sample())


def _resident() -> float:
    with open("/proc/self/statm", encoding="ascii") as file:
        return float(file.read().split()[1]) * PAGE


def _memory() -> dict[str, float]:
    with open("/proc/meminfo", encoding="ascii") as file:
        pairs = (line.split(":") for line in file)
        return {name: float(rest.split()[0]) for name, rest in pairs}
