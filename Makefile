# Each target does its own set-up; a second call finds it done and says nothing about it.
.DEFAULT_GOAL := help
.PHONY: help docs picture demo demo-team demo-tests demo-ticket demo-ui demo-llm test test-long test-slow test-plain check lint types contracts census campaign bench snapshots format lock clean packages browser clients langgraph sandbox database

BIN := .venv/bin
PREPARE := @sh scripts/prepare
# The tests start hundreds of processes, each of which would compile every module anew.
PYTEST = env -u PYTHONDONTWRITEBYTECODE TMPDIR=$$(sh scripts/memory-disk) $(BIN)/pytest -q
# One more than there are cores, since some tests wait; each worker takes seconds to read all tests.
WORKERS ?= $(shell cores=$$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN); echo $$((cores < 8 ? cores + 1 : 8)))
DIR ?= artifacts/demo
# pyright does not follow the links of a folder that it walks, so each package is named.
SOURCES := $(patsubst %/__init__.py,%,$(wildcard interlock/*/__init__.py)) $(wildcard interlock/*.py) tests benchmarks scripts

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

demo: browser ## run the whole way of one task on a real page (DIR=… for another folder)
	@$(BIN)/interlock demo --dir $(DIR)

demo-tests: packages sandbox ## run a scripted agent that weakens a failing pytest test, is refused, and fixes the bug (DIR=… for another folder)
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/interlock demo --example pytest-project --dir $(if $(filter file,$(origin DIR)),artifacts/demo-tests,$(DIR))

demo-ui: browser ## open the pages over projects with runs in different states, made by the agents of the demos (DIR=… for another folder)
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m scripts.demo_ui --dir $(if $(filter file,$(origin DIR)),artifacts/demo-ui,$(DIR))

demo-ticket: packages ## play a ticket through `interlock mcp`, as an agent would (DIR=… for another folder)
	@$(BIN)/python examples/ticket-run/run.py --dir $(if $(filter file,$(origin DIR)),artifacts/demo-ticket,$(DIR))

demo-team: packages sandbox database ## run two tasks over two workers, with a PostgreSQL of their own (DIR=… for another folder)
	@$(BIN)/python examples/team/run.py $(if $(filter file,$(origin DIR)),,--dir $(DIR))

demo-llm: browser ## let a model of this machine judge the landing page, with and without its faults (slow: up to 6 minutes)
	@$(BIN)/python examples/llm-demo/run.py --dir $(if $(filter file,$(origin DIR)),artifacts/demo-llm,$(DIR))

test: browser clients sandbox database ## run the tests
	@$(PYTEST) -n $(WORKERS)

test-long: browser clients sandbox database ## run what `make test` leaves out: more rows, more examples, more real processes (8 minutes)
	@$(PYTEST) -n $(WORKERS) --dist loadfile --no-loadscope-reorder --hypothesis-profile=long -m "(long or hypothesis) and not campaign and not slow"

# Programs with a sandbox of their own see no folder of the machine below /dev, so not the disk in memory either.
test-slow: packages langgraph ## run the tests with LangGraph's tools and inside the command-line agents that are installed
	@$(subst $$(sh scripts/memory-disk),$${TMPDIR:-/tmp},$(PYTEST)) -n 2 -m slow

test-plain: browser clients database ## run the tests as on a machine without bubblewrap and /proc
	@INTERLOCK_PROC=off $(PYTEST) -n $(WORKERS)

check: lint types contracts census docs test test-long ## run lint, types, import contracts, the census, the documentation and tests, the long ones too

lint: packages ## check the style and the layout of the code
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --quiet --check || { echo "  fix: make format"; exit 1; }

types: packages ## check the types
	@$(BIN)/pyright $(SOURCES)

contracts: packages ## check who may import whom
	@$(BIN)/lint-imports --no-cache

census: packages ## count what makes the code hard to live in, and refuse what grew
	@$(BIN)/python scripts/census.py

campaign: browser clients sandbox database ## run the campaigns: what is killed, stopped and fuzzed for hours before a release
	@$(PYTEST) -n $(WORKERS) --hypothesis-profile=campaign -m campaign

bench: packages ## run every measurement
	@set -e; for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python "$$file"; done

snapshots: browser clients sandbox database ## write the snapshots anew; review them like code
	@$(PYTEST) --snapshot-update -m "not campaign and not slow"

format: packages ## lay the code out and mend what can be mended
	@$(BIN)/ruff check --quiet --fix-only
	@$(BIN)/ruff format --quiet

# Every warning is an error: a link or an anchor that leads nowhere, a page that no list names. All pages are read, to see all.
docs: packages ## build the documentation into build/docs/index.html, and check every link in it
	@$(BIN)/sphinx-build -q -E -a -W -n --keep-going -b html docs build/docs

picture: browser ## make the pictures of the README anew, from a real session and the pages of the demo
	@$(BIN)/python -m scripts.picture

lock: packages ## write requirements.lock from the versions in .venv
	@$(BIN)/python scripts/lock.py

clean: ## remove caches and build products; evidence and .venv stay
	@rm -rf build dist .coverage* .hypothesis .import_linter_cache .pytest_cache .ruff_cache
	@find . -path "./.venv*" -prune -o -name __pycache__ -type d -exec rm -rf {} +

packages:
	$(PREPARE) packages

browser:
	$(PREPARE) packages browser

clients:
	$(PREPARE) packages clients

langgraph:
	$(PREPARE) packages langgraph

sandbox:
	$(PREPARE) packages sandbox

database:
	$(PREPARE) packages database
