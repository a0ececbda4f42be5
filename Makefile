# make demo   two scans of a simulated room, registered, with a picture
# make setup  everything that users and developers need, in .venv
# make test   lint, format and tests, also of types, imports and the wheel
# make fuzz   five minutes of damaged files, odd clouds, commands and interruptions
# make docs   the site of docs/, in site/; a warning is an error
# make bench  time the operators, and a dense product for comparison
# make tables  measure outdated tables of docs/benchmarks again (hours); the clouds are in data/ or DATA=...
# make release  tests, tables and site; then the wheel in dist/, the changelog's date and a tag
# All make .venv first if it is missing, `demo` with the core alone; make PYTHON=python3.12 chooses its interpreter.

PYTHON ?= python3

# The tests start many processes, each of which would compile all its modules again
unexport PYTHONDONTWRITEBYTECODE

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
	.venv/bin/python benchmarks/network.py operators

tables: .venv/complete
	benchmarks/tables.sh

wheel: .venv/complete
	rm -rf build dist
	.venv/bin/python -m pip wheel --no-deps --wheel-dir dist .
	test "$$(cat dist/*.whl | wc -c)" -le 30000000

release: VERSION = $(shell sed -n 's/^VERSION = "\(.*\)".*/\1/p' pcreg/runtime/__init__.py)
release: .venv/complete
	@! git rev-parse --quiet --verify "refs/tags/v$(VERSION)" || { echo "error: $(VERSION) has a tag; set VERSION"; exit 2; }
	@test -z "$$(git status --porcelain)" || { git status --short; echo "error: commit or remove these first"; exit 2; }
	$(MAKE) test
	$(MAKE) tables
	$(MAKE) docs wheel
	sed -i.before "s/^## Unreleased/## Unreleased\n\n## $(VERSION), $$(date +%F)/" CHANGELOG.md && rm CHANGELOG.md.before
	git commit --all --message "Release $(VERSION)"
	git tag --annotate --message "pcreg $(VERSION)" "v$(VERSION)"

setup: .venv/complete

.venv/core: pyproject.toml constraints.txt setup.sh
	PYTHON="$(PYTHON)" ./setup.sh core

.venv/complete: pyproject.toml constraints.txt setup.sh
	PYTHON="$(PYTHON)" ./setup.sh complete

.PHONY: demo test fuzz docs bench tables wheel release setup
