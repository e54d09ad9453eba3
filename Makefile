# Every command of the project. `make` alone lists them; CONTRIBUTING.md says when to use which.
# Needs Python >= 3.11, make and git; everything else goes into .venv.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV ?= .venv
PY := $(VENV)/bin/python
# One stamp for each group of packages (requirements/GROUP.txt), so that nothing is installed twice. The path is part of the
# name: a moved or shared environment is linked anew to this clone.
HERE := $(subst /,-,$(CURDIR))
CORE := $(VENV)/.core$(HERE)
TEST := $(VENV)/.test$(HERE)
TRACKERS := $(VENV)/.trackers$(HERE)
DOCS := $(VENV)/.docs$(HERE)
TOOLS := $(VENV)/.tools$(HERE)

# The first import writes bytecode, whatever the environment says: TensorFlow is imported three times faster with it.
unexport PYTHONDONTWRITEBYTECODE
export TF_CPP_MIN_LOG_LEVEL ?= 3
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Says at each build that Zensical follows Material; docs/decisions/0002 says what we make of it.
export NO_MKDOCS_2_WARNING := 1

.PHONY: help setup demo system-packages test test-all check format docs docs-serve lock release clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do printf '  make %-12s %s\n' "$$name" "$$text"; done

demo: $(CORE)  ## train, evaluate and use a first model
	@$(PY) -m examples.tutorial.demo

setup: $(TEST)  ## create .venv with the pinned packages of tests and extras (`make demo` installs only the core)

setup-%: $(VENV)/.%$(HERE) ;

$(VENV)/.%$(HERE): requirements/%.txt requirements/installer.txt
	@$(PYTHON) scripts/install.py $(VENV) requirements/$*.txt
	@rm -f $(VENV)/.$*-* && touch $@

$(CORE): pyproject.toml
$(TRACKERS): $(CORE)
$(TEST): requirements/no-deps.txt $(CORE) $(TRACKERS)

system-packages:
	@$(PYTHON) scripts/system_packages.py

test: $(TEST) system-packages  ## all tests but the long ones, in parallel
	$(PY) -m pytest -n 2 --dist worksteal -q

test-all: $(TEST) $(TOOLS) system-packages  ## the long tests too
	$(PY) -m pytest -n 2 --dist worksteal -q -m ""

check: $(TEST)  ## format, lint and types
	$(PY) -m ruff format --check
	$(PY) -m ruff check
	$(PY) -m mypy

format: $(TEST)  ## repair format and lint, and copy files into the pages that show them
	$(PY) -m ruff format
	$(PY) -m ruff check --fix
	$(PY) -m tests.docs.copy_files

docs: $(DOCS)  ## build the documentation into site/; a broken link is an error
	@# not --quiet: that hides the warnings from --strict
	$(PY) -m mkdocs build --strict
	@echo "Open site/index.html"

docs-serve: $(DOCS)  ## show the documentation in a browser while you edit it
	$(PY) -m mkdocs serve

lock: $(VENV)/.installer$(HERE)  ## pin what pyproject.toml asks for; UPGRADE=all or UPGRADE="keras numpy" takes the newest
	@UPGRADE='$(UPGRADE)' $(PY) scripts/lock.py

release: $(TEST) $(TOOLS)  ## check and build a release; TAG=1 creates the tag; nothing is published
	@$(PY) scripts/release.py $(if $(TAG),--tag)

clean:  ## remove everything that can be made again, except .venv and runs/
	rm -rf build dist site .pytest_cache .mypy_cache .ruff_cache
	find scena examples tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
