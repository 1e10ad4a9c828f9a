# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# as published: one split, no classifiers that the paper does not have
PUBLISHED := --set preset=paper --set training.folds=1 --set training.bce_equal_budget=false --set evaluation.xgboost=false

.PHONY: help demo alp test lint style types suite wheel mutants bench paper clean

help:  ## show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 16

demo: $(READY)  ## simulate a small data set, run the whole analysis, leave plots and a report
	$(BIN)/punzi simulate -c datasets.yaml
	$(BIN)/punzi run -c datasets.yaml -r demo

alp: $(READY)  ## a second search, complete: an axion-like particle in three photons
	$(BIN)/punzi simulate -c examples/alp/datasets.yaml
	$(BIN)/punzi run -c examples/alp/datasets.yaml -r alp

test: $(READY) style  ## check style, then types beside all tests
	@$(MAKE) --no-print-directory -j2 types suite

lint: style types  ## ruff and mypy

style: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

suite: $(READY)
	$(BIN)/python -m pytest -n 2 --dist worksteal

wheel: $(READY)  ## build a wheel, install it into an empty environment, try it from another folder
	rm -rf build
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir build/wheel .
	$(PYTHON) -m venv build/wheel/env
	build/wheel/env/bin/python -m pip install --quiet build/wheel/punzi-*.whl
	cd build/wheel && env/bin/punzi --help > help.txt && env/bin/punzi doctor
	cd build/wheel && env/bin/punzi init demo --demo && env/bin/punzi simulate -c demo/datasets.yaml --scale 0.02
	cd build/wheel && env/bin/punzi check -c demo/datasets.yaml && env/bin/punzi select -c demo/datasets.yaml -r try

mutants: $(READY)  ## how many small mistakes in the code the tests notice (half an hour)
	$(BIN)/python -m tests.mutants

bench: $(READY)  ## measure speed as ratios, side by side (ten minutes, 8 GB)
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

paper: $(READY)  ## the study of the paper: simulation, ten networks, all figures (hours)
	$(BIN)/punzi simulate -c paper.yaml
	$(BIN)/punzi run -c paper.yaml -r paper
	$(BIN)/punzi simulate -c paper-fresh.yaml
	$(BIN)/punzi confirm -c paper-fresh.yaml -r paper
	$(BIN)/punzi batches -c paper.yaml -r published $(PUBLISHED)
	$(BIN)/punzi run -c paper.yaml -r published $(PUBLISHED)

clean:  ## remove generated data, runs and the environment
	rm -rf $(VENV) data runs .mypy_cache .pytest_cache .ruff_cache .hypothesis build *.egg-info

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, found " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e ".[dask,onnx,baselines,stats,workflows,dev]"
	@touch $@
