# `make help` lists the targets. Each sets up what it needs by itself.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
HTTP ?= 127.0.0.1:7391

# Most tests wait for other processes, so there may be two more at a time than there are processors.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 2)
# Without its cache, every worker translates all tests again, for a quarter of a minute.
unexport PYTHONDONTWRITEBYTECODE

SMALL := model policy config calls architecture tools/test_definitions.py tools/test_catalog.py tools/test_policy_table.py

.PHONY: help serve test fast attack wheel check bench generate conformance mutants clean

help:  ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

$(VENV)/.ready: pyproject.toml bin/setup
	@PYTHON="$(PYTHON)" sh bin/setup --tests "$(VENV)"
	@touch $@

serve:  ## install menugate for your account, and serve this folder over HTTP
	@command -v "$(PYTHON)" >/dev/null || \
		{ echo "menugate needs Python 3.11 or later; name one with: make PYTHON=/path/to/python3" >&2; exit 1; }
	@menugate=$$("$(PYTHON)" bin/install.py) && exec "$$menugate" serve --http $(HTTP)

test: $(VENV)/.ready  ## the whole suite, with repetition and load cut to a twentieth
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

fast: $(VENV)/.ready  ## the tests of the policy, the configuration, the tool definitions and the pipeline, in half a minute
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow" $(SMALL:%=tests/%)

attack: $(VENV)/.ready  ## floods, races, kills, large properties and idle waits at full size
	TEST_SIZE=full $(BIN)/python -m pytest -m heavy --durations=20

wheel: $(VENV)/.ready  ## build the wheel, install it by itself, and run the suite against it
	bin/test-wheel

check: $(VENV)/.ready  ## types, style, and that everything generated is up to date
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/python -m bench.generated --check

generate: $(VENV)/.ready  ## rewrite the generated pages, schemas and snapshots
	$(BIN)/python -m bench.generated

bench: $(VENV)/.ready  ## measure menugate against the bare SDK, and write bench/results.md
	$(BIN)/python -m bench

conformance: $(VENV)/.ready  ## the protocol's own conformance suite, both revisions
	$(BIN)/python -m bench.conformance

mutants: $(VENV)/.ready  ## plant faults in the policy, one at a time; the tests have to catch 90 % of them
	bin/mutants

clean:  ## remove the environment
	rm -rf $(VENV)
