# Two commands on a fresh machine with Python 3.11: `make quickstart` and `make test`.
.PHONY: install quickstart sandboxes browser test test-fast lint clean
export OMP_WAIT_POLICY ?= passive

install: ## make .venv with everything in it (quick when nothing changed)
	@python3 scripts/install.py

quickstart: install ## train an agent to shop (again: show what came out), and write runs/quickstart/report.html
	@.venv/bin/turnwise train shop-quick --out runs/quickstart --resume

sandboxes: install ## bubblewrap, Docker and a private daemon, where this is root on Debian; else says what to do
	@.venv/bin/python scripts/sandboxes.py

browser: install ## Chromium for the web environments, where this is root on Debian; else says what to do
	@python3 scripts/install.py --browser

test: sandboxes browser ## all tests, then linter and type checker
	.venv/bin/pytest -q
	@$(MAKE) --no-print-directory lint

test-fast: sandboxes browser ## the tests that take less than ten seconds each
	.venv/bin/pytest -q -m "not slow"

lint: install
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/pyright

clean: ## remove what was installed and cached (runs/ stays)
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis src/*.egg-info
