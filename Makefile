# Two commands do all set-up: `make demo` and `make test`. Both build the virtual environment first,
# once; the stamp file says that it is up to date with pyproject.toml.
VENV   ?= .venv
PYTHON ?= python3
BIN    := $(VENV)/bin
# Processes that run the tests, each from its own end of the list, so that few files are split:
# what a file compiles once is not compiled twice.
JOBS   ?= 2
# The plugins that the tests need, by name: asserts of every module of a package that announces a plugin
# are rewritten anew by each process, and perfmodel announces one.
PYTEST := $(BIN)/python -m pytest -q --disable-plugin-autoload -p xdist.plugin -p _hypothesis_pytestplugin \
          -n $(JOBS) --dist worksteal
# A measured-run table, for `make fit` and `make scoreboard`.
DATA   ?=
# Inputs of the fuzzer, predictions to check, mistakes to make; without a seed one is drawn and told.
INPUTS      ?= 100000
PREDICTIONS ?= 1000000
NEIGHBOURS ?= 200000
MUTANTS     ?= 60
SEED        ?=
# Without a GPU, hold torch to the one release whose CPU-only wheel pip may be set up to find.
HAS_GPU     := $(shell nvidia-smi -L >/dev/null 2>&1 && echo yes)
CONSTRAINTS ?= $(if $(HAS_GPU),,--constraint constraints-cpu.txt)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo quick test test-all check size pythons bench evidence gpu-day docs schemas site fit scoreboard \
        fuzz physics freeze mutants coverage clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(VENV)/.ready: pyproject.toml constraints-cpu.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "perfmodel needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(CONSTRAINTS) --editable '.[dev]'
	@$(BIN)/python -m compileall -q perfmodel kernels  # where Python may not write bytecode by itself
	@touch $@

demo: $(VENV)/.ready ## Standard against tiled attention on A100, H100 and B200, with charts
	$(BIN)/perfmodel demo --output-dir build/demo

quick: $(VENV)/.ready ## The laws of the model and of its parts on five examples and five cases each
	$(PYTEST) --hypothesis-profile quick tests/unit tests/model

test: $(VENV)/.ready ## Run all tests, the documents' examples and the notebooks among them
	$(PYTEST)

test-all: $(VENV)/.ready ## Run all tests where all that they need is there: a test that is skipped has failed
	$(PYTEST) --no-skips --continue-on-collection-errors

check: $(VENV)/.ready ## Lint, formatting, types, import layers, lines of each room
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tests/size.py

size: $(VENV)/.ready ## Lines of each room beside its budget, and the net lines of the change
	$(BIN)/python tests/size.py

pythons: $(VENV)/.ready ## Test the built wheel under each Python of 3.11 to 3.14 that is here, without torch
	$(BIN)/python .ci/pythons.py

bench: $(VENV)/.ready ## Predictions per second, into build/bench.json
	$(BIN)/python tests/speed.py

evidence: $(VENV)/.ready ## Replay every kernel against the count, compile it for all targets (half an hour)
	$(BIN)/python -m perfmodel.proof.replay.suite
	$(BIN)/python -m perfmodel.measured.compilesuite

# A machine with a GPU has torch and triton and perhaps no network: no virtual environment is built.
# FROM is the folder that an earlier day left: make gpu-day OUT=day FROM=day-1 LIMIT=560 on an H100
DAY    := $(or $(wildcard $(BIN)/python),$(PYTHON)) -m perfmodel.measured.gpu_day
OUT    ?= gpu-day
FROM   ?=
LIMIT  ?=

gpu-day: ## Where a GPU is: check, measure, calibrate and count: make gpu-day OUT=DIR
	$(if $(FROM),mkdir -p "$(OUT)" && cp -n "$(FROM)"/*.csv "$(FROM)"/*.json "$(OUT)")
	$(DAY) --output "$(OUT)" $(if $(LIMIT),--limit-seconds $(LIMIT))

docs: $(VENV)/.ready ## Run the documents' examples again and write their output and charts in place
	$(BIN)/python tests/transcripts.py
	$(BIN)/python tests/notebooks.py
	$(BIN)/python tests/heldoutchart.py docs/accuracy.md

# Only changed pages are read anew, but all are written: the menu is in each of them. Sphinx reports a
# fault when it reads the page, so after a failure it reads all of them again.
site: $(VENV)/.ready ## Build the documents, notebooks and docstrings as a site, into build/site
	$(BIN)/python -m sphinx --quiet --fail-on-warning --write-all --conf-dir docs --doctree-dir build/doctrees \
	    . build/site || { rm -rf build/doctrees; exit 1; }

fit: $(VENV)/.ready ## Fit the constants to a measured-run table: make fit DATA=runs.parquet
	@test -n "$(DATA)" || { echo "say which measured runs: make fit DATA=runs.parquet" >&2; exit 2; }
	$(BIN)/python -m perfmodel.fitting.fit $(DATA)

scoreboard: $(VENV)/.ready ## Score the model on a measured-run table: make scoreboard DATA=runs.parquet
	@test -n "$(DATA)" || { echo "say which measured runs: make scoreboard DATA=runs.parquet" >&2; exit 2; }
	$(BIN)/python -m perfmodel.validation.scoreboard $(DATA) --readme README.md
	$(BIN)/python tests/heldoutchart.py docs/accuracy.md

fuzz: $(VENV)/.ready ## Run 100,000 whole commands on good and damaged input: make fuzz INPUTS=1000 SEED=7
	$(BIN)/python tests/fuzz --inputs $(INPUTS) --jobs $(JOBS) $(if $(SEED),--seed $(SEED))

physics: $(VENV)/.ready ## Check bounds and monotony of a million random predictions: make physics SEED=7
	$(BIN)/python tests/physics --predictions $(PREDICTIONS) --neighbours $(NEIGHBOURS) --jobs $(JOBS) \
	    $(if $(SEED),--seed $(SEED))

# make freeze OUT=before.parquet, then, after a change that moves code, make freeze FROM=before.parquet
freeze: $(VENV)/.ready ## Keep the numbers of 20,000 commands in OUT, or compare them with those in FROM
	$(BIN)/python tests/freeze.py --jobs $(JOBS) $(if $(FROM),--against "$(FROM)",--output "$(OUT)")

mutants: $(VENV)/.ready ## Make 60 mistakes in a copy, three a package; nine of ten must fail a test
	$(BIN)/python tests/mutants --mutants $(MUTANTS) --jobs $(JOBS) $(if $(SEED),--seed $(SEED))

coverage: $(VENV)/.ready ## Lines and branches that the tests run, those they do not, and which test runs which
	$(PYTEST) -p pytest_cov --cov --cov-context=test \
	    --cov-report=term-missing:skip-covered

clean: ## Remove everything that was built, the virtual environment included
	rm -rf $(VENV) build dist *.egg-info .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis \
	    .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
