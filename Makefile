# Each verb sets up what it needs. `make` alone lists them.

PYTHON ?= python3
CORE_COVERAGE ?= 100
ARGS ?=
# One worker for each core, and one more because tests also wait; a file's tests stay together.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')

VENV := .venv
BIN := $(VENV)/bin
CODE := $(wildcard src tests bench tools)
GENDOCS := $(wildcard tools/gendocs.py)
INSTALL := $(PYTHON) tools/install.py --venv $(VENV)
PIN := UV_CUSTOM_COMPILE_COMMAND="make pin" ../$(BIN)/uv pip compile --quiet --upgrade --universal \
	--python-version 3.11 --fork-strategy fewest --generate-hashes --no-build \
	--no-emit-index-url --no-emit-find-links
# Only wheels are installed, so every pin has to have one here.
PLATFORMS := x86_64-manylinux_2_28 aarch64-manylinux_2_28 aarch64-apple-darwin
# An environment with the checks is kept; to run Accord, the smaller one is enough.
READY := $(if $(wildcard $(VENV)/.dev),$(VENV)/.dev,$(VENV)/.runtime)
# An environment does not outlive its Python: where that has gone, it is made again.
GONE := $(if $(wildcard $(VENV)/.runtime),$(shell test -x $(BIN)/python || echo gone))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# The agent hosts that tests/hosts runs, such as `claude,codex`; `none` for none. Without a choice
# `make test` runs Claude Code, Codex and Gemini CLI, and `make soak` OpenCode too.
HOSTS ?=
# How long `make soak` fuzzes each target, two at once, and how long it watches one server.
FUZZ_SECONDS ?= 900
SOAK ?= 30m

.PHONY: help setup run demo test soak lint types bench docs page pin clean gone

help: ## Lists the verbs.
	@echo "usage: make <verb>"
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-7s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(VENV)/.dev ## Makes the environment in .venv, with accord in it.

run: $(READY) ## Starts the server and prints its address with a sign-in link.
	@$(BIN)/accord serve $(ARGS)

demo: $(READY) ## Plays a whole session by itself in a throw-away repository and prints it.
	@$(BIN)/accord demo $(ARGS)

test: lint types ## Every check: lint, types, all tests, coverage of the core.
	$(BIN)/python tools/page.py test
	$(BIN)/python tools/test_programs.py
	TEST_HOSTS=$(HOSTS) $(BIN)/python -m tests.helpers.hosts.installation
	TEST_HOSTS=$(HOSTS) $(BIN)/pytest --numprocesses=$(WORKERS) --dist=loadfile --cov --cov-report= --durations=10 $(ARGS)
	$(BIN)/coverage report --include='src/accord/core/*' --fail-under=$(CORE_COVERAGE)

soak: setup ## The long rounds, before a release: fuzzing by time, chaos, properties, a soak.
	ACCORD_LONG=1 TEST_HOSTS=$(HOSTS) $(BIN)/python -m tests.helpers.hosts.installation
	ACCORD_LONG=1 TEST_HOSTS=$(HOSTS) ACCORD_FUZZ_SECONDS=$(FUZZ_SECONDS) ACCORD_SOAK=$(SOAK) $(BIN)/pytest \
		--capture=no tests/fuzz tests/properties tests/core/docket tests/stores tests/chaos \
		tests/pact tests/git/test_why.py tests/transports/http/api_docs tests/hosts $(ARGS)

lint: setup ## Style, formatting, and that the generated pages are up to date.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(if $(GENDOCS),$(BIN)/python $(GENDOCS) --check)
	$(BIN)/python tools/pins.py --check
	$(BIN)/python tools/page.py lint

types: setup ## The type checker over everything.
	$(BIN)/mypy $(CODE)
	$(BIN)/python tools/page.py check

bench: setup ## The benchmarks; the ratios that matter come last.
	@$(BIN)/python -m bench $(ARGS)

docs: setup ## Writes the pages that are generated from the tables.
	$(BIN)/python tools/gendocs.py

page: setup ## Builds the web page into the package, with Node from the lock.
	$(BIN)/python tools/page.py types
	$(BIN)/python tools/page.py build

pin: setup ## Pins the newest versions within the ranges of requirements/*.in, with hashes.
	cd requirements && for set in uv runtime otel build dev; do \
		$(PIN) --output-file $$set.txt $$set.in || exit 1; done
	$(BIN)/python tools/pins.py
	cd requirements && for platform in $(PLATFORMS); do for version in 3.11 3.12 3.13 3.14; do \
		echo "Looking for wheels: $$platform, Python $$version"; \
		for set in uv runtime otel build dev; do \
			../$(BIN)/uv pip install --quiet --dry-run --target ../$(VENV)/none \
				--python-platform $$platform --python-version $$version \
				--no-deps --no-build --require-hashes -r $$set.txt || exit 1; \
		done; done; done

clean: ## Removes what the checks leave behind; the environment stays.
	rm -rf .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist htmlcov
	find src tests $(wildcard bench tools) -name __pycache__ -type d -prune -exec rm -rf {} +

gone:

# A machine with an older Python is told so, in words.
define CHECK
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	echo "Accord needs Python 3.11 or newer, and '$(PYTHON)' is not that." >&2; \
	echo "Name another one: make setup PYTHON=python3.12" >&2; exit 1; }
endef

$(VENV)/.runtime: $(patsubst %,requirements/%.txt,uv runtime build) pyproject.toml $(GONE)
	$(CHECK)
	@$(INSTALL) runtime
	@touch $@

$(VENV)/.dev: $(patsubst %,requirements/%.txt,uv dev) pyproject.toml $(GONE)
	$(CHECK)
	@$(INSTALL) dev
	@touch $@ $(VENV)/.runtime
	@echo "\`make demo\` shows what it does, \`make run\` starts a server."
