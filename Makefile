# Two commands do everything on a machine with Python 3.11-3.13 and make: `make train` and `make test`.
SHELL := bash
.DEFAULT_GOAL := help

# Real conversations lie here when they are at hand; otherwise they are downloaded, or skipped with one line.
ifneq ($(wildcard ../shared/data),)
export LONGMEMEVAL_DIR ?= $(abspath ../shared/data)
endif

BIN := .venv/bin
PY := $(BIN)/python
RUN ?= runs/quick
PROOF ?= runs/proof
MODEL ?= smollm2-135m
TRAIN ?=
PLAIN := --wording plain --no-dates --budget 200 --max-tokens 48 --batch-size 60
EVAL := $(PY) -m eval supersede --model $(MODEL) $(PLAIN)
QUICK := $(EVAL) --data validation --preset quick --n 60
REAL := $(EVAL) --data oracle --n 12 --fitting

.PHONY: help setup train test docs-check hub-check proof lint clean

help:
	@echo "make train   set up, then train and evaluate the small model on this machine (under 30 minutes on 2 cores)"
	@echo "make test    set up both verifiers versions, then lint, type-check and test (under 20 minutes)"
	@echo "make docs-check   the long commands of README and docs too, as written (about 10 minutes)"
	@echo "make hub-check    both Hub packages built, installed and run in fresh environments (docs/hub.md)"
	@echo "make proof   three seeds x two lambdas, about an hour each on 2 cores; resumes (docs/results)"
	@echo "make setup   the virtual environment in .venv only"
	@echo "make clean   remove the environments (runs/ stays)"

setup:
	@.ci/setup main

# One run on this machine, every step resumable: train, evaluate base, warm start and trained adapter, compare, draw.
train: setup
	$(BIN)/prime-rl train --env supersede --engine local --output $(RUN) --resume $(TRAIN)
	$(QUICK) --condition both --out $(RUN)/eval/base
	$(QUICK) --adapter $(RUN)/warm --out $(RUN)/eval/warm
	$(QUICK) --adapter $(RUN)/adapter --out $(RUN)/eval/trained
	@$(REAL) --out $(RUN)/real/base && $(REAL) --adapter $(RUN)/adapter --out $(RUN)/real/trained \
		|| { test $$? = 2 && echo "real conversations: skipped, see the line above"; }
	@echo; echo "== $(RUN): 60 generated validation episodes (small model; values and phrasings not trained on)"
	@$(PY) -m eval table $(RUN)/eval/base/full $(RUN)/eval/base/bounded $(RUN)/eval/warm/bounded \
		$(RUN)/eval/trained/bounded --metrics $(RUN)/metrics.jsonl --plot $(RUN)/summary.png
	@test ! -d $(RUN)/real/trained || { echo; echo "== $(RUN): real conversations (LongMemEval oracle)"; \
		$(PY) -m eval table $(RUN)/real/base/bounded $(RUN)/real/trained/bounded; }
	@echo; $(PY) -m eval compare $(RUN)/eval/base/bounded $(RUN)/eval/trained/bounded
	@echo; $(PY) -m eval compare $(RUN)/eval/warm/bounded $(RUN)/eval/trained/bounded
	@echo; echo "adapter: $(RUN)/adapter   rows: $(RUN)/eval/*/*/rows.jsonl   plot: $(RUN)/summary.png"

# Hours: three seeds x two lambdas. Resumes; `python -m train.proof status` tells what is left. Results are committed.
proof: setup
	$(PY) -m train.proof run --out $(PROOF)
	$(PY) -m eval proof $(PROOF) --out docs/results/supersede_proof

lint: setup
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/ty check

test: lint
	@.ci/setup v040
	$(PY) -m pytest -p no:cacheprovider
	.venv-v040/bin/python -m pytest -p no:cacheprovider tests/test_protocol.py tests/test_longmemeval.py \
		tests/test_no_refeed.py tests/test_adapters.py tests/test_lme_protocol.py tests/test_lme_adapters.py

# The commands of README and docs that are too long for `make test`, as they are written there.
docs-check: setup
	@.ci/setup v040
	DOCS_COMMANDS=long $(PY) -m pytest -p no:cacheprovider tests/test_docs_commands.py

# Both Hub packages: built, installed alone and together on both verifiers, run, replayed, validated.
hub-check: setup
	$(PY) -m train.hub check

clean:
	rm -rf .venv .venv-v040 build dist *.egg-info
