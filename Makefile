# Two commands do everything on a machine with Python 3.11-3.13 and make: `make train` and `make test`.
SHELL := bash
.DEFAULT_GOAL := help

# Real conversations lie here when they are at hand; otherwise they are downloaded, or skipped with one line.
ifneq ($(wildcard ../shared/data),)
export LONGMEMEVAL_DIR ?= $(abspath ../shared/data)
endif

PY := .venv/bin/python
RUN ?= runs/quick
MODEL ?= smollm2-135m
QUICK := --model $(MODEL) --data validation --preset quick --n 60 --wording plain --budget 200 --max-tokens 48

.PHONY: help setup train test proof lint clean

help:
	@echo "make train   set up, then train and evaluate the small model on this machine (under 30 minutes on 2 cores)"
	@echo "make test    set up both verifiers versions, then lint, type-check and test (under 10 minutes)"
	@echo "make setup   the virtual environment in .venv only"
	@echo "make clean   remove the environments (runs/ stays)"

setup:
	@.ci/setup main

train: setup
	$(PY) -m train.quick --model $(MODEL) --out $(RUN)

lint: setup
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/ty check

test: lint
	@.ci/setup v040
	$(PY) -m pytest -p no:cacheprovider
	.venv-v040/bin/python -m pytest -p no:cacheprovider tests/test_protocol.py tests/test_longmemeval.py \
		tests/test_no_refeed.py tests/test_adapters.py

clean:
	rm -rf .venv .venv-v040 build dist *.egg-info
