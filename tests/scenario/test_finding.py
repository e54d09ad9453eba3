"""A scenario is found by module, class, package, folder or file; a stored name never decides what is executed."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scena.errors import ScenarioError
from scena.scenario.finding import find_scenario, list_scenarios, scenario_of

CODE = '''
from scena import ScenarioBase, ScenarioBaseParams, TrainValParams, DataBaseParams, ModelBaseParams, DataGeneratorParams
class G(DataGeneratorParams): """g"""
class D(DataBaseParams): """d"""
class M(ModelBaseParams): """m"""
class P(ScenarioBaseParams[D, M]): """p"""
class {name}(ScenarioBase[P, TrainValParams[G]]): """A scenario."""
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty current folder whose modules are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        del sys.modules[name]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "name", ["found_module", "found_module:Mine", "found_module.py", "./found_module.py", "found_module.py:Mine"]
)
def test_a_module_is_found_by_name_and_by_path(folder: Path, name: str) -> None:
    write(folder / "found_module.py", CODE.format(name="Mine"))
    assert find_scenario(name).name() == "found_module:Mine"


@pytest.mark.parametrize(
    "name", ["found_pkg.inner", "found_pkg.inner.scenario", "found_pkg/inner", "found_pkg.inner:Mine"]
)
def test_a_package_is_found_by_its_scenario_file(folder: Path, name: str) -> None:
    write(folder / "found_pkg" / "__init__.py", "")
    write(folder / "found_pkg" / "inner" / "__init__.py", "")
    write(folder / "found_pkg" / "inner" / "scenario.py", CODE.format(name="Mine"))
    assert find_scenario(name).name() == "found_pkg.inner.scenario:Mine"


def test_a_folder_without_init_may_use_relative_imports(folder: Path) -> None:
    write(folder / "deep" / "found_folder" / "scenario.py", "from .more import *\n" + CODE.format(name="Mine"))
    write(folder / "deep" / "found_folder" / "more.py", "")
    assert find_scenario("deep/found_folder").name() == "found_folder.scenario:Mine"


def test_several_scenarios_in_a_file_are_listed(folder: Path) -> None:
    write(folder / "found_two.py", CODE.format(name="One") + "class Two(One): '''Another.'''\n")
    with pytest.raises(ScenarioError, match=r"several scenarios\. Say which: found_two:One, found_two:Two\."):
        find_scenario("found_two")
    assert find_scenario("found_two:Two").__name__ == "Two"
    with pytest.raises(ScenarioError, match=r"no scenario 'Tow' \(did you mean Two\?\)"):
        find_scenario("found_two:Tow")


def test_what_does_not_exist_gets_suggestions(folder: Path) -> None:
    write(folder / "found_module.py", CODE.format(name="Mine"))
    with pytest.raises(ScenarioError, match=r"no scenario 'found_modul' \(did you mean found_module\?\)"):
        find_scenario("found_modul")
    with pytest.raises(ScenarioError, match=r"no scenario file .*nothing\.py"):
        find_scenario("nothing.py")
    with pytest.raises(ScenarioError, match="has no scenario.py"):
        find_scenario("./")
    write(folder / "found_empty.py", "x = 1\n")
    with pytest.raises(ScenarioError, match="defines no scenario. A scenario is a subclass of ScenarioBase"):
        find_scenario("found_empty")


def test_a_missing_import_inside_a_scenario_is_told_apart(folder: Path) -> None:
    write(folder / "found_broken.py", "import not_installed_anywhere\n")
    with pytest.raises(
        ScenarioError, match="found_broken imports a module that is not installed: not_installed_anywhere"
    ):
        find_scenario("found_broken")


def test_scenarios_are_listed_without_running_them(folder: Path) -> None:
    write(folder / "listed.py", CODE.format(name="Mine") + "raise SystemExit('was run')\n")
    write(folder / "pkg" / "scenario.py", CODE.format(name="Mine"))
    write(folder / "pkg" / "params.py", "class P(ScenarioBaseParams[D, M]): ...\n")
    write(folder / "base.py", "class Base(ScenarioBase[T, G], Generic[T]): ...\n")
    own = [name for name in list_scenarios() if not name.startswith("examples.")]
    assert own == ["classification", "listed", "pkg"]


def test_a_stored_name_is_imported_only_from_the_users_own_path(folder: Path) -> None:
    write(folder / "found_module.py", CODE.format(name="Mine"))
    assert scenario_of("found_module:Mine", folder / "export").name() == "found_module:Mine"


def test_code_inside_an_export_is_never_imported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marker = folder / "executed"
    export = folder / "export"
    evil = f"open({str(marker)!r}, 'w').close()\n" + CODE.format(name="Evil")
    write(export / "evil.py", evil)
    monkeypatch.chdir(export)
    with pytest.raises(ScenarioError, match="is not on the path"):
        scenario_of("evil:Evil", export)
    assert not marker.exists()


@pytest.mark.parametrize(
    "name", ["os:system", "antigravity:x", "this:Zen", "evil", "a b:c", "../x:Y", "os.path:Scenario", ":X"]
)
def test_a_stored_name_that_is_no_scenario_is_refused_without_importing_it(folder: Path, name: str) -> None:
    before = set(sys.modules)
    with pytest.raises(ScenarioError):
        scenario_of(name, folder)
    assert not {"antigravity", "this"} & (set(sys.modules) - before)


def test_a_source_that_does_not_define_the_scenario_is_not_run(folder: Path) -> None:
    marker = folder / "executed"
    write(folder / "innocent.py", f"open({str(marker)!r}, 'w').close()\n")
    with pytest.raises(ScenarioError, match="is not on the path"):
        scenario_of("innocent:Scenario", folder / "export")
    assert not marker.exists()


def test_a_damaged_description_is_an_error_not_a_traceback(folder: Path) -> None:
    export = folder / "export"
    write(export / "model.keras", "")
    for text, message in [
        ("{", "Cannot read"),
        ("[]", "does not describe a run"),
        (
            json.dumps({"format": 99, "scenario": "a:B", "trainer": {}}),
            "has format 99; this version of Scena reads up to",
        ),
    ]:
        write(export / "scenario.json", text)
        done = subprocess.run(
            [sys.executable, "-m", "scena", "lav", "--export_dir", str(export)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1 and message in done.stderr and "Traceback" not in done.stderr


def test_the_examples_are_found_outside_the_clone(tmp_path: Path) -> None:
    for words, shown in (
        ("train --help", "  examples.tutorial.min"),
        ("params examples.tutorial.min", "# all parameters"),
    ):
        command = [sys.executable, "-P", "-m", "scena", *words.split()]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert shown in done.stdout, done.stderr
