"""The notebooks run, in one kernel; their pages show what they hold; classes of cells reach worker processes."""

import os
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from scripts.notebooks import FOLDER, page

NAMES = ("quickstart", "own-scenario", "comparing-runs")

CHECKS = [
    # what a class uses and a worker cannot have is named
    (
        "SHARED = np.zeros(3)\nclass UsesArrayParams(DataGeneratorParams, builds=':UsesArray'): pass\n"
        "class UsesArray(Points):\n    def __getitem__(self, index): return SHARED[index]"
    ),
    (
        "from scena.data.engines.workers.config import notebook_module\n"
        "try:\n    notebook_module(['UsesArrayParams', 'UsesArray'])\nexcept Exception as error:\n    print(error)"
    ),
    # the last definition counts, and whatever else the notebook does is not repeated
    "from pathlib import Path as Folder\nprint('once')\ndef helper(): return 1",
    "def helper(): return Folder('two')",
    (
        "import sys\nfrom scena.data.engines.workers.config import notebook_path\nname = notebook_module(['helper'])\n"
        "print((Folder(notebook_path()[0]) / f'{name}.py').read_text())"
    ),
]


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The cells of all notebooks, and those above, after one kernel has run them."""
    whole = nbformat.v4.new_notebook()
    for name in NAMES:
        whole.cells += [c for c in nbformat.read(FOLDER / f"{name}.ipynb", 4).cells if c.cell_type == "code"]
    whole.cells += [nbformat.v4.new_code_cell(text) for text in CHECKS]
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{before}"
    try:
        folder = str(tmp_path_factory.mktemp("notebooks"))
        NotebookClient(whole, timeout=300, coalesce_streams=True, resources={"metadata": {"path": folder}}).execute()
    finally:
        os.environ["PATH"] = before
    return whole.cells


def output(cells: list[Any], text: str) -> str:
    """What the cell with this text printed."""
    cell = next(cell for cell in cells if text in cell.source)
    return "".join(part.get("text", "") for part in cell.outputs)


def test_the_notebooks_run_and_show_what_they_did(executed: list[Any]) -> None:
    trained = output(executed, "history = TutorialScenario")
    assert "parameters  trainable" in trained and re.search(r"^Epoch 2/2: loss .*val_acc", trained, re.MULTILINE)
    assert "tensorflow" not in trained and trained.endswith("Done: quickstart\n")
    kinds = [kind for cell in executed for part in cell.outputs for kind in part.get("data", {})]
    assert kinds.count("image/png") == 1 and kinds.count("text/html") == 5
    assert all(part.get("name") != "stderr" for cell in executed for part in cell.outputs)
    assert "(2 runs)" in output(executed, "!scena runs")


def test_classes_of_cells_reach_worker_processes(executed: list[Any]) -> None:
    trained = output(executed, "num_processes = 2")
    assert re.search(r"^Epoch 3/3: loss", trained, re.MULTILINE) and "in this process" not in trained
    assert output(executed, "except Exception as error").startswith(
        "A class of the notebook uses SHARED, a ndarray of the notebook, which worker processes do not have."
    )
    module = output(executed, "notebook_module(['helper'])").strip().splitlines()
    assert module == ["from pathlib import Path as Folder", "def helper(): return Folder('two')"]


@pytest.mark.parametrize("name", NAMES)
def test_pages_show_the_notebooks(name: str) -> None:
    text, images = page(nbformat.read(FOLDER / f"{name}.ipynb", 4), f"{name}.ipynb")
    made = "python scripts/notebooks.py makes it again"
    assert (FOLDER / f"{name}.md").read_text(encoding="utf-8") == text, made
    assert {file: (FOLDER / file).read_bytes() for file in images} == images, made
