# SPDX-License-Identifier: Apache-2.0
# The one door to this repository. `make` alone lists what it can do.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMPS := $(VENV)/.stamps

# rustup's cargo is often not on root's PATH; one that is there goes first.
export PATH := $(PATH):$(HOME)/.cargo/bin
export PYTHON

SOURCES := $(wildcard Cargo.toml Cargo.lock engine/Cargo.toml engine/build.rs bpf/*.h bpf/*.c trial/*.schema.json) \
           $(shell find engine/src -name '*.rs' 2>/dev/null)
WHEEL_TOOLS := tools/build_hook.py tools/agreement_types.py tools/man_page.py tools/third_party.py
SCRIPTS := .ci/run tools/install-packages tools/clean-root.sh tools/try-wheel tools/make-image tools/try-clean $(wildcard src/natgauge/labs/vm/*.sh) $(wildcard benchmarks/*.sh tests/*/*.sh examples/*/*.sh)
C_FILES := $(wildcard bpf/*.c bpf/*.h benchmarks/*.c tests/*/*.c tests/*/*/*.c)

# Everything that comes from PyPI has its version and hash in requirements/, and none of it builds anything here.
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
INSTALL_LOCKED := $(PIP) install --require-hashes --only-binary :all: --requirement
# What goes to uv: make lock UPGRADE=--upgrade takes the newest of everything.
UPGRADE ?=
# What goes to pytest: make test ARGS='-x tests/unit/test_plan.py'
ARGS ?=

# Whatever is installed while cargo compiles leaves the processor to it: that takes longest.
BESIDE_CARGO := nice -n 19
# What the tests need besides is installed then, too.
BESIDE := $(if $(filter test soak test-unit,$(MAKECMDGOALS)),$(STAMPS)/test-packages)

.DEFAULT_GOAL := help
.PHONY: help setup build demo examples golden wheel image try-wheel try-install try-clean test soak test-guest record-runs test-unit check format \
        schemas lock site bench clean

help: ## list what this Makefile can do
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

setup: $(STAMPS)/installed ## install what is missing (Debian packages when root), build, and put natgauge into .venv/bin
	@echo 'natgauge is in .venv/bin, with HTML reports. Next: export PATH=$(CURDIR)/.venv/bin:$$PATH'

build: $(STAMPS)/installed ## rebuild engine, frame programs and the types of their requests and results after a change

demo: setup ## measure nftables NAT44 in namespaces: connection rate, then throughput (root; under 2 minutes)
	$(BIN)/natgauge demo

wheel: setup ## build the wheel that installs without compilers, into dist/
	rm -f dist/natgauge-*.whl
	$(PIP) wheel --no-deps --no-build-isolation --wheel-dir dist .

examples: setup ## write the examples of the documentation again from their results; NAMES="demo operator researcher" measures these first (root)
	$(BIN)/python -m tools.example_reports $(NAMES)

golden: setup ## write what natgauge says into tests/golden again, to be read as a difference; ARGS=tests/unit/test_answers.py for one file
	$(BIN)/python -m pytest --quiet --golden $(or $(ARGS),tests/unit)

try-wheel: wheel $(STAMPS)/release-packages ## try the wheel in a clean Debian 12 root, up to the demo's result (root; about 4 minutes)
	tools/try-wheel dist/natgauge-*.whl

try-install: wheel $(STAMPS)/release-packages ## the first half of it: the wheel is installed, and natgauge answers (root; about 2 minutes)
	tools/try-wheel --install-only dist/natgauge-*.whl

image: wheel $(STAMPS)/release-packages ## make the root of a container image, dist/natgauge.tar, for podman import (root; about 3 minutes)
	tools/make-image dist/natgauge-*.whl dist/natgauge.tar

try-clean: $(STAMPS)/release-packages ## try the last commit in a clean Debian 12 root: make demo, then make test (root; 8 GiB of memory)
	tools/try-clean demo test

test: setup $(STAMPS)/test-packages ## all tests but soak: engine, unit, frames, labs (root for the last two)
	$(BIN)/python -m tools.run_tests test $(ARGS)

soak: setup $(STAMPS)/test-packages ## the tests that take long, and keep their figures in benchmarks/results/soak.md (root)
	$(BIN)/python -m tools.run_tests soak $(ARGS)

test-guest: setup $(STAMPS)/test-packages $(STAMPS)/guest-packages ## tests of the vm lab with a guest that is built and emulated, and of the tester inside a machine (root; takes its time)
	NATGAUGE_TEST_GUEST=1 $(BIN)/python -m pytest tests/labs/test_lab_vm.py tests/labs/test_ports_in_guest.py

