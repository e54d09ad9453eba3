"""The contenders of benchmarks/serving.py: how each is installed and started, and what a service costs in CPU time."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PEERS = {
    "litserve": ["litserve"],
    "bentoml": ["bentoml"],
    "fastapi": ["fastapi", "uvicorn", "uvloop", "httptools"],
}
"""What each needs beside the runtime. Each has an environment of its own, in which the newest versions are installed."""
ONE_THREAD = "-1"
"""After the name of a peer: with one thread for each call of ONNX Runtime, instead of all."""
RUNTIMES = {"onnx": ["onnxruntime"], "keras": ["keras", "tensorflow"]}
APPS = Path(__file__).with_name("serving_peers")
ENVIRONMENTS = Path(tempfile.gettempdir()) / "scena-serving-peers"


@dataclass
class Contender:
    """A service in a process of its own."""

    name: str
    process: "subprocess.Popen[bytes]"
    port: int
    path: str
    log: Path
    found: list[dict[str, Any]] = field(default_factory=list)
    """What the clients saw, round by round."""

    def ask(self, body: bytes) -> bytes:
        """The answer to one request."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{self.path}", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            answer: bytes = response.read()
        return answer

    def wait(self, body: bytes) -> None:
        """Waits until it answers."""
        for _ in range(1200):
            try:
                self.ask(body)
                return
            except OSError:
                time.sleep(0.1)
            if self.process.poll() is not None:
                break
        raise SystemExit(f"{self.name} did not start:\n{self.log.read_text()[-3000:]}")

    def cpu_seconds(self) -> float:
        """The CPU time of its processes until now."""
        return sum(map(_cpu_seconds, _family(self.process.pid)))

    def stop(self) -> None:
        """Ends it with all its processes."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.process.poll() is None:
                os.killpg(self.process.pid, number)
                try:
                    self.process.wait(20)
                except subprocess.TimeoutExpired:
                    continue
            break


def start(name: str, model: str, runtime: str, export: Path, folder: Path) -> Contender:
    """Starts a contender: `scena`, `single` (Scena without batching), or one of `PEERS`, also with `ONE_THREAD` after its name."""
    port, log, given = _free_port(), folder / f"{name}.log", name
    environment, path = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}, "/predict"
    name = name.removesuffix(ONE_THREAD)
    if name != given:
        environment["THREADS"] = "1"
    if name in PEERS:
        python = install(name, runtime)
        file = str(export / {"onnx": "model.onnx", "keras": "plain.keras"}[runtime])
        command = [str(python), str(APPS / f"{name}_app.py"), file, str(port)]
        if name == "bentoml":
            environment |= {"MODEL": file, "BENTOML_HOME": str(folder / "bentoml"), "BENTOML_DO_NOT_TRACK": "True"}
            program = str(python.with_name("bentoml"))
            command = [program, "serve", "bentoml_app:Pictures", "--port", str(port), "--working-dir", str(APPS)]
    else:
        path = f"/v1/models/{model}:predict"
        size = "1" if name == "single" else "32"
        options = ["--port", str(port), "--max_batch", size, "--runtime", runtime]
        command = [sys.executable, "-m", "scena", "serve", str(export), *options]
    with log.open("wb") as file_of_log:
        process = subprocess.Popen(
            command, stdout=file_of_log, stderr=file_of_log, env=environment, start_new_session=True
        )
    return Contender(given, process, port, path, log)


def install(name: str, runtime: str) -> Path:
    """The interpreter of a contender's environment, which is made if it is not there."""
    folder = ENVIRONMENTS / f"{name}-{runtime}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        uv = next((found for found in (Path(sys.executable).with_name("uv"), shutil.which("uv")) if found), "uv")
        print(f"Installing {name} into {folder}", flush=True)
        subprocess.run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, folder], check=True)
        packages = [*PEERS[name], *RUNTIMES[runtime], "numpy", "pillow"]
        subprocess.run(
            [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", python, *packages], check=True
        )
        (folder / "complete").touch()
    return python


def version(name: str, runtime: str) -> str:
    """The installed version of a peer."""
    code = f"from importlib.metadata import version; print(version({name!r}))"
    return subprocess.run(
        [install(name, runtime), "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _family(pid: int) -> list[int]:
    """A process and all below it."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            parents[int(entry.name)] = int(fields[1])
    family = [pid]
    for member in family:
        family += [child for child, parent in parents.items() if parent == member]
    return family


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _cpu_seconds(pid: int) -> float:
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0
