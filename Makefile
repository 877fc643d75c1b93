# The same environment for everything: .venv, made once and again only when pyproject.toml or constraints.txt change.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
ifneq ($(wildcard ../shared/data),)
export COLLEGIUM_DATA ?= $(abspath ../shared/data)
endif

# Blender for the tests of `collegium data render`, in an environment of its own; without it they are skipped.
BLENDER := .blender/blender/complete
TORCH := torch==2.13.0

# Other versions of Python that are on this machine, by the path or pyenv.
OTHERS ?= $(foreach v,3.12 3.13,$(firstword $(wildcard $(HOME)/.pyenv/versions/$(v).*/bin/python) $(shell command -v python$(v))))

.PHONY: help demo test pythons check format lint types contract docs bench system changelog sbom audit constraints clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

# Debian ships venv without ensurepip unless python3-venv is installed: the pip at hand installs into .venv instead.
# PyTorch comes first and alone: asked for in a range beside others, it brings gigabytes for graphics cards.
PIP := $(PYTHON) -m pip --python $(BIN)/python install --quiet --disable-pip-version-check
$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv --without-pip .venv
	@echo "installing into .venv …"
	@$(PIP) $(TORCH)
	@$(PIP) -c constraints.txt -e '.[dev,docs]'
	@touch $@

demo: $(STAMP) ## install, then nine classifiers decide together on handwritten digits
	$(BIN)/collegium demo

test: $(STAMP) $(BLENDER) ## every test; fetches Blender (400 MB) once, to test rendering with it
	COLLEGIUM_BLENDER=$$(ls $(abspath .blender/blender/bin/python) 2>/dev/null) MALLOC_MMAP_THRESHOLD_=131072 $(BIN)/pytest -n 2 --dist worksteal

# Without PyTorch, which comes as gigabytes for graphics cards unless a wheel for processors is at hand.
pythons: ## some hundred tests of what needs no PyTorch, with Python 3.12 and 3.13 where they are installed
	@for python in $(OTHERS); do \
	    env=.pythons/$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])') && \
	    { test -x $$env/bin/python || $$python -m venv --without-pip $$env; } && \
	    $(PYTHON) -m pip --python $$env/bin/python install --quiet --disable-pip-version-check -c constraints.txt \
	        -e '.[tables,live,dashboard,onnx]' pytest pytest-rerunfailures pytest-timeout hypothesis skl2onnx lightgbm xgboost-cpu && \
	    $$env/bin/python -VV && \
	    $$env/bin/python -m pytest -q tests/test_import.py tests/test_team_files.py tests/network/test_first_numbers.py \
	        tests/network/test_run.py tests/protocol/test_registry.py tests/agents/test_sklearn_model.py \
	        tests/live/test_matrix.py tests/cli/test_simulate_command.py || exit 1; \
	done

$(BLENDER): src/collegium/data/environment.py | $(STAMP)
	-@COLLEGIUM_BLENDER= COLLEGIUM_CACHE=.blender $(BIN)/collegium data fetch blender && touch $@

system: $(STAMP) ## as root: install the Debian packages that Blender, tests of several hosts and tests in a browser need, if they are missing
	@packages=iproute2\ chromium\ $$($(BIN)/python -c 'from collegium.data.environment import LIBRARIES as l; import sys; sys.stdout.write(l)'); \
	dpkg-query -W $$packages >/dev/null 2>&1 || (apt-get update && apt-get install -y --no-install-recommends $$packages)

check: lint types contract test docs ## everything that must pass before a change lands

format: $(STAMP) ## tidy the sources
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: $(STAMP) ## formatting and lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(STAMP) ## strict type check
	$(BIN)/mypy

contract: $(STAMP) ## imports point one way
	$(BIN)/lint-imports

docs: $(STAMP) ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: $(STAMP) ## measure speed as ratios inside one run
	$(BIN)/python benchmarks/run.py

changelog: $(STAMP) ## what changed, from changes/, as CHANGELOG.md
	$(BIN)/python docs/changes.py > CHANGELOG.md

sbom: $(STAMP) ## what is installed with which licence, as sbom.cdx.json (CycloneDX), made in an environment of its own
	@$(PYTHON) -m venv --without-pip .sbom && $(PYTHON) -m pip --python .sbom/bin/python install --quiet --disable-pip-version-check cyclonedx-bom
	.sbom/bin/cyclonedx-py environment $(BIN)/python --pyproject pyproject.toml --of JSON -o sbom.cdx.json

audit: $(STAMP) ## known vulnerabilities of the versions in constraints.txt; needs the advisory service of the package index
	@$(PYTHON) -m venv --without-pip .sbom && $(PYTHON) -m pip --python .sbom/bin/python install --quiet --disable-pip-version-check pip-audit
	@# --strict: what could not be looked up is no success.
	.sbom/bin/pip-audit --strict --no-deps --disable-pip -r constraints.txt

constraints: ## renew constraints.txt with today's versions; run it with the oldest Python to be supported
	rm -rf .venv && $(PYTHON) -m venv --without-pip .venv
	$(PIP) $(TORCH)
	$(PIP) -e '.[dev,docs]'
	@head -n 1 constraints.txt > constraints.new
	$(PYTHON) -m pip --python $(BIN)/python freeze --exclude-editable >> constraints.new
	mv constraints.new constraints.txt

clean: ## remove the environment and what was built
	rm -rf .venv .blender .sbom .pythons site out
