# One command per wish; `make help` lists them.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q -q
STAMP := .venv/.installed
DRUM := out/drum

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all test-page lowest check format wheel bench validate reliability docs clean

help:  ## list the commands
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## (.*)/make \1|\2/' | column -t -s '|' 2>/dev/null || grep -E '^[a-z-]+:.*## ' Makefile

setup: $(STAMP)  ## make .venv with the locked versions and this package, editable
	@:

# The stamp is written last: an interrupted setup starts again. It depends on what is installed, not on the sources.
$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "clast needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>/dev/null || echo missing)." >&2; \
	  echo "Say which one to use: make setup PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || { \
	  echo "'$(PYTHON) -m venv' failed; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo "installing the locked packages into .venv (once, a minute or two) ..."
	@$(PIP) install -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $(STAMP)
	@echo "ready: $(BIN)/clast"

demo: setup  ## a rotating drum of 4,000 spheres: numbers and a picture
	@$(BIN)/clast run drum --output $(DRUM) --overwrite
	@$(BIN)/clast render $(DRUM) --picture $(DRUM)/picture.png --colour speed
	@echo
	@echo "picture     $(DRUM)/picture.png"
	@echo "movie       $(BIN)/clast render $(DRUM) --movie $(DRUM)/movie.gif     (a few minutes)"
	@echo "numbers     $(DRUM)/report.json     ($(BIN)/clast report $(DRUM))"
	@echo "trajectory  $(DRUM)/trajectory.h5"
	@echo "go on       $(BIN)/clast run --resume $(DRUM) --until 4"

# One process a core; tests/conftest.py says which tests belong together in one, and in what order they start.
PARALLEL := -n auto --dist loadgroup

# Where Chromium is, the page is tested in it; without a network for its driver these tests are skipped and say so.
CHROMIUM := $(shell command -v chromium || command -v google-chrome)
BROWSER := .venv/.browser

$(BROWSER): requirements-browser.lock $(STAMP)
	@$(PIP) install -r requirements-browser.lock && touch $@ || echo "the driver of Chromium could not be installed" >&2

test: setup $(if $(CHROMIUM),$(BROWSER))  ## the quick tests
	@$(BIN)/python -m pytest -q $(PARALLEL)

test-all: setup $(if $(CHROMIUM),$(BROWSER))  ## every test, the slow ones too
	@$(BIN)/python -m pytest -q $(PARALLEL) -m ""

test-page: setup $(BROWSER)  ## the page in the browser and the report, in headless Chromium (apt install chromium)
	@$(BIN)/python -m pytest -q tests/scenes/test_browser.py

docs: setup  ## the documentation site into build/site, for reading without a network
	@$(PIP) install -r requirements-docs.lock
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site        build/site/index.html"

# Installed as a user would, beside .venv, with every >= of pyproject.toml read as ==.
LOWEST := .venv-lowest/bin/python
NAMED := import tomllib; given = tomllib.load(open("pyproject.toml", "rb")); project = given["project"]; \
  dev = [need for need in project["optional-dependencies"]["dev"] if need.startswith("pytest")]; \
  print("\n".join(given["build-system"]["requires"] + project["dependencies"] + dev).replace(">=", "=="))

lowest:  ## the quick tests with the lowest versions that pyproject.toml names
	@test -x $(LOWEST) || $(PYTHON) -m venv .venv-lowest
	@$(LOWEST) -c '$(NAMED)' > .venv-lowest/lowest.txt
	@$(LOWEST) -m pip --disable-pip-version-check -q -q install -r .venv-lowest/lowest.txt
	@$(LOWEST) -m pip --disable-pip-version-check -q -q install --no-deps --no-build-isolation --force-reinstall .
	@$(LOWEST) -m pytest -q -p no:cacheprovider $(PARALLEL)

check: setup  ## style and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: setup  ## put the sources into the common form
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

# Kernels of the ready scenes come inside, compiled for processors of this level; elsewhere they are compiled as from the sources.
LEVEL := NUMBA_CPU_NAME=x86-64-v3 NUMBA_CPU_FEATURES=+avx,+avx2,+bmi,+bmi2,+cmov,+cx16,+f16c,+fma,+fxsr,+lzcnt,+movbe,+popcnt,+sse4.2,+xsave
COMPILED := src/clast/kernels/compiled

wheel: setup  ## build the package into dist/, with the kernels of the ready scenes compiled
	@rm -rf build/kernels $(COMPILED)
	@$(LEVEL) NUMBA_CACHE_DIR=build/kernels $(BIN)/clast check --compile
	@$(LEVEL) $(BIN)/python -m clast.kernels.shipped build/kernels
	@$(PIP) wheel --no-deps --no-build-isolation --wheel-dir dist .
	@rm -rf $(COMPILED)
	@ls dist/*.whl

reliability: setup  ## attack files, scenes, meshes and solvers, many times; many hours, goes on where it was stopped
	@$(BIN)/python tests/campaign/run.py

validate: setup  ## reproduce published tables and laws, hours; goes on where it was stopped
	@$(BIN)/python validation/run.py

bench: setup  ## time the ready scenes
	@$(BIN)/python benchmarks/run.py

clean:  ## remove results and caches; .venv stays
	@rm -rf out build dist .pytest_cache .mypy_cache .ruff_cache
	@find src tests examples -name __pycache__ -type d -prune -exec rm -rf {} +
