# `make` lists the commands. They need python3 (3.10 to 3.13), its venv module and make, nothing else.
PYTHON ?= python3
VENV := .venv
SRC := ros_ws/src
PKG := $(SRC)/gp_active_sensing
LEARNING := $(PKG)_learning
BENCH := $(PKG)_bench
PACKAGES := $(PKG) $(LEARNING) $(BENCH)
PY = "$(CURDIR)/$(VENV)/bin/python"
LOCK := requirements/dev.lock
EXTRAS := test ros bag maps plot web dev
HEAVY := requirements/heavy.txt
# Test files at a time. Those that start nodes wait for two thirds of their time, so that three keep
# two cores busy; the quick ones compute.
WORKERS ?= 3
# Each computes with one thread: more of them than cores wait for each other.
PYTEST = cd $(PKG) && OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} \
  $(PY) -m pytest -c pyproject.toml --rootdir="$(CURDIR)" --timeout=600 --numprocesses=$(WORKERS)
# Folders of tests, or files, as seen from $(PKG).
TESTS ?= tests $(foreach package,$(LEARNING) $(BENCH),../$(notdir $(package))/tests)

# The ROS wheels and a sourced ROS must never meet in one process: each has its own environment.
SOURCED := $(findstring /opt/ros,$(AMENT_PREFIX_PATH):$(PYTHONPATH))$(and $(ROS_DISTRO),$(AMENT_PREFIX_PATH))
ROS := $(if $(SOURCED),system,wheels)
# The folder is part of the stamp, since an editable installation does not survive a move.
STAMP := $(VENV)/.installed-$(ROS)-$(shell pwd | cksum | cut -d' ' -f1)

# Tests and demo start many processes; without its byte code each would compile scipy again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help env heavy demo quick test test-long check site bench lock version clean

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' Makefile
	@echo 'Options: PYTHON=python3.12 (used when .venv is made), WORKERS=3 (test; quick: 2), TESTS="…" (folders or files), ARGS="…" (handed to demo, tests, bench)'

env: $(STAMP) ## make .venv with the pinned dependencies (the other commands do it themselves)

$(STAMP): $(LOCK) requirements/system-ros.txt $(PACKAGES:=/setup.py) tools/make_env.sh
	@sh tools/make_env.sh "$(PYTHON)" $(VENV) $(ROS) $(LOCK) $(SRC)
	@touch $@

# Kept apart: a probe, the demo and most tests do without.
heavy: $(STAMP) ## add torch, gpytorch (learn) and SUMO to .venv: 0.3 GB to download, or several
	@$(PY) -m pip install --quiet --disable-pip-version-check --constraint $(LOCK) --requirement $(HEAVY)

demo: $(STAMP) ## run the main job on the town map: simulator and planner, then a report
	@$(PY) -m gp_active_sensing_bench.demo $(ARGS)

quick: WORKERS = 2
quick: $(STAMP) ## run the tests that are quick, start no nodes and need no torch or SUMO, for the working day
	@$(PYTEST) -m "not slow and not ros and not heavy and not long" $(TESTS) $(ARGS)

test: $(STAMP) ## run the tests of every commit
	@$(PYTEST) -m "not long" $(TESTS) $(ARGS)

test-long: $(STAMP) ## run everything: more random cases, all kills, all pages, all processes
	@$(PYTEST) --seeds 40 $(TESTS) $(ARGS)

check: $(STAMP) ## lint, formatting, types, spelling, plain English
	@cd $(SRC) && $(PY) -m ruff check .
	@cd $(SRC) && $(PY) -m ruff format --check .
	@cd $(PKG) && $(PY) -m mypy
	@$(PY) -m codespell_lib --toml $(PKG)/pyproject.toml $(wildcard *.md) $(wildcard docs) $(PACKAGES)
	@$(PY) -m codespell_lib --toml $(PKG)/pyproject.toml --dictionary tools/plain_words.txt \
	  $(wildcard *.md) $(wildcard docs) \
	  $(addprefix $(PKG)/,gp_active_sensing config launch sim) $(foreach package,$(PACKAGES),$(package)/$(notdir $(package)) $(package)/README.md)
	@$(PY) tools/check_english.py

site: $(STAMP) ## build the site of all pages and the API reference in site/, without a broken link
	@$(PY) -m pip install --quiet --disable-pip-version-check --constraint $(LOCK) --requirement requirements/site.txt
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --quiet --strict
	@echo 'site/index.html; to search it: $(PYTHON) -m http.server --directory site'

bench: $(STAMP) ## run benchmarks (ARGS="town tours"; without: list them)
	@cd $(BENCH) && $(PY) benchmarks/run.py $(ARGS)

# uv resolves for every supported Python at once; pip installs the result.
lock: $(STAMP) ## pin the dependencies again after a change in setup.py (UPGRADE=1: newest versions)
	@$(PY) -m pip install --quiet uv
	@$(PY) -m uv pip compile --quiet --universal --python-version 3.10 --no-annotate \
	  --custom-compile-command "make lock" --constraint requirements/constraints.txt \
	  $(foreach extra,$(EXTRAS),--extra $(extra)) $(if $(UPGRADE),--upgrade) \
	  --output-file $(LOCK) $(PKG)/setup.py requirements/dev.in

version: ## write the version of gp_active_sensing/_version.py into package.xml and CITATION.cff
	@v=$$(sed -n 's/^__version__ = "\(.*\)"$$/\1/p' $(PKG)/gp_active_sensing/_version.py) && \
	  sed -i "s|<version>.*</version>|<version>$$v</version>|" $(PACKAGES:=/package.xml) && \
	  sed -i "s|^version: .*|version: $$v|" CITATION.cff

clean: ## remove .venv and everything built
	@rm -rf $(VENV) ros_ws/build ros_ws/install ros_ws/log test-results site
	@rm -rf $(foreach package,$(PACKAGES),$(package)/build $(package)/dist $(package)/*.egg-info)
	@find . -type d \( -name __pycache__ -o -name .mypy_cache -o -name .ruff_cache \
	  -o -name .pytest_cache -o -name .hypothesis \) -prune -exec rm -rf {} +
