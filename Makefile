# Everything needs only Python >= 3.11; the cluster tests and their tools need Go as well.
# `make` alone lists what there is.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Seconds `make cluster-tools` may build for; what is missing then is built the next time.
BUDGET ?= 2400
# Further words for pytest, for example ARGS=-x.
ARGS   ?=

# Stamps named by what they were made from: no change, no work.
INSTALLED := $(VENV)/installed-$(shell cat constraints.txt | cksum | tr ' ' '-')
EDITABLE  := $(VENV)/editable-$(shell cat pyproject.toml | cksum | tr ' ' '-')

# What constraints.txt leaves out must not be resolved unseen: nothing is, and `pip check` says what is missing.
PIP    := $(BIN)/python -m pip --quiet --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest $(ARGS)
UNIT   := not cluster and not slow
COVER  := --cov --cov-report= --cov-fail-under=0

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | \
	    while IFS="$$(printf '\t')" read -r target does; do printf '  %-14s %s\n' "$$target" "$$does"; done

.PHONY: setup
setup: $(EDITABLE) ## Make the virtual environment from constraints.txt, hash by hash

$(INSTALLED): constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed, $(PYTHON) is " + sys.version.split()[0])'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --require-hashes --no-deps -r constraints.txt
	@rm -f $(VENV)/installed-* && touch $@

$(EDITABLE): pyproject.toml $(INSTALLED)
	$(PIP) install --no-deps --no-build-isolation -e .
	$(PIP) check
	@rm -f $(VENV)/editable-* && touch $@

.PHONY: demo
demo: setup ## The main job: a running webhook stamps a JobSet and its pods over HTTPS
	$(BIN)/workload-stamp demo

.PHONY: demo-cluster
demo-cluster: cluster-tools ## The same in a real control plane with the real JobSet controller (needs Go)
	$(BIN)/python -m tests.cluster.demo

.PHONY: check
check: setup ## Lint, format, types, import rules and the quick tests, in under a minute
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(PYTEST) -n auto -m "$(UNIT)"

.PHONY: fmt
fmt: setup ## Format and sort imports, repair what ruff can repair
	$(BIN)/ruff format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# First what may run side by side, then what may not, then the coverage of both. pytest's 5 is "no such tests".
# Many tests watch real processes against a clock; what fails is tried once more by itself, and what fails twice fails.
AGAIN  := --cov-append --last-failed --last-failed-no-failures none
.PHONY: test
test: setup ## Every test with the floor on coverage; with Go, what the cluster tests need is built first, once
	@rm -f .coverage .coverage.*
	$(BIN)/python -m tests.cluster.tools build control-plane kwok jobset
	$(PYTEST) $(COVER) -n auto -m "not cluster" || $(PYTEST) $(COVER) $(AGAIN) -m "not cluster"
	$(PYTEST) $(COVER) --cov-append -m cluster || test $$? -eq 5 || $(PYTEST) $(COVER) $(AGAIN) -m cluster
	$(BIN)/coverage report

.PHONY: cluster-tools
cluster-tools: setup ## Build the control plane and the controllers that are missing (needs Go; minutes, once)
	$(BIN)/python -m tests.cluster.tools build --budget-seconds $(BUDGET) --require control-plane,kwok,jobset

.PHONY: docs
docs: setup ## Write anew what follows from definitions and commands: pages, CRD, roles
	$(BIN)/python -m tests.docs
	$(BIN)/python -m tests.manifests.generated

.PHONY: bench
bench: setup ## Measure against a bare aiohttp echo
	$(BIN)/python -m tests.bench

.PHONY: lock
lock: ## Resolve the dependencies anew into constraints.txt, a week behind the newest
	test -x $(VENV)/lock/bin/python || $(PYTHON) -m venv $(VENV)/lock
	$(VENV)/lock/bin/python -m pip install --quiet --disable-pip-version-check --upgrade uv
	$(VENV)/lock/bin/uv pip compile pyproject.toml --group dev --all-extras --universal --python-version 3.11 \
	    --generate-hashes --no-emit-index-url --no-emit-find-links --exclude-newer "7 days" \
	    --custom-compile-command "make lock" --quiet --upgrade --output-file constraints.txt

.PHONY: clean
clean: ## Remove everything that was made here (built cluster tools stay in the user's cache)
	rm -rf $(VENV) build dist .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find webhook catalog certs tests -name __pycache__ -type d -prune -exec rm -rf {} +
