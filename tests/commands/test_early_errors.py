"""What can be known without TensorFlow is refused before it is loaded."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.zygote import ROOT

LISTS = '''
from scena import DataBaseParams, ListFileScenario, ModelBaseParams, ScenarioBaseParams


class LinesDataParams(DataBaseParams, builds=":Data"):
    """Data."""


class LinesModelParams(ModelBaseParams, builds=":Model"):
    """A model."""


class LinesParams(ScenarioBaseParams[LinesDataParams, LinesModelParams]):
    """Parameters."""


class Lines(ListFileScenario[LinesParams]):
    """Lines."""
'''
FULL = "train examples.tutorial.full"
EXPORT = ROOT / "tests/scenario/format_1/best"
REFUSED = {
    "train classification --val.split nosuch": "The data set 'digits' has no split 'nosuch'; it has train, test.",
    "train classification --train.split train[:": "A split is written as train, train[:80%] or train[100:200]+test. Received:",
    "train classification --data ImageFiles --data.images nowhere": "The folder of images 'nowhere' does not exist.",
    "lr-find classification --val.split nosuch": "The data set 'digits' has no split 'nosuch'; it has train, test.",
    "train lines.py": "There are no list files for training. Name some: --train.lists FILE…",
    "train lines.py --train.lists no.lst": "The list file 'no.lst' cannot be read: No such file or directory.",
    "train lines.py --train.lists a.lst --val.lists no.lst": "The list file 'no.lst' cannot be read: No such file or directory.",
    "train examples.tabular --train.files a.csv --val.files b.csv": (
        "'a.csv' has no column 'spent' (did you mean spend?); it has ['age', 'left', 'spend'] (delimiter ',')."
    ),
    "train examples.tabular --train.files b.csv --val.files no.csv": "'no.csv' cannot be read: No such file or directory.",
    f"adapt {EXPORT} --out used": "used exists already. Choose another --out, or delete it.",
    f"serve {EXPORT} --token_file no.txt": "Cannot read --token_file no.txt: No such file or directory.",
    f"serve {EXPORT} --tls_cert a.csv": "Cannot use --tls_cert a.csv: there is no certificate with its key in PEM form.",
    f"lav {EXPORT} --bootstrap 1e9": "--bootstrap must be <= 1000000, received 1000000000",
    f"predict {EXPORT} --data RowGenerator --data.delimiter ;;": "--data: delimiter is one character,",
    f"{FULL} --trainer.output_dir a.csv/run": "Cannot write to the output directory a.csv/run: a.csv is not a directory.",
    f"{FULL} --max_epochs 3": "--max_epochs does not exist; did you mean --trainer.epochs?",
    "compare": "name A first: scena compare A B",
    "import-checkpoint no.ckpt examples.tutorial.min --out new": "There is no checkpoint no.ckpt. Give its prefix,",
    f"{FULL} --trainer.random_seed -1": "--trainer.random_seed must be >= 0, received -1",
    f"{FULL} --trainer.random_seed 4294967296": "--trainer.random_seed must be < 4294967296, received 4294967296",
    f"{FULL} --import ": "--import takes the names of modules, such as package.module. Received: ''.",
    f"{FULL} --import a..b": "--import takes the names of modules, such as package.module. Received: 'a..b'.",
    f"{FULL} --device.gpus -1": "--device.gpus must be >= 0, received -1",
    f"{FULL} --warmstart.model nowhere": "--warmstart.model nowhere: it does not exist. Give an export,",
    f"{FULL} --trainer.output_dir used": "used already holds a run (best). Choose another --trainer.output_dir,",
    f"{FULL} --learning_rate OneCycle --optimizer RMSprop": (
        "--learning_rate OneCycle changes the momentum, and --optimizer RMSprop has none that can be changed. "
        "Add --learning_rate.cycle_momentum False, or choose one of Adam,"
    ),
    "lav nowhere": "There is no export directory 'nowhere'. Give the 'best' or 'export' directory of a run.",
}  # fmt: skip
PROBE = """
import contextlib, io, json, sys
from scena.commands.main import main
found = {}
for command in json.loads(sys.argv[1]):
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        status = main(command.split(" "))
    found[command] = [status, errors.getvalue(), [name for name in ("tensorflow", "keras") if name in sys.modules]]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str, list[str]]]:
    """What each command did, all in one process, which would tell which of them loads TensorFlow."""
    folder = tmp_path_factory.mktemp("early")
    (folder / "lines.py").write_text(LISTS)
    (folder / "a.lst").write_text("one\ntwo\n")
    (folder / "a.csv").write_text("age,left,spend\n1,0,2\n")
    (folder / "b.csv").write_text("age,left,spent\n1,0,2\n")
    (folder / "used/best").mkdir(parents=True)
    commands = [*REFUSED, *([NO_GPU] if not list(Path("/dev").glob("nvidia*")) else [])]
    done = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps(commands)],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, tuple[int, str, list[str]]] = json.loads(done.stdout.splitlines()[-1])
    return found


NO_GPU = f"{FULL} --device.gpus 7"


@pytest.mark.parametrize("command", REFUSED)
def test_it_is_refused_before_tensorflow_is_loaded(
    outcomes: dict[str, tuple[int, str, list[str]]], command: str
) -> None:
    status, errors, loaded = outcomes[command]
    assert status in (1, 2)
    assert errors.startswith(f"scena {command.split()[0]}: error: {REFUSED[command]}"), errors
    assert errors.count("\n") == 1
    assert not loaded


def test_a_gpu_is_refused_where_there_is_none(outcomes: dict[str, tuple[int, str, list[str]]]) -> None:
    if NO_GPU not in outcomes:
        pytest.skip("this machine has a GPU")
    assert outcomes[NO_GPU] == [
        1,
        "scena train: error: --device.gpus 7: there is no GPU 7. This machine has none.\n",
        [],
    ]
