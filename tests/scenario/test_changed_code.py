"""Models and runs know the code they were made with: a change is named, and refused with `--strict`."""

import ast
import json
import linecache
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from scena.storage.code_fingerprints import changed_code, definitions, fingerprint
from tests.zygote import ROOT, Zygote

MODULES = {
    "scenario.py": '"""A scenario."""\nfrom .params import UNITS\n\n\nclass Own:\n    params = ".network:Network"\n',
    "params.py": '"""Parameters."""\nUNITS: int = 3\n',
    "network.py": (
        "import numpy as np\n\n\nclass Network:\n    def __init__(self):\n        self.units = 3\n\n"
        "    def call(self, x):\n        from .layers import double\n        return double(x)\n"
    ),
    "layers.py": "def double(x):\n    return 2 * x\n",
    "__init__.py": "",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package on the path, of which only the scenario has been imported."""
    folder = tmp_path / "ownpackage"
    folder.mkdir()
    for name, text in MODULES.items():
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    __import__("ownpackage.scenario")
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "ownpackage"]:
        del sys.modules[name]


def changes(before: dict[str, dict[str, str]]) -> list[str]:
    return [str(change) for change in changed_code(before, "ownpackage.scenario")]


def edit(file: Path, before: str, after: str) -> None:
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))


def test_all_that_is_imported_or_will_be_counts_and_nothing_is_imported_for_it(package: Path) -> None:
    loaded = set(sys.modules)
    found = fingerprint("ownpackage.scenario")
    assert sorted(found) == [".", ".layers", ".network", ".params"]
    assert list(found[".network"]) == ["imports", "Network.__init__", "Network.call", "Network"]
    assert "ownpackage.network" not in set(sys.modules) - loaded
    assert changes(found) == []


def test_comments_formatting_and_docstrings_do_not_count(package: Path) -> None:
    before = fingerprint("ownpackage.scenario")
    edit(
        package / "network.py",
        "    def call(self, x):\n",
        '    # twice\n    def call(self,\n             x):\n        """Twice."""\n',
    )
    edit(package / "params.py", '"""Parameters."""', '"""Other words."""')
    assert changes(before) == []


def test_what_differs_is_named(package: Path) -> None:
    before = fingerprint("ownpackage.scenario")
    edit(package / "network.py", "self.units = 3", "self.units = 4")
    edit(package / "params.py", "UNITS: int = 3", "UNITS: int = 3\nMORE = 1")
    edit(package / "layers.py", "def double", "def twice")
    assert changes(before) == [
        "ownpackage/layers.py: twice added, double removed",
        "ownpackage/network.py: Network.__init__ changed",
        "ownpackage/params.py: MORE added",
    ]


def test_files_that_came_or_went_are_named(package: Path) -> None:
    before = fingerprint("ownpackage.scenario")
    (package / "layers.py").rename(package / "blocks.py")
    edit(package / "network.py", ".layers", ".blocks")
    assert changes(before) == [
        "ownpackage/blocks.py: a new file",
        "ownpackage/layers.py: the file is gone",
        "ownpackage/network.py: Network.call changed",
    ]


def test_folders_without_an_init_count_before_they_are_imported(package: Path, tmp_path: Path) -> None:
    for folder in (package / "space/inner", tmp_path / "elsewhere/inner"):
        folder.mkdir(parents=True)
        (folder / "deep.py").write_text("A = 1\n")
    late = "        import google.cloud.storage\n        import elsewhere.inner.deep\n        from .space.inner import deep\n"
    edit(package / "network.py", "        from .layers import double\n", f"{late}        from .layers import double\n")
    before = fingerprint("ownpackage.scenario")
    assert {".space.inner.deep", "elsewhere.inner.deep"} <= set(before)
    edit(package / "space/inner/deep.py", "1", "2")
    assert changes(before) == ["ownpackage/space/inner/deep.py: A changed"]


def test_a_module_that_somebody_else_imported_is_no_difference(package: Path) -> None:
    (package / "dynamic.py").write_text("A = 1\n")
    before = fingerprint("ownpackage.scenario")
    __import__("ownpackage.dynamic")
    assert changes(before) == []
    with_it = fingerprint("ownpackage.scenario")
    assert ".dynamic" in with_it
    del sys.modules["ownpackage.dynamic"]
    assert changes(with_it) == []  # not imported here, but unchanged
    edit(package / "dynamic.py", "1", "2")
    assert changes(with_it) == ["ownpackage/dynamic.py: A changed"]


def test_a_package_may_be_moved(package: Path, tmp_path: Path) -> None:
    before = fingerprint("ownpackage.scenario")
    shutil.move(package, tmp_path / "moved")
    __import__("moved.scenario")
    try:
        assert changed_code(before, "moved.scenario") == []
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "moved"]:
            del sys.modules[name]


def test_scena_itself_and_installed_packages_do_not_count() -> None:
    __import__("scena.scenario.classification.scenario")
    assert fingerprint("scena.scenario.classification.scenario") == {}


def test_a_fingerprint_does_not_depend_on_empty_fields_of_a_python_version() -> None:
    assert definitions(ast.parse("def f(x):\n    return x + 1\n")) == {"f": "87000caaacee"}


def test_cells_of_a_notebook_count_as_they_are_in_memory() -> None:
    main = ModuleType("__notebook__")
    main.__package__ = None
    sys.modules["__notebook__"] = main
    run_cell(main, "class Graph:\n    def call(self):\n        return 1\n\n\ndef unrelated():\n    pass\n", 1)
    try:
        before = fingerprint("__notebook__")
        assert list(before["."]) == ["Graph.call", "Graph", "unrelated"]
        run_cell(main, "class Graph:\n    def call(self):\n        return 2\n", 2)
        (change,) = changed_code(before, "__notebook__")
        assert change.what == "Graph.call changed"
    finally:
        del sys.modules["__notebook__"]


def run_cell(main: ModuleType, text: str, number: int) -> None:
    """As IPython does: compiled under a name of its own, with the source in `linecache`."""
    name = f"<cell {number}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), vars(main))


# ---- the commands --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(zygote: Zygote, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the code of a scenario of a user's own, and a run of it."""
    folder = tmp_path_factory.mktemp("user")
    shutil.copytree(ROOT / "tests/toy", folder / "halves", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "extra.py").write_text("FACTOR = 1\n")
    flags = "--trainer.epochs 2 --trainer.random_seed 1 --trainer.output_dir run --trainer.export_final False"
    status, text = scena(zygote, folder, f"train halves --import extra {flags}")
    assert status == 0, text
    return folder


@pytest.fixture
def changed(trained: Path, tmp_path: Path) -> Path:
    """A copy of that folder in which the activation has changed, which leaves all shapes as they were."""
    folder = tmp_path / "copy"
    shutil.copytree(trained, folder)
    edit(folder / "halves/model.py", 'activation="tanh"', 'activation="relu"')
    return folder


def scena(zygote: Zygote, folder: Path, command: str) -> tuple[int, str]:
    log = folder / "log"
    log.unlink(missing_ok=True)
    status = zygote.run(*command.split(), log=log, folder=folder)
    return status, log.read_text()


NAMED = "halves/model.py: ToyGraph.__init__ changed"


def test_unchanged_code_is_no_matter(zygote: Zygote, trained: Path) -> None:
    status, text = scena(zygote, trained, "lav run/best --strict")
    assert status == 0, text
    assert "code has changed" not in text


@pytest.mark.parametrize("command", ["lav run/best run/second", "predict run/best run/second --out out.jsonl"])
def test_exports_warn_once_for_each_file(zygote: Zygote, changed: Path, command: str) -> None:
    (changed / "extra.py").write_text("FACTOR = 2\n")
    shutil.copytree(changed / "run/best", changed / "run/second")
    status, text = scena(zygote, changed, command)
    assert status == 0, text
    for named in (NAMED, "extra.py: FACTOR changed"):
        assert (
            text.count(
                f"The code has changed since run/best and run/second were written, so results may differ: {named}"
            )
            == 1
        )


@pytest.mark.parametrize("command", ["lav run/best", "predict run/best", "serve run/best"])
def test_strict_refuses_before_anything_is_loaded(zygote: Zygote, changed: Path, command: str) -> None:
    status, text = scena(zygote, changed, f"{command} --strict")
    assert status == 1
    assert text == (
        f"scena {command.split()[0]}: error: The code has changed since run/best was written: {NAMED}. "
        "Check out the code of that time, or remove --strict.\n"
    )


def test_a_run_that_goes_on_with_other_code_says_and_records_it(zygote: Zygote, changed: Path) -> None:
    status, text = scena(zygote, changed, "resume run --trainer.epochs 3 --strict")
    assert status == 1
    assert f"The code has changed since run/checkpoint/8 was written: {NAMED}. Check out" in text
    assert text.startswith("scena resume: error:")  # before TensorFlow is loaded
    assert not (changed / "run/resumed.json").exists()
    status, text = scena(zygote, changed, "resume run --trainer.epochs 3")
    assert status == 0, text
    assert f"The code has changed since run/checkpoint/8 was written, so the run is not exact: {NAMED}" in text
    (entry,) = json.loads((changed / "run/resumed.json").read_text())
    assert entry["code"] == [NAMED]
    status, text = scena(zygote, changed, "resume run --trainer.epochs 4 --strict")
    assert status == 0, text  # the last checkpoint is one of the new code
    assert "code has changed" not in text


def test_exports_that_do_not_record_their_code_say_so(zygote: Zygote, trained: Path, tmp_path: Path) -> None:
    folder = tmp_path / "old"
    shutil.copytree(trained, folder)
    file = folder / "run/best/scenario.json"
    stored = json.loads(file.read_text())
    del stored["code"]
    file.write_text(json.dumps(stored))
    status, text = scena(zygote, folder, "lav run/best")
    assert status == 0, text
    assert "run/best does not record the code it was made with, so changes of it go unnoticed." in text
    status, text = scena(zygote, folder, "lav run/best --strict")
    assert status == 1
    assert text.endswith(
        "scena lav: error: run/best does not record the code it was made with, which --strict compares.\n"
    )


def test_a_warm_start_only_reads_weights_so_other_code_is_no_matter(zygote: Zygote, changed: Path) -> None:
    flags = "--trainer.epochs 1 --trainer.output_dir second --warmstart.model run/best"
    status, text = scena(zygote, changed, f"train halves {flags}")
    assert status == 0, text
    assert "code has changed" not in text
