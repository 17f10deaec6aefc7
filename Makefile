# kafkadash needs Python 3.11 or newer and make; everything else comes into .venv.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.up-to-date
# One more than two cores: tests that wait for brokers, Spark or a browser would leave a core idle.
TEST_PROCESSES ?= 3

export UV_PROJECT_ENVIRONMENT := $(CURDIR)/$(VENV)
export DJANGO_SETTINGS_MODULE ?= kafkadash.settings

.PHONY: help setup demo test test-fast check check-style check-types check-imports check-templates check-migrations check-wording check-commits check-packages pin-images smoke chaos proof soak bench bench-collect bench-pages bench-changes bench-execution bench-freshness bench-planner bench-pipeline clean

help: ## say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv with everything that uv.lock names; starts nothing

demo: $(STAMP) ## start the whole product with a real Kafka cluster (ARGS="--reset --port 8080")
	@exec $(BIN)/python manage.py demo $(ARGS)

test: $(STAMP) ## all tests, then a table of tiers (ARGS="-k name")
	@$(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist loadgroup $(ARGS)

test-fast: $(STAMP) ## tests of rules, models and pages, without Java and browser: for the loop of writing (ARGS="-k name")
	@$(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist loadgroup -m "(domain or app) and not kafka and not browser" $(ARGS)

check: check-style check-types check-imports check-templates check-migrations check-wording check-commits check-packages ## style, types, import contracts, templates, migrations, decisions that depend on wording, commit subjects, known holes in packages

check-style: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
check-types: $(STAMP)
	$(BIN)/mypy
check-imports: $(STAMP)
	$(BIN)/lint-imports
	$(BIN)/python -m tests.doors
check-templates: $(STAMP)
	$(BIN)/djlint templates --lint
	$(BIN)/python -m tests.template_names
check-wording: $(STAMP)
	$(BIN)/python -m tests.wording_check
check-commits: $(STAMP)
	$(BIN)/python -m tests.commit_subjects
check-packages: $(STAMP)
	$(BIN)/python -m tests.supply audit
check-migrations: $(STAMP)
	$(BIN)/python manage.py makemigrations --check --dry-run

smoke: $(STAMP) ## start the demo apart, move 200 MB, drain and roll back 460 MB, compare every figure (ARGS="people" for one part, ARGS="--full" for more bytes)
	@$(BIN)/python -m tests.smoke $(ARGS)

chaos: $(STAMP) ## kill, freeze and disturb everything while real drains and rollbacks go on (ARGS="--seed 1 --faults 50 --write")
	@$(BIN)/python -m tests.chaos $(ARGS)

proof: $(STAMP) ## compare the shared tool process with Kafka's scripts, plans with another solver, kill writers of segments, the pipeline and the worker of runs at every point of a step, run the pipeline on a Spark cluster, follow a lag through Spark to its page, attack it and read its pages, let a crowd work, put faults into the code that tests have to notice (ARGS="crowd --minutes 3")
	@$(BIN)/python -m tests.proof $(ARGS)

soak: $(STAMP) ## 20 minutes of continuous moves: memory, threads, sockets and files of each process (ARGS="--minutes 5")
	@$(BIN)/python -m tests.soak $(ARGS)

bench: bench-collect bench-pages bench-changes bench-execution bench-freshness bench-planner bench-pipeline ## every bench, one after the other; leave the machine alone meanwhile

bench-collect: $(STAMP) ## how long a refresh of 200,000 partitions takes, what it writes, how much memory it needs
	@$(BIN)/python -m tests.bench collect $(ARGS)

bench-pages: $(STAMP) ## how fast pages answer and how soon a commit is seen (ARGS="live_pixel" for one part)
	@$(BIN)/python -m tests.bench pages $(ARGS)

bench-changes: $(STAMP) ## how long a plan of 50,000 rows takes from its upload to its review, and to be submitted
	@$(BIN)/python -m tests.bench changes $(ARGS)

bench-execution: $(STAMP) ## how long a run takes against its bound, how true its time left is, what a step and a page cost
	@$(BIN)/python -m tests.bench execution $(ARGS)

bench-freshness: $(STAMP) ## how soon pages tell of a killed broker, a lost quorum and what others change, and what reading costs
	@$(BIN)/python -m tests.bench freshness $(ARGS)

bench-planner: $(STAMP) ## bytes of plans against the proven least, their time and memory, at 10k, 100k and 1M partitions
	@$(BIN)/python -m tests.bench planner $(ARGS)

bench-pipeline: $(STAMP) ## how long a collection of 5,000 groups takes, and what the pipeline makes of it (ARGS="pipeline.collection")
	@$(BIN)/python -m tests.bench pipeline $(ARGS)

pin-images: $(STAMP) ## write into docker-compose.yml the digest behind the tag of each image
	@$(BIN)/python -m tests.supply pin

clean: ## remove .venv and caches; var (data, keys, passwords) stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache htmlcov .coverage
	find . -name __pycache__ -type d -not -path './var/*' -prune -exec rm -rf {} +

$(STAMP): uv.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || \
	  { echo "There is no $(PYTHON) here: install Python 3.11 or newer, or name one: make setup PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "kafkadash needs Python 3.11 or newer and $(PYTHON) is $$($(PYTHON) -c 'import platform; print(platform.python_version())'): name another one: make setup PYTHON=/path/to/python3.11" >&2; exit 1; }
	@if ! { test -x $(BIN)/python && $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))'; }; then \
	  rm -rf $(VENV); \
	  $(PYTHON) -m venv $(VENV) || \
	    { rm -rf $(VENV); echo "$(PYTHON) cannot make a virtual environment: install its venv module (Debian: python3-venv), or name another Python: make setup PYTHON=/path/to/python3.11" >&2; exit 1; }; \
	fi
	@test -x $(BIN)/uv || { \
	  { $(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip >/dev/null; } && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check uv; } || \
	  { echo "uv could not be fetched from PyPI: check the network, then run make setup again." >&2; exit 1; }
	@$(BIN)/uv sync --frozen --extra pipeline --extra dev --compile-bytecode --python $(BIN)/python || \
	  { echo "The packages of uv.lock could not be installed (see above); what was fetched is kept: run make setup again." >&2; exit 1; }
	@touch $@