record-runs: setup $(STAMPS)/test-packages ## run every gateway of this machine, and write down that it was (root); with NATGAUGE_TEST_GUEST=1 the guest's, too
	NATGAUGE_RECORD_RUNS=1 $(BIN)/python -m pytest tests/labs/test_gateways.py tests/labs/test_chains.py tests/labs/test_dns_servers.py tests/labs/test_lab_vm.py \
		-k 'translates_both_ways or in_a_guest_is_measured or answered_once_with_the_one'

test-unit: setup $(STAMPS)/test-packages ## the inner loop: engine and unit tests, no privilege needed
	$(BIN)/python -m tools.run_tests unit $(ARGS)

# Git ignores it; a checkout that was installed before it was made has none.
src/natgauge/keywords.py: | $(STAMPS)/installed
	$(BIN)/python -m tools.described

check: $(STAMPS)/installed $(STAMPS)/check-packages src/natgauge/keywords.py ## formatters, linters and types of all three languages
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m tools.docstring_blocks
	cargo fmt --check
	cargo clippy --release --locked --all-targets --quiet -- -D warnings
	clang-format --dry-run -Werror $(C_FILES)
	shellcheck --external-sources $(SCRIPTS)

format: $(STAMPS)/installed $(STAMPS)/check-packages ## let the formatters have their way
	$(BIN)/ruff format
	$(BIN)/ruff check --fix-only --quiet
	cargo fmt
	clang-format -i $(C_FILES)

schemas: $(STAMPS)/installed ## write trial/*.schema.json and records/*.schema.json from the types, and Python's types of the former, after a change
	cargo build --release --locked
	for name in request result comparison comparison-result; do \
		target/release/natgauge-engine --schema $$name > trial/$$name-1.schema.json; done
	$(BIN)/python -m tools.agreement_types
	$(BIN)/python tools/record_schemas.py records

lock: $(STAMPS)/lock ## write requirements/*.txt from pyproject.toml, after a change of its dependencies; UPGRADE=--upgrade takes the newest
	for wanted in "dev --extra dev pyproject.toml" "site --extra site --constraint requirements/dev.txt pyproject.toml" "lock --group lock"; do \
		set -- $$wanted; list=requirements/$$1.txt; shift; \
		$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-build $(UPGRADE) \
			--custom-compile-command "make lock" --output-file $$list "$$@" || exit; done

bench: setup $(STAMPS)/bench-packages ## the tester's own speed, beside other generators (root; about 15 minutes)
	$(BIN)/python -m benchmarks.run

site: $(STAMPS)/site ## build the documentation as pages with a search, into target/site (no compiler is needed)
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=src $(BIN)/mkdocs build --strict
	@echo "target/site/index.html, or with its search: python3 -m http.server --directory target/site"

clean: ## remove what was built (results stay)
	rm -rf target $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(STAMPS)/build-packages: tools/debian-packages.txt tools/install-packages | $(STAMPS)/venv
	tools/install-packages build
	@touch $@

$(STAMPS)/venv: tools/install-packages
	tools/install-packages
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and f"natgauge needs Python >= 3.11, \
	$(PYTHON) is {sys.version.split()[0]}: make setup PYTHON=/path/to/newer/python3")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/%-packages: tools/debian-packages.txt tools/install-packages | $(STAMPS)/build-packages
	$(BESIDE_CARGO) tools/install-packages $*
	@touch $@

# The pages are made of the Python sources, without the package that is built of them.
$(STAMPS)/site $(STAMPS)/lock: $(STAMPS)/%: requirements/%.txt | $(STAMPS)/venv
	$(INSTALL_LOCKED) $<
	@touch $@

$(STAMPS)/dependencies: requirements/dev.txt | $(STAMPS)/venv
	$(BESIDE_CARGO) $(INSTALL_LOCKED) $<
	@touch $@

# The makes of its dependencies take no part in the jobs of this one.
$(STAMPS)/programs: $(SOURCES) | $(STAMPS)/build-packages
	MAKEFLAGS= cargo build --release --locked
	@touch $@

# cargo compiles, with its progress shown, while all else is downloaded; the last line finds everything built.
$(STAMPS)/installed: tools/debian-packages.txt requirements/dev.txt pyproject.toml $(WHEEL_TOOLS) $(SOURCES) | $(STAMPS)/venv
	@$(MAKE) --no-print-directory --jobs=4 $(STAMPS)/programs $(STAMPS)/dependencies $(STAMPS)/run-packages $(BESIDE)
	$(PIP) install --no-deps --no-build-isolation --check-build-dependencies --editable .
	@touch $@
