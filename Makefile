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

.PHONY: help setup demo test test-fast check check-style check-types check-imports check-templates check-migrations check-wording check-words check-commits check-packages pin-images smoke chaos proof soak bench bench-collect bench-pages bench-changes bench-execution bench-freshness bench-planner bench-pipeline bench-topics bench-oncall docs check-docs measured pictures clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## create .venv with the packages of uv.lock

demo: $(STAMP) ## start kafkadash with a real Kafka cluster (ARGS="--reset --port 8080")
	@exec $(BIN)/python manage.py demo $(ARGS)

test: $(STAMP) ## run all tests but those marked long (ARGS="-k name")
	@$(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist loadgroup -m "not long" $(ARGS)

test-fast: $(STAMP) ## run the tests that need no Java and no browser (ARGS="-k name")
	@$(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist loadgroup -m "(domain or app) and not kafka and not browser" $(ARGS)

check: check-style check-types check-imports check-templates check-migrations check-wording check-words check-commits check-packages check-docs ## check style, types, imports, templates, migrations, wording, texts, commits, packages and docs

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
check-words: $(STAMP)
	$(BIN)/python -m tests.page_words
	$(BIN)/python -m pytest -q -n0 tests/pages/test_markup.py -k words
check-commits: $(STAMP)
	$(BIN)/python -m tests.commit_subjects
check-packages: $(STAMP)
	$(BIN)/python -m tests.supply audit
check-migrations: $(STAMP)
	$(BIN)/python manage.py makemigrations --check --dry-run
check-docs: docs
	$(BIN)/python -m tests.doc_links

docs: $(STAMP) ## build the documentation site in var/docs; warnings are errors
	$(BIN)/sphinx-build --quiet --fail-on-warning --nitpicky --fresh-env docs var/docs

measured: $(STAMP) ## write bench results into docs/measured.md and README.md
	@$(BIN)/python -m tests.measured

pictures: $(STAMP) ## take the screenshots of README.md; needs Chromium
	@$(BIN)/python -m tests.pictures

smoke: $(STAMP) ## run a separate demo end to end and compare it with Kafka (ARGS="people" or ARGS="--full")
	@$(BIN)/python -m tests.smoke $(ARGS)

chaos: $(STAMP) ## inject faults during real drains and rollbacks (ARGS="--seed 1 --faults 50 --write")
	@$(BIN)/python -m tests.chaos $(ARGS)

proof: $(STAMP) ## run the long proofs: tools, solver, kills, Spark, attacks, load, mutations (ARGS="crowd --minutes 3")
	@$(BIN)/python -m tests.proof $(ARGS)

soak: $(STAMP) ## measure each process during 20 min of moves (ARGS="--minutes 5")
	@$(BIN)/python -m tests.soak $(ARGS)

bench: bench-collect bench-pages bench-changes bench-execution bench-freshness bench-planner bench-pipeline bench-topics bench-oncall ## run all benches in sequence, on an otherwise idle machine

bench-collect: $(STAMP) ## measure a refresh of 200,000 partitions: time, writes, memory
	@$(BIN)/python -m tests.bench collect $(ARGS)

bench-pages: $(STAMP) ## measure page latency and live updates (ARGS="live_pixel" for one part)
	@$(BIN)/python -m tests.bench pages $(ARGS)

bench-changes: $(STAMP) ## measure a plan of 50,000 rows: upload, review, submit
	@$(BIN)/python -m tests.bench changes $(ARGS)

bench-execution: $(STAMP) ## measure runs: time against the bound, ETA accuracy, step and page cost
	@$(BIN)/python -m tests.bench execution $(ARGS)

bench-freshness: $(STAMP) ## measure the time until pages show broker, quorum and external changes
	@$(BIN)/python -m tests.bench freshness $(ARGS)

bench-planner: $(STAMP) ## measure plans at 10k, 100k and 1M partitions: bytes against the optimum, time, memory
	@$(BIN)/python -m tests.bench planner $(ARGS)

bench-pipeline: $(STAMP) ## measure collection and processing of 5,000 groups (ARGS="pipeline.collection")
	@$(BIN)/python -m tests.bench pipeline $(ARGS)

bench-topics: $(STAMP) ## measure changes of 1,000 topics, and pages of 5,000 topics and partitions
	@$(BIN)/python -m tests.bench topics $(ARGS)

bench-oncall: $(STAMP) ## measure messages of a dead broker, storms, the timeline, failing receivers (35 min), /metrics
	@$(BIN)/python -m tests.bench oncall $(ARGS)

pin-images: $(STAMP) ## pin the image digests in docker-compose.yml
	@$(BIN)/python -m tests.supply pin

clean: ## remove .venv and caches; keep var (data, keys, passwords)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache htmlcov .coverage
	find . -name __pycache__ -type d -not -path './var/*' -prune -exec rm -rf {} +

$(STAMP): uv.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || \
	  { echo "$(PYTHON) not found. Install Python 3.11 or newer, or run: make setup PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "kafkadash needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -c 'import platform; print(platform.python_version())'). Run: make setup PYTHON=/path/to/python3.11" >&2; exit 1; }
	@if ! { test -x $(BIN)/python && $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))'; }; then \
	  rm -rf $(VENV); \
	  $(PYTHON) -m venv $(VENV) || \
	    { rm -rf $(VENV); echo "$(PYTHON) cannot create a virtual environment. Install its venv module (Debian: python3-venv), or run: make setup PYTHON=/path/to/python3.11" >&2; exit 1; }; \
	fi
	@test -x $(BIN)/uv || { \
	  { $(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip >/dev/null; } && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check uv; } || \
	  { echo "uv could not be downloaded from PyPI. Check the network, then run make setup again." >&2; exit 1; }
	@$(BIN)/uv sync --frozen --extra pipeline --extra dev --compile-bytecode --python $(BIN)/python || \
	  { echo "The packages of uv.lock could not be installed (see above). Run make setup again; finished downloads are kept." >&2; exit 1; }
	@touch $@
