# Two commands do everything: `make demo` and `make test`. Both set themselves up in .venv first.
PYTHON ?= python3
TORCH ?= torch==2.13.0
# A file of exact versions, such as requirements.lock; empty: the newest that pyproject.toml admits.
LOCK ?=
VENV := .venv
BIN := $(VENV)/bin
DEMO := runs/demo

.PHONY: help demo slurm-demo quick-lint test test-slow test-slurm wheel release docs lint lock format bench clean
.DEFAULT_GOAL := help
# Where it is set, pytest would compile every test file anew at each start: twice the time.
unexport PYTHONDONTWRITEBYTECODE

help:
	@echo "make demo       train an agent, judge it, validate it in both worlds, write a page"
	@echo "make slurm-demo an agent decides for a Slurm of fake nodes, live (root), and a page"
	@echo "make test       lint, types and tests (the long ones: make test-slow)"
	@echo "make test-slurm an agent beside a real Slurm on fake nodes, measured (root)"
	@echo "make wheel      build the wheel and try it in an empty environment"
	@echo "make release    build wheel and source archive in dist/, and try both in empty environments"
	@echo "make docs       the documentation site, in site/"
	@echo "make bench      speed of the replay (ratios), decision process, platform model, time-stepped pool"
	@echo "make lock       write requirements.lock anew: exact versions for CI"
	@echo "make format     format the code"
	@echo "make clean      remove what make has built"

$(VENV)/.ready: pyproject.toml bootstrap.sh $(LOCK)
	@PYTHON=$(PYTHON) TORCH='$(TORCH)' LOCK='$(LOCK)' sh bootstrap.sh $(VENV)
	@touch $@

# System packages that a demo does not need.
$(VENV)/.tests: $(VENV)/.ready
	@sh bootstrap.sh $(VENV) slurm chromium
	@touch $@

$(VENV)/.slurm: $(VENV)/.ready
	@sh bootstrap.sh $(VENV) slurm
	@touch $@

demo: $(VENV)/.ready
	@sh demo.sh $(BIN) $(DEMO)

# Ten minutes; as root. In one container: docker compose --profile slurm up --build
slurm-demo: $(VENV)/.slurm
	@$(BIN)/bridge slurm demo --out runs/slurm-demo

lint: quick-lint
	$(BIN)/mypy

quick-lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

# Types are checked while the tests run, for these wait now and then; what mypy says comes at the end.
test: quick-lint $(VENV)/.tests
	@$(BIN)/mypy >$(VENV)/types.txt 2>&1 & types=$$!; trap 'kill $$types' INT TERM; \
	    echo '$(BIN)/pytest -n 3 (beside it: $(BIN)/mypy)'; $(BIN)/pytest -n 3; failed=$$?; \
	    wait $$types || failed=1; echo '$(BIN)/mypy'; cat $(VENV)/types.txt; exit $$failed

test-slow: $(VENV)/.tests
	$(BIN)/pytest -m slow

# A quarter of an hour; as root, on an idle machine. Each says what is not as it has to be, and the next one goes on.
test-slurm: $(VENV)/.slurm
	@failed=; for words in "live.py --jobs 1000 --kill-agent 300" "live.py --jobs 200 --no-kick" \
	    "live.py --jobs 1000 --kill-slurmctld 600" faults.py stopped.py many.py site.py \
	    "site.py --jobs 100 --policy zoo/rlbackfilling-lublin-1" "site.py --jobs 100 --policy zoo/generalist" \
	    "site.py --jobs 60 --policy lookahead(saf)+easy"; do \
	    echo "benchmarks/slurm/$$words"; $(BIN)/python benchmarks/slurm/$$words || failed="$$failed $${words%% *}"; \
	done; [ -z "$$failed" ] || { echo "not as it has to be:$$failed" >&2; exit 1; }

# The wheel and what it asks for, in an environment that holds nothing else; then what learning needs, too.
wheel: $(VENV)/.ready
	@place=$$(mktemp -d) && trap 'rm -rf "$$place"' EXIT && $(BIN)/python -m pip wheel -q --no-deps -w "$$place" . && \
	    $(PYTHON) -m venv "$$place/env" && pip="$$place/env/bin/python -m pip install -q" && $$pip "$$place"/*.whl && \
	    (cd "$$place" && env/bin/bridge replay bundled-128 --policy sjf+easy --first 100 && \
	    env/bin/bridge platform check sp2-128) && $$pip $(TORCH) && $$pip "$$(ls "$$place"/*.whl)[learn]" && cd "$$place" && \
	    env/bin/bridge evaluate bundled-128 --policy zoo/rlbackfilling-lublin-1 --sequences 4 --length 64

release:
	@sh release.sh $(PYTHON) dist

docs: $(VENV)/.ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "Look at site/index.html"

bench: $(VENV)/.ready
	$(BIN)/python benchmarks/replay.py
	$(BIN)/python benchmarks/bridge.py
	$(BIN)/python benchmarks/simgrid_model.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/pool.py
	$(BIN)/python benchmarks/mrsch.py
	$(BIN)/python benchmarks/studies/overhead.py --ray

# PyTorch is installed by itself, and what only its CUDA build needs is no part of the lock.
lock: $(VENV)/.ready
	@$(BIN)/python -m pip install -qq uv
	@echo '$(firstword $(TORCH))' >$(VENV)/torch.txt
	@echo '# Exact versions of all that pyproject.toml asks for, with digests, for CI. `make lock` writes it.' >requirements.lock
	@$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes --quiet \
	    --constraint $(VENV)/torch.txt --no-annotate --no-header | \
	    awk '/^[a-z]/ { keep = !/^(nvidia-|cuda-|triton=|torch=)/ } keep' >>requirements.lock

format: $(VENV)/.ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) runs site build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
