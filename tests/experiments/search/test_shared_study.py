"""A search that several machines share through PostgreSQL: a real server, two processes with folders of their own."""

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.experiments.program import ROOT
from tests.experiments.search.drive_search import EPOCHS

BIN = next((str(path) for path in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), "")


def as_server(*words: str) -> None:
    """The server refuses to run as root."""
    prefix = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
    subprocess.run([*prefix, *words], check=True, capture_output=True, timeout=120)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a server of Debian's packages, started for this test, reachable through a Unix socket only."""
    program = shutil.which("pg_ctl", path=f"{BIN}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        pytest.skip("PostgreSQL is not installed")
    bin_folder = Path(program).resolve().parent
    folder = Path(tempfile.mkdtemp(prefix="scena-pg-", dir="/tmp"))
    try:
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(folder, user.pw_uid, user.pw_gid)
        as_server(str(bin_folder / "initdb"), "-D", f"{folder}/data", "-U", "scena", "-A", "trust", "--no-sync")
        options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
        as_server(
            str(bin_folder / "pg_ctl"), "-D", f"{folder}/data", "-w", "-l", f"{folder}/log", "-o", options, "start"
        )
        try:
            yield f"postgresql://scena@/postgres?host={folder}"
        finally:
            as_server(str(bin_folder / "pg_ctl"), "-D", f"{folder}/data", "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_two_machines_share_a_study(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("STAND_IN_SECONDS", "0.05")
    options = {"axes": ["model.units=1:9"], "trials": 0, "sampler": "grid", "slots": 1, "storage": server}
    processes = []
    for name in ("one", "two"):
        words = [
            sys.executable,
            "-m",
            "tests.experiments.search.drive_search",
            json.dumps({"output": str(tmp_path / name), **options}),
        ]
        if name == "two":  # not at the same moment: the tables of the study are made once
            lines = tmp_path / "one" / "starts"
            while not lines.exists():
                assert processes[0].poll() is None
        processes.append(subprocess.Popen(words, cwd=ROOT))
    assert [process.wait(180) for process in processes] == [0, 0]
    from scena.experiments.search.study import close_storage, find_study, open_storage

    storage = open_storage(server)
    study = find_study(storage, "test")
    assert study is not None
    complete = [trial for trial in study.trials if trial.state.name == "COMPLETE"]
    close_storage(storage)
    assert sorted(trial.params["model.units"] for trial in complete) == list(range(1, 10))
    assert all(list(trial.intermediate_values) == list(range(1, EPOCHS + 1)) for trial in complete)
    folders = Counter(Path(trial.user_attrs["directory"]).parents[1].name for trial in complete)
    assert folders["one"] >= 1 and folders["two"] >= 1, "both took part"
    begun = [
        line.split()[1] for name in ("one", "two") for line in (tmp_path / name / "starts").read_text().splitlines()
    ]
    assert sorted(begun) == [f"{number:04}" for number in range(9)], "no trial was started twice"
