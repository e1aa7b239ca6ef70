# make demo: set up .venv, replay the sample trace under every policy and mode, write the report.
# make test: set up .venv, then format, lint, types, layers and tests.
# make reference: write docs/reference/ again, after a key, an option, a metric or a file of a run has changed.
# make fuzz: the tests of the scheduler and the policies with traces that nobody has drawn before; run it for as long as you like.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test fuzz check reference install clean

demo: install
	$(BIN)/replay run docs/demo.toml

test: check
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/pytest

fuzz: install
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 REPLAY_EXAMPLES=fuzz $(BIN)/pytest tests/scheduler

check: install
	$(BIN)/ruff format --check replay policies tests
	$(BIN)/ruff check replay policies tests
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

reference: install
	$(BIN)/python -m replay.cli.reference

install: .venv/installed

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "replay needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
