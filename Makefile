# The few commands a newcomer needs. Everything real happens in CMake and tools/.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PORT ?= 8080
FUZZ_SECONDS ?= 60
JOBS ?= $(shell nproc)
export JOBS FUZZ_SECONDS

# Folders whose code runs on several threads; `make check` runs their tests under tsan.
THREADED := base net kv engine worker gateway app
# Folders whose results are bits; the debug build must give the same digests.
EXACT := checkpoint tensor engine

# Failures and the closing lines on the screen, all of it in FOLDER/ctest.log.
CTEST := tools/ctest.sh
SOURCES := git ls-files -co --exclude-standard -- 'src/*.cc' 'src/*.h' 'tests/*.cc' 'tests/*.h' 'bench/*.cc'

.PHONY: help up down build test check asan tsan digest neon fuzz soak simulate bench format format-check tidy reference

help:  ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

up: build  ## Install, build, start in the background, stream a first answer [PORT=8080]
	@build/sluice up --detach --first-request --port $(PORT)

down:  ## Stop what `make up` started
	@if [ -x build/sluice ]; then build/sluice down; else echo "nothing is built, so nothing runs"; fi

build:  ## Leave the program at build/sluice
	@tools/bootstrap.sh build
	@tools/build.sh release sluice

test:  ## Build and run every test
	@tools/bootstrap.sh test
	@tools/build.sh release
	@$(CTEST) build

check:  ## Sanitizers, digests of the debug build, fuzzing, format, clang-tidy (long)
	@tools/bootstrap.sh check
	@$(MAKE) format-check asan tsan digest fuzz tidy
	@echo "make check: all passed"

asan:
	@tools/build.sh asan-ubsan
	@# What was freed is kept for a while; the default 256 MiB of it look like a leak to tests of bounds.
	@ASAN_OPTIONS=quarantine_size_mb=32 $(CTEST) build-asan

tsan:
	@tools/build.sh tsan $(shell tools/folders.sh $(THREADED))
	@$(CTEST) build-tsan -L '^($(subst $(eval ) ,|,$(THREADED)))$$'

digest:
	@targets="$(shell tools/folders.sh $(EXACT))"; \
	if [ -z "$$targets" ]; then echo "no digests to compare yet"; exit 0; fi; \
	tools/build.sh debug $$targets; \
	$(CTEST) build-debug -R Digest

fuzz:
	@tools/build.sh fuzz fuzz_targets
	@tools/fuzz.sh

neon:  ## The exact folders cross-compiled for AArch64, under qemu (minutes)
	@tools/neon.sh

soak:  ## Long loads: an A/A pair for 10,000 requests, four times the load for a minute, kills, timing (long)
	@tools/soak.sh

simulate:  ## Write the tables and plots of docs/simulator.md and cache-policies.md [TRACES=folder with conversation_trace.jsonl]
	@tools/bootstrap.sh build
	@tools/build.sh release sluice
	@python3 tools/simulate.py $(TRACES)
	@python3 tools/cache_policies.py $(TRACES)

bench:  ## Ratios to peers and to the machine's limits
	@if [ -x tools/bench.sh ]; then tools/bench.sh; else echo "no benchmark yet"; fi

format:  ## Format the sources in place
	@tools/bootstrap.sh check
	@$(SOURCES) | xargs -r clang-format-19 -i

format-check:
	@$(SOURCES) | xargs -r clang-format-19 --dry-run --Werror
	@echo "format: clean"

tidy:  ## clang-tidy over src/
	@tools/bootstrap.sh check
	@tools/tidy.sh

reference: build  ## Write docs/reference/ from the program's --help
	@tools/make_reference.sh
