# Everything a developer or a curious stranger runs. Needs Python 3.11 or newer, pip and make.
#   make help

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt

# What `make demo` does: the whole story of the 144 heads of the bundled translator on the bundled sample, measured
# into run/ and told in report.html; a few minutes on two cores. Broken off, it goes on where it was.
DEMO   ?= report
# Which models `make models` fetches; the three small ones when none is named (`headcount ls` lists all).
MODELS ?=
# Which models it trains besides, from HEADCOUNT_DATA: names of research/models/recipes.toml, or all.
TRAIN  ?=
# Further words for pytest, e.g. make test ARGS="-k seam -x"
ARGS   ?=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Where `make fuzz`, `make kills` and `make soak` write their counts.
COUNTS ?= build
# How long `make fuzz` looks, and how many rounds `make soak` runs.
SECONDS ?= 600
N      ?= 300
.PHONY: help install demo test check format bench docs models figures reproduce clean
.PHONY: notebooks fuzz kills soak chaos lowest coverage wheel

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(VENV)/.installed  ## make .venv with headcount and its development tools

demo: $(VENV)/.installed  ## the story of the bundled translator's heads, from nothing to report.html
	$(BIN)/headcount $(DEMO)

# One thread a worker: the small models of the tests are slower, not faster, with more.
test coverage: export OMP_NUM_THREADS = 1
test coverage: export TOKENIZERS_PARALLELISM = false
test: $(VENV)/.installed  ## run all tests; those on real models fetch them first
	@$(BIN)/python scripts/models.py minilm smollm2 \
		|| echo "The real models are not there: the tests that read them will be skipped."
	@$(BIN)/python scripts/browser.py
	$(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

coverage: $(VENV)/.installed  ## run all tests and tell which lines none of them runs; pages in build/coverage
	$(BIN)/python -m pytest -n auto --dist worksteal --cov --cov-report=term-missing --cov-report=html:build/coverage \
		--cov-report=xml:build/coverage.xml $(ARGS)

wheel: $(VENV)/.installed  ## build the wheel of this version into dist/, install it by itself and ask it for its version
	rm -rf dist
	$(BIN)/python -m pip --disable-pip-version-check wheel --quiet --no-deps --wheel-dir dist .
	rm -rf build/wheel
	$(BIN)/python -m pip --disable-pip-version-check install --quiet --no-deps --target build/wheel dist/headcount-*.whl
	cd build && PYTHONPATH=wheel $(abspath $(BIN))/python -m headcount --version

check: $(VENV)/.installed  ## lint, format, types, prose and the rules of the house
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python scripts/prose.py
	$(BIN)/python -m pytest --noconftest tests/test_house.py

format: $(VENV)/.installed  ## put the code in shape, as `make check` wants it
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed  ## measure the speed promises; results go to research/benchmarks/results
	$(BIN)/python scripts/models.py minilm smollm2
	$(BIN)/python -m research.benchmarks

fuzz kills soak chaos lowest: export OMP_NUM_THREADS = 1
fuzz kills soak chaos lowest: export TOKENIZERS_PARALLELISM = false
fuzz: $(VENV)/.installed  ## damaged files for every reader, for ten minutes (SECONDS); counts in build/fuzz.json
	@mkdir -p $(COUNTS)
	$(BIN)/python tests/fuzz --seconds $(SECONDS) --json $(COUNTS)/fuzz.json

kills: $(VENV)/.installed  ## commands broken off at every file operation, run again, compared; counts in build/kills.json
	@mkdir -p $(COUNTS)
	$(BIN)/python tests/kills $(ARGS) --json $(COUNTS)/kills.json

soak: $(VENV)/.installed  ## 300 rounds (N) of surveys and scores in one process: what grew; counts in build/soak.json
	@mkdir -p $(COUNTS)
	$(BIN)/python tests/soak --rounds $(N) --json $(COUNTS)/soak.json

# How often `make chaos` kills a worker, a node and the driver in each verb.
KILLS  ?= 2
chaos: $(VENV)/.installed  ## workers, nodes and drivers of a Ray cluster killed in every verb that takes an engine (KILLS each); counts in build/chaos.json
	@mkdir -p $(COUNTS)
	$(BIN)/python tests/chaos --each $(KILLS) --json $(COUNTS)/chaos.json

# Those tests that hold no other version's figures.
LOWEST ?= tests/cli tests/laws tests/models tests/records tests/text tests/tasks tests/wiring tests/importance tests/pruning
lowest:  ## the tests with the oldest releases that pyproject.toml allows (constraints-lowest.txt)
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip --disable-pip-version-check install --quiet -c constraints-lowest.txt -e '.[serve,plot]' \
		'pytest>=8,<10' 'pytest-xdist>=3,<4' 'pytest-timeout>=2,<3' 'hypothesis>=6,<7' 'httpx>=0.27,<1' 'peft>=0.18,<1'
	$(VENV)-lowest/bin/python -m pytest -n auto --dist worksteal $(LOWEST) $(ARGS)

notebooks: $(VENV)/.installed  ## build the notebooks of docs/notebooks from their sources and run them
	$(BIN)/python scripts/models.py minilm
	$(BIN)/python scripts/notebooks.py

docs: export NO_MKDOCS_2_WARNING = 1
docs: $(VENV)/.docs  ## build the documentation into site/; a broken link is an error
	$(BIN)/mkdocs build --strict --quiet

models: $(VENV)/.installed  ## fetch the real models into the cache (HEADCOUNT_CACHE); TRAIN=all also trains those of docs/results
	$(BIN)/python scripts/models.py $(MODELS)
	$(if $(TRAIN),$(BIN)/python -m research.models $(filter-out all,$(TRAIN)))

figures: $(VENV)/.installed  ## draw the figures of docs/results again from the JSON of research/results
	$(BIN)/python -m research.figures

# ALL=--all for the parts beyond the hour as well, SKIP="PART ..." to leave some out, LIST=--list to see them first.
ALL    ?=
SKIP   ?=
LIST   ?=
reproduce: $(VENV)/.installed  ## measure docs/results again, 35 minutes on two cores (ALL=--all: all that needs no GPU); needs HEADCOUNT_DATA, the folder of corpora
	@test -d "$(HEADCOUNT_DATA)" \
		|| { echo "HEADCOUNT_DATA ('$(HEADCOUNT_DATA)') names no folder; set it to the folder of corpora."; exit 2; }
	$(BIN)/python scripts/models.py
	$(BIN)/python -m research $(ALL) $(LIST) $(if $(SKIP),--skip $(SKIP))

clean:  ## remove everything that make made here (fetched models stay in the cache)
	rm -rf $(VENV) $(VENV)-lowest site run report.html build dist .mypy_cache .ruff_cache .hypothesis
	find src tests scripts research -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[dev]'
	@touch $@

$(VENV)/.docs: pyproject.toml constraints.txt | $(VENV)/.installed
	$(PIP) -e '.[docs]'
	@touch $@

# Some systems ship Python without the pip that venv wants to copy: their own pip then brings one.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "headcount needs Python 3.11 or newer; say which: make PYTHON=python3.12"; exit 2; }
	@$(PYTHON) -m venv $(VENV) 2>/dev/null \
		|| { $(PYTHON) -m venv --clear --without-pip $(VENV) && $(PYTHON) -m pip --python $@ install --quiet pip; }
