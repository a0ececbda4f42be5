# make demo   two scans of a simulated room, registered, with a picture
# make test   lint, format and tests, of types, imports and the wheel too
# make fuzz   five minutes of damaged files, odd clouds, commands and interruptions
# make docs   the site of docs/, in site/; a warning is an error
# make bench  the operators against a dense product
# All set up .venv first, if needed, `demo` with the core alone: make PYTHON=python3.12 chooses the interpreter of a new one.

PYTHON ?= python3

demo: .venv/core
	.venv/bin/python demo.py

test: .venv/complete
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/python -m pytest --numprocesses auto --maxprocesses 8 --dist loadfile --no-loadscope-reorder

fuzz: .venv/complete
	.venv/bin/python -m tests.fuzz

docs: .venv/complete
	.venv/bin/python benchmarks/pages.py
	.venv/bin/python -m mkdocs build --strict --quiet

bench: .venv/complete
	.venv/bin/python benchmarks/kernels.py operators

setup: .venv/complete

.venv/core: pyproject.toml constraints.txt setup.sh
	PYTHON="$(PYTHON)" ./setup.sh core

.venv/complete: pyproject.toml constraints.txt setup.sh
	PYTHON="$(PYTHON)" ./setup.sh complete

.PHONY: demo test fuzz docs bench setup
