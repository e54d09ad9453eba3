"""`scena zoo`: a table that is there at once, and its errors."""

import subprocess
import sys

import pytest

from scena.commands.inspect.zoo import readable
from scena.commands.main import main
from scena.model.zoo.catalogue import MODELS


def test_all_networks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["zoo"]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split() == ["name", "input", "parameters", "trainable", "FLOPs"]
    assert [row.split()[0] for row in rows] == list(MODELS)


def test_a_setting(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("zoo SqueezeNet Inception* --input_size 64 64 3 --framework upstride_type1 --options".split()) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[1:] == [
        "SqueezeNet 64×64×3 2,469,992 2,469,992 154 M dropout",
        "InceptionResNetV2 64×64×3 needs at least 75×75 dropout embedding",
        "InceptionResNetV2Bottleneck 64×64×3 needs at least 75×75 dropout embedding",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("Resnet5", "There is no network 'Resnet5' (did you mean ResNet50"),
        ("--faktor 2", "--faktor does not exist; did you mean --factor?"),
        ("--input_size 32 32", "--input_size takes height, width and channels. Received: [32, 32]"),
        ("--framework type2", "--framework: expected one of tensorflow, upstride_real"),
    ],
)
def test_errors(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["zoo", *words.split()]) != 0
    assert message in capsys.readouterr().err


def test_it_needs_no_keras() -> None:
    code = "import sys; from scena.commands.main import main; main(['zoo']); sys.exit('keras' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def test_large_numbers() -> None:
    assert [readable(n) for n in (7, 7_720, 602_000_000, 7_715_946_496)] == ["7", "7.72 k", "602 M", "7.72 G"]
