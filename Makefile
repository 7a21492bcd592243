# Everything runs in .venv, which `make setup` makes; each target below calls it first.
SHELL := /bin/bash
export JAVA_HOME := $(shell scripts/java-home)
# Commands, workers and tests are thousands of processes: each would compile all that it imports for two seconds.
export PYTHONDONTWRITEBYTECODE :=
PY := .venv/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check --require-hashes
WORKERS ?= 2
# A time limit can't end a test that waits again while it cleans up: then its worker's stacks are told, and all ends.
ENDS := --max-worker-restart 0 -o faulthandler_timeout=1500 -o faulthandler_exit_on_timeout=true
UNITS := $(PY) -m pytest -n $(WORKERS) --dist worksteal $(ENDS) --ignore tests/integration --ignore tests/interop
UNITS_MARKED := not integration and not slow and not interop
REAL := $(PY) -m pytest -n $(WORKERS) --dist loadfile $(ENDS) -m "integration and not slow and not interop" --timeout 600 \
	tests/chaos tests/integration tests/fault
LOCK := .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-annotate --no-header --no-emit-index-url

FAULTS ?= 200
SEED ?= 1
OUT ?= build/faults.json
MINUTES ?= 1
HISTORIES ?= 50
ACTS ?= 30
SERVE_OUT ?= build/serve-soak.json

.PHONY: help setup demo test unit integration catalogs test-slow soak soak-cards chaos serve-soak siege mutants check hooks format docs conformance interop fuzz fuzz-smoke fuzz-kernels bench wheel image package lock clean

help:  ## This list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup:  ## Make .venv with all that is needed, compile the kernel
	@scripts/setup

demo: setup  ## Real flights from Kafka to Iceberg to Spark SQL and back, byte for byte, on embedded parts
	@.venv/bin/archiver demo

test: unit integration  ## All tests but the slow ones, on the real stack, in WORKERS (2) processes

unit: setup  ## The tests that need no server
	$(UNITS) -m "$(UNITS_MARKED) and not timed"
	$(PY) -m pytest -m "$(UNITS_MARKED) and timed" tests/archiver/serve/kafka

integration: setup  ## The tests on real Kafka, Postgres, S3, catalog and Spark
	$(REAL)

catalogs: setup  ## The same on Iceberg's own catalog in Java, on Nessie, and on MinIO with a policy that demands encryption
	ARCHIVER_TEST_CATALOG=java $(REAL)

test-slow: setup  ## The tests that take minutes each
	$(PY) -m pytest -m "slow and not interop" --timeout 1800

soak: setup  ## FAULTS (200) rounds of kills, cuts and restarts, each judged; continues where OUT (build/faults.json) ends
	$(PY) -m tests.fault.soak --faults $(FAULTS) --seed $(SEED) --out $(OUT) --resume

soak-cards: setup  ## A round of each kind of fault, on three brokers, about ten minutes; results go to build/soak-cards.json
	$(PY) -m tests.fault.soak --each --seed $(SEED) --out build/soak-cards.json

chaos: OUT = build/chaos.json
chaos: setup  ## HISTORIES (50) of ACTS (30) by the archiver and other engines, each judged; continues where OUT (build/chaos.json) ends
	$(PY) -m tests.chaos --histories $(HISTORIES) --acts $(ACTS) --seed $(SEED) --out $(OUT) --resume

serve-soak: setup  ## The server beside slow consumers, killed nodes and rebalances, MINUTES (1) each; counts go to SERVE_OUT
	$(PY) -m tests.fault.serving --minutes $(MINUTES) --out $(SERVE_OUT)

siege: MINUTES = 30
siege: CONNECTIONS = 50
siege: OUT = build/siege.json
siege: setup  ## A consumer group beside hostile CONNECTIONS (50), MINUTES (30); numbers go to OUT (build/siege.json)
	PYTHONPATH=. $(PY) -m tests.fault.siege --minutes $(MINUTES) --connections $(CONNECTIONS) --seed $(SEED) --out $(OUT)

mutants: setup  ## Each mended hole put back: a round of faults, or a test, must turn red
	$(PY) -m tests.fault.mutants

check: setup  ## Lint, format, types, import contracts, prose
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/lint-imports
	.venv/bin/python scripts/prose.py

hooks: setup  ## Run the checks before each commit that changes code (pre-commit)
	.venv/bin/pre-commit install

format: setup  ## Put the code in the house format
	.venv/bin/ruff check --fix --exit-zero
	.venv/bin/ruff format

docs: setup  ## docs/cli.md from the help texts of the commands
	PYTHONPATH=. $(PY) scripts/cli_docs.py

conformance: setup  ## Google's Protobuf conformance suite against the kernel; its runner comes from npm
	@scripts/conformance

interop: setup  ## Others' serializers write anew, where their toolchains are there; others' engines read the tables (fetches Trino)
	@scripts/interop $(if $(RECORD),--record)
	@$(PIP) -r requirements/interop.txt
	@PYTHONPATH=. $(PY) -m tests.support.servers.trino
	$(if $(RECORD),ARCHIVER_RECORD=1) $(PY) -m pytest -m interop tests/interop --timeout 1200

fuzz: setup  ## The kernels under sanitizers against bytes nobody would send, FUZZ_SECONDS (1800) guided by coverage
	@scripts/fuzz

fuzz-smoke: setup  ## The same for a minute, unguided, with any compiler
	@scripts/fuzz smoke

fuzz-kernels: setup  ## What fuzz-smoke compiles, and no more
	@scripts/fuzz compile

bench: setup  ## Ratios beside the best peers, in one run
	@$(PIP) -r requirements/bench.txt -r requirements/interop.txt
	@for file in bench/[a-z]*.py; do echo "== $$file"; $(PY) $$file || exit 1; done

wheel:  ## dist/*.whl: the archiver with its kernels compiled, for pip; needs no set-up, only Python and a C compiler
	@scripts/wheel

image:  ## The container image archiver:VERSION, with docker, podman or buildah; BASE=packages where no image registry is reached
	@scripts/image

package: setup  ## dist/archiver.pex, the environment for the machines of a Spark cluster
	@scripts/package

lock: setup  ## Resolve requirements/*.in into the hashed *.txt again
	for name in setup run fetch test compiler bench interop writers fuzz cluster package build image; do $(LOCK) requirements/$$name.in -o requirements/$$name.txt || exit 1; done

clean:  ## Remove .venv, built kernels and caches
	rm -rf .venv build *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find schema_mapping archiver -name '*.so' -delete -o -name '*.c' -delete
