# Each verb sets up what it needs. `make` alone lists them.

PYTHON ?= python3
CORE_COVERAGE ?= 100
ARGS ?=
# One worker for each core; a file's tests stay together and in order.
WORKERS ?= logical

VENV := .venv
BIN := $(VENV)/bin
CODE := $(wildcard src tests bench tools)
GENDOCS := $(wildcard tools/gendocs.py)
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
PIN := CUSTOM_COMPILE_COMMAND="make pin" $(BIN)/pip-compile --quiet --upgrade --generate-hashes \
	--allow-unsafe --strip-extras --no-emit-options --no-emit-index-url \
	--no-emit-trusted-host --no-emit-find-links

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup run demo test lint types bench docs pin clean

help: ## Lists the verbs.
	@echo "usage: make <verb>"
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-7s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(VENV)/.installed ## Makes the environment in .venv, with accord in it.

run: setup ## Starts the server and prints its address with a sign-in link.
	@$(BIN)/accord serve $(ARGS)

demo: setup ## Plays a whole session by itself in a throw-away repository and prints it.
	@$(BIN)/python -m accord.demo $(ARGS)

test: lint types ## Every check: lint, types, all tests, coverage of the core.
	$(BIN)/pytest --numprocesses=$(WORKERS) --dist=loadfile --cov --cov-report= --durations=10 $(ARGS)
	@$(BIN)/coverage report --format=total | sed 's/^/coverage of everything, in percent: /'
	$(BIN)/coverage report --include='src/accord/core/*' --fail-under=$(CORE_COVERAGE)

lint: setup ## Style, formatting, and that the generated pages are up to date.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(if $(GENDOCS),$(BIN)/python $(GENDOCS) --check)

types: setup ## The type checker over everything.
	$(BIN)/mypy $(CODE)

bench: setup ## The benchmarks; the ratios that matter come last.
	@$(BIN)/python -m bench $(ARGS)

docs: setup ## Writes the pages that are generated from the tables.
	$(BIN)/python tools/gendocs.py

pin: setup ## Pins the newest versions within the ranges of requirements/*.in, with hashes.
	cd requirements && for set in runtime dev; do \
		$(subst $(BIN),../$(BIN),$(PIN)) --output-file $$set.txt $$set.in || exit 1; done

clean: ## Removes what the checks leave behind; the environment stays.
	rm -rf .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist htmlcov
	find src tests $(wildcard bench tools) -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "Accord needs Python 3.11 or newer, and '$(PYTHON)' is not that." >&2; \
		echo "Name another one: make setup PYTHON=python3.12" >&2; exit 1; }
	@echo "Making the environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.pinned: requirements/dev.txt | $(BIN)/python
	@echo "Installing what requirements/dev.txt pins"
	@$(PIP) install --require-hashes -r requirements/dev.txt
	@touch $@

$(VENV)/.installed: pyproject.toml $(VENV)/.pinned
	@echo "Installing accord from this checkout"
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@
	@echo "Done. \`make demo\` shows what it does, \`make run\` starts a server."
