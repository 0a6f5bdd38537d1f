# Every target makes the environment it needs; none is assumed.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.PHONY: help demo test lint docs bench ecosystem clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python pyproject.toml
	$(PIP) install --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.installed pyproject.toml
	$(PIP) install --editable '.[dev]'
	@touch $@

# gpulint exits with 1 when it finds something, as it does here on purpose.
demo: $(VENV)/.installed  ## lint the demo project: its findings, and the fixes as a diff
	@echo '$$ gpulint fixtures/demo'
	@$(BIN)/gpulint fixtures/demo || test $$? -eq 1
	@echo
	@echo '$$ gpulint fixtures/demo --diff --unsafe-fixes'
	@$(BIN)/gpulint fixtures/demo --diff --unsafe-fixes || test $$? -eq 1

lint: $(VENV)/.dev  ## ruff, mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint  ## lint, then the whole test run
	$(BIN)/python -m pytest

docs: $(VENV)/.dev  ## write the generated pages anew
	$(BIN)/python docs/generate.py

bench: $(VENV)/.dev  ## time gpulint beside other linters
	$(BIN)/python bench/speed.py

ecosystem: $(VENV)/.dev  ## lint and fix the pinned source of well-known projects
	$(BIN)/python bench/ecosystem.py

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
