"""What is public is documented, and what params classes name exists.

Everything is imported in one separate process: params classes register themselves and would be choices in other tests.
"""

import json
import subprocess
import sys

from tests.layout.sources import ROOT, module_name, python_files

PROBE = """
import ast, importlib, inspect, json, sys, textwrap
from scena.params.declare import Params, subclasses

undocumented, unresolved = [], []

def is_documented(thing):
    return bool((inspect.getdoc(thing) or "").strip())

def is_trivial(thing):
    # one statement: name, signature and body are enough where they are clear
    source = inspect.getsource(thing.fget if isinstance(thing, property) else thing)
    return len(ast.parse(textwrap.dedent(source)).body[0].body) == 1

def members(cls):
    for name, member in vars(cls).items():
        if name.startswith("_"):
            continue
        member = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        if inspect.isfunction(member) or isinstance(member, property):
            yield name

def overrides(cls, name):
    return any(name in vars(base) for base in cls.__mro__[1:])

for module_name in sys.argv[1:]:
    module = importlib.import_module(module_name)
    if not module_name.startswith("scena"):
        continue
    for name, thing in vars(module).items():
        if name.startswith("_") or getattr(thing, "__module__", None) != module_name:
            continue
        if inspect.isclass(thing):
            if not (thing.__doc__ or "").strip():
                undocumented.append(f"{module_name}.{name}")
            # an override needs words only where it has something to add
            found = {name: getattr(thing, name) for name in members(thing) if not overrides(thing, name)}
            silent = [name for name, member in found.items() if not is_documented(member) and not is_trivial(member)]
            undocumented += [f"{module_name}.{name}.{member}" for member in silent]
        elif inspect.isfunction(thing) and not is_documented(thing) and not is_trivial(thing):
            undocumented.append(f"{module_name}.{name}")

for cls in subclasses(Params):
    elsewhere = (cls.__builds__ or "").partition(":")[0] in %r
    if cls.__module__.split(".")[0] in ("scena", "examples") and cls.__builds__ and not elsewhere:
        try:
            assert inspect.isclass(cls.implementation())
        except Exception as error:
            unresolved.append(f"{cls.__module__}.{cls.__name__} builds {cls.__builds__}: {error}")

print(json.dumps({"undocumented": undocumented, "unresolved": unresolved}))
"""
ELSEWHERE = ["scena.training.trackers.trackio"]
"""Needs packages that the environment of the tests does not have; test_trackio.py imports it in one of its own."""


def test_everything_public_has_a_docstring_and_every_builds_names_a_class() -> None:
    modules = [module_name(path) for path in python_files("scena", "examples") if path.stem != "__main__"]
    command = [sys.executable, "-c", PROBE % ELSEWHERE, *(name for name in modules if name not in ELSEWHERE)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {"undocumented": [], "unresolved": []}
