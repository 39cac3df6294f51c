# Two commands on a fresh machine with Python 3.11: `make quickstart` and `make test`.
.PHONY: install quickstart sandboxes browser worlds test test-fast test-full test-full-1 test-full-2 mutants pages lint site clean
export OMP_WAIT_POLICY ?= passive
# Some machines set it: each worker and each process of a test would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

install: ## make .venv with everything in it (quick when nothing changed)
	@python3 scripts/install.py

quickstart: install ## train an agent to shop (again: show what came out), and write runs/quickstart/report.html
	@.venv/bin/turnwise train shop-quick --out runs/quickstart --resume

sandboxes: install ## bubblewrap, Docker and a private daemon, where this is root on Debian; else says what to do
	@.venv/bin/python scripts/sandboxes.py

browser: install ## Chromium for the web environments, where this is root on Debian; else says what to do
	@python3 scripts/install.py --browser

worlds: install ## the interpreters of packages of others (2 GB), which make test-full plays; it says "not run" of those that are missing
	@PYTHONPATH=src .venv/bin/python -c "from turnwise.envs.foreign import named; [named.add(w.name, told=print) for w in named.worlds() if not w.ready]"

# docs/testing.md: the tiers, their times, and what `full` keeps beside what `test` runs.
PYTEST = .venv/bin/pytest -q -n auto --dist loadgroup --no-loadscope-reorder

BUDGET = 620 # seconds of processor time, within which the dear tests are drawn; 0: all of them
test: sandboxes browser ## tests, linter and type checker; BUDGET=0: all that is not full; CHANGED=1: what the changes since main can reach
	@$(MAKE) --no-print-directory lint & lint=$$!; \
	$(if $(CHANGED),.venv/bin/python scripts/changed_tests.py -- )$(if $(RECORD),TURNWISE_TESTS_RECORD=benchmarks/tests.json )$(PYTEST) -m "not full" --budget $(if $(CHANGED),0,$(BUDGET)); tests=$$?; \
	wait $$lint && exit $$tests

.venv/bin/pytest:
	@echo "Nothing is installed yet (.venv is missing): run make install once." >&2; exit 1

test-fast: .venv/bin/pytest ## installs nothing; what needs no sandbox, browser or vLLM and takes less than about a second each
	$(PYTEST) -m "not (full or slow or vllm or browser or sandbox or docker or ray)" --budget 115

test-full: ## everything, in two halves; what each came to is in benchmarks/, to be committed
	@$(MAKE) --no-print-directory test-full-1 test-full-2

test-full-1 test-full-2: test-full-%: sandboxes browser
	TURNWISE_TESTS_RECORD=benchmarks/tests-full-$*.json $(PYTEST) --half $*

mutants: install ## change every part a little, and see whether its tests notice; benchmarks/mutants.json
	OMP_NUM_THREADS=1 PYTHONPATH=src .venv/bin/python scripts/mutants.py --write $(MUTANTS)

pages: install ## write all generated pages of docs/ anew
	@PYTHONPATH=src .venv/bin/python scripts/generated.py

lint: install
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/pyright

site: install ## the documentation as pages in site/, built strictly
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict -q

clean: ## remove what was installed and cached (runs/ stays)
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis src/*.egg-info
