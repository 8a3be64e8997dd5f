# The two commands of a newcomer are `make demo` and `make test`. Everything is
# installed into .venv; a stamp file for each set of packages keeps later runs
# from installing again.

PYTHON ?= python3
BACKENDS ?= jax tensorflow torch
PYTEST_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check
# Apart from the user's own, whose float type or image format may differ.
KERAS_HOME := $(CURDIR)/$(VENV)/keras
PYTEST := KERAS_HOME="$(KERAS_HOME)" TF_CPP_MIN_LOG_LEVEL=2 $(BIN)/python -m pytest
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# pytest's code for "no test ran", which is no failure of a chosen few tests.
NONE_SELECTED := $(if $(PYTEST_ARGS),5,none)

.PHONY: help demo test export-matrix lint types docs docs-test tutorials clean

help:
	@echo "make demo       run the experiments on JAX and write ./results"
	@echo "make test       run the test suite once for each backend"
	@echo "make export-matrix  export every layer in every way, print the table"
	@echo "make lint       check style and imports"
	@echo "make types      check types"
	@echo "make docs       build the documentation into ./site"
	@echo "make docs-test  build it, and test it in a browser"
	@echo "make tutorials  run the tutorials and write their notebooks"
	@echo "make clean      remove .venv, caches and build output"

demo: $(VENV)/installed-demo
	KERAS_BACKEND=jax KERAS_HOME="$(KERAS_HOME)" $(BIN)/keras-gating demo

# Each backend needs a process of its own, and 64-bit floats on JAX another.
# Two run at a time; what one prints appears when it is done. All of them run,
# whichever fails.
RUNS := $(addprefix test-,$(BACKENDS))
RUNS += $(if $(filter jax,$(BACKENDS)),test-jax-float64)
SYNC := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

test: $(VENV)/installed-test
	@$(MAKE) --no-print-directory --keep-going --jobs=2 $(SYNC) $(RUNS)
	@echo "Tests passed on: $(BACKENDS)"

test-jax-float64: export JAX_ENABLE_X64 = 1
test-jax-float64: override PYTEST_ARGS += -m float64

test-%: $(VENV)/installed-test
	@echo "==== Tests on $* ===="
	@KERAS_BACKEND=$(firstword $(subst -, ,$*)) $(PYTEST) $(PYTEST_ARGS) \
		|| [ $$? = $(NONE_SELECTED) ]

# All cells of the table in docs/guides/export.md; `make test` has the first few.
export-matrix: $(VENV)/installed-test
	@for backend in $(BACKENDS); do \
		EXPORT_MATRIX=1 KERAS_BACKEND=$$backend $(PYTEST) tests/export \
			|| exit 1; \
	done
	@$(BIN)/python -m tests.export.cells

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/installed-dev
	$(BIN)/mypy

docs: $(VENV)/installed-docs
	$(MKDOCS)

# The browser tests load no backend, so nothing of the other tests.
docs-test: $(VENV)/installed-docs-test
	$(MKDOCS)
	$(BIN)/python -m pytest --confcutdir=tests/site tests/site $(PYTEST_ARGS)

# `make tutorials TUTORIALS="01 xor"` runs the ones whose names hold a word.
tutorials: $(VENV)/installed-tutorials
	KERAS_HOME="$(KERAS_HOME)" TF_CPP_MIN_LOG_LEVEL=2 \
		$(BIN)/python tutorials/execute.py $(TUTORIALS)

clean:
	rm -rf $(VENV) results site dist .hypothesis .mypy_cache .pytest_cache \
		.ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/created:
	@command -v $(PYTHON) >/dev/null || { \
		echo "There is no '$(PYTHON)'. keras-gating needs Python 3.11 or" \
			"newer: make PYTHON=/path/to/python"; exit 1; }
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(None if v >= (3, 11) else "keras-gating needs Python 3.11 or newer, and $(PYTHON) is %d.%d: make PYTHON=/path/to/python" % v[:2])'
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/installed-demo: $(VENV)/created pyproject.toml
	$(INSTALL) -e '.[jax,experiments]'
	@touch $@

$(VENV)/installed-test: $(VENV)/created pyproject.toml requirements/backends.txt \
		requirements/no-deps.txt
	$(INSTALL) -e '.[test]' -r requirements/backends.txt
	$(INSTALL) --no-deps -r requirements/no-deps.txt
	@touch $@

$(VENV)/installed-dev: $(VENV)/created pyproject.toml
	$(INSTALL) -e '.[dev]'
	@touch $@

$(VENV)/installed-docs: $(VENV)/created pyproject.toml
	$(INSTALL) -e '.[docs]'
	@touch $@

$(VENV)/installed-docs-test: $(VENV)/created pyproject.toml
	$(INSTALL) -e '.[docs-test]'
	@touch $@

$(VENV)/installed-tutorials: $(VENV)/created pyproject.toml
	$(INSTALL) -e '.[jax,tutorials]'
	@touch $@
