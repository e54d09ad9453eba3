"""Input that is wrong in ways nobody means: one line says what, and no traceback is shown."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from scena.commands.main import main
from tests.zygote import Zygote

SCENARIO = """
from scena import *
class G(DataGeneratorParams): "g"
class D(DataBaseParams): "d"
class M(ModelBaseParams):
    "m"
    n: int = param(3, help="n")
    def __post_init__(self):
        {3: 0}[self.n]
class P(ScenarioBaseParams[D, M]): "p"
class S(ScenarioBase[P, TrainValParams[G]]): "s"
"""
FILES = {
    "raises.py": b"raise RuntimeError('boom')\n",
    "syntax.py": b"x = 1\ndef f(:\n",
    "exits.py": b"import sys\nsys.exit(3)\n",
    "latin.py": "x = 'ä'\n".encode("latin-1"),
    "inner.py": b"import raises\n",
    "bare.py": b"from scena import ScenarioBase\nclass S(ScenarioBase): 's'\n",
    "fragile.py": SCENARIO.encode(),
    "afile": b"x",
    "nul.csv": b"path,label\nimages/a\0.png,a\n",
    "long.csv": b"path,label\n" + b"x" * 200_000 + b",a\n",
    "good.csv": b"path,label\nimages/a/0.png,a\nimages/b/0.png,b\n",
}
MIN = "params examples.tutorial.min"
WRITE = "records write --output out"
TUNE = "tune examples.tutorial.min --search"
BAD = [
    # modules that cannot be imported
    ("params raises", "raises cannot be imported: RuntimeError: boom, in raises.py:1."),
    ("train inner", "inner cannot be imported: RuntimeError: boom, in raises.py:1."),
    ("schema syntax.py", "syntax cannot be imported: SyntaxError: invalid syntax (syntax.py, line 2)."),
    ("tune exits --search a=1,2", "exits cannot be imported: it ends the program (SystemExit: 3), in exits.py:2."),
    ("lr-find latin", "latin cannot be imported: SyntaxError: (unicode error)"),
    (f"{MIN} --import raises", "--import raises cannot be imported: RuntimeError: boom, in raises.py:1."),
    (f"params {'x' * 300}", "There is no scenario 'xxx"),
    ("params bare", "S does not say what its parameters are: class S(ScenarioBase[MyParams, MyPipelines])."),
    ("params fragile --model.n 4", "--model: M.__post_init__ failed: KeyError: 4, in fragile.py:9"),
    # values that nothing can hold
    (f"{MIN} --train.batch_size {10**20}", "--train.batch_size is too large: 100000000000000000000"),
    (f"{MIN} --trainer.epochs \udcff", "--trainer.epochs: expected a whole number, received '\\udcff'"),
    (f"{MIN} --learning_rate.lr inf", "--learning_rate.lr is too large: inf"),
    (f"{MIN} --optimizer.lr_factors x=nan", "a rule of lr_factors is EXPRESSION=FACTOR"),
    (f"{MIN} --trainer.checkpoint_every 99999999999999h", "an interval of at most 1e+12 seconds"),
    (f"{MIN} --trainer.output_dir a\0b", "--trainer.output_dir: expected a path or None, received 'a\\x00b'"),
    (f"{MIN} --device.gpus -1", "--device.gpus must be >= 0, received -1"),
    ("params classification --model.depth inf", "--model.depth is too large: inf"),
    ("zoo --factor 1e-300", "--factor must be >= 0.01, received 1e-300"),
    ("launch --workers 99999999999 train x", "--workers must be <= 1000, received 99999999999"),
    (f"{MIN} --config=", "--config expects files, received ''"),
    # data
    (f"{WRITE} --images images --name ..", "name is a folder in output, so it has no slash. Received: '..'"),
    (f"{WRITE} --images images --name a/b", "name is a folder in output, so it has no slash. Received: 'a/b'"),
    (f"{WRITE} --images images --image_size 99999999 9", "--image_size must be <= 20000, received 99999999"),
    (f"{WRITE} --csv nul.csv", "'nul.csv' lists no image with a label."),
    (f"{WRITE} --csv long.csv", "Line 2 of the table 'long.csv' cannot be read: field larger than field limit"),
    (f"{WRITE} --csv good.csv --delimiter ab", "delimiter is one character. Received: 'ab'."),
    ("records preview examples.tutorial.min --copies 99999999999", "--copies must be <= 100, received 99999999999"),
    ("records convert --dataset= --output out", "The data set '' cannot be opened: "),
    # places to write to
    ("experiment long.csv", "long.csv cannot be read as a table: field larger than field limit"),
    ("experiment good.csv --cpus 99999999999", "--cpus 99999999999 are too many: at most 10000 runs at once."),
    ("runs . --csv images", "Cannot write to --csv images: it is a folder."),
    ("runs . --csv nowhere/x.csv", "Cannot write to --csv nowhere/x.csv: there is no folder nowhere."),
    ("sets afile/x.yaml:a --from .", "Cannot write to the set afile/x.yaml: there is no folder afile."),
    (f"{TUNE} trainer.epochs=1:3:0.5", "trainer.epochs is a whole number."),
]  # fmt: skip


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder of such files; what was imported from it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    known = set(sys.modules)
    for name, content in FILES.items():
        Path(name).write_bytes(content)
    for name in "ab":
        Path("images", name).mkdir(parents=True)
        Image.fromarray(np.zeros((9, 9, 3), np.uint8)).save(f"images/{name}/0.png")
    yield
    for name in set(sys.modules) - known:
        if str(tmp_path) in (getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]


@pytest.mark.parametrize(("words", "message"), BAD, ids=[words[:50].encode("ascii", "replace") for words, _ in BAD])
def test_one_line(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split(" ")) in (1, 2)
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("scena ") and error.count("\n") == 1


def test_places_and_runs(zygote: Zygote, tmp_path: Path) -> None:
    """What needs a run, or gets as far as TensorFlow."""
    log = tmp_path / "out"

    def said(words: str) -> str:
        log.unlink(missing_ok=True)
        assert zygote.run(*words.split(), log=log, folder=tmp_path) in (1, 2), log.read_text()
        assert "Traceback" not in log.read_text()
        return log.read_text()

    small = "--trainer.epochs 1 --train.limit 32 --val.limit 16 --trainer.output_dir run"
    assert zygote.run("train", "examples.tutorial.min", *small.split(), log=log, folder=tmp_path) == 0
    assert "a run is resumed where it is, in run." in said("resume run --trainer.output_dir other")
    assert "Cannot write to --output afile: File exists." in said(f"{TUNE} learning_rate.lr=0.1,0.2 --output afile")
    assert "Cannot write to the set images: it is a folder." in said("sets images:a --from run")


@pytest.mark.parametrize("words", ["zoo", "--help", "train --help", "zoo --help", "completion bash"])
@pytest.mark.parametrize(
    ("where", "status", "error"),
    [
        (">&-", 0, ""),
        (">/dev/full", 1, "scena: error: the output cannot be written: No space left on device\n"),
        ("| sleep 0", None, ""),  # 141, or 0 if it was faster
        ("2>&-", 0, ""),
    ],
)
def test_output_that_goes_nowhere(words: str, where: str, status: int | None, error: str) -> None:
    command = f"set -o pipefail; {sys.executable} -m scena {words} {where}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == error
    assert done.returncode == status if status is not None else done.returncode in (0, 141)
