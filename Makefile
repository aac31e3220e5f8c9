# Two commands do everything on a fresh machine: `make demo` and `make test`.

MAKEFLAGS += --no-print-directory
JOBS ?= $(shell nproc)

.DEFAULT_GOAL := help
.PHONY: help setup build test demo bench asan tsan clean

help:
	@echo "make demo    set up, build, train a small GPT on four local devices, compare with one device"
	@echo "make test    set up, build, run every test"
	@echo "make build   set up and leave the program at build/release/piper"
	@echo "make bench   run the benchmarks"
	@echo "make asan    the tests under the address and undefined-behaviour sanitizers"
	@echo "make tsan    the tests under the thread sanitizer"
	@echo "make setup   fetch what the build needs: system packages, pinned wheels"
	@echo "make clean   remove build/ (the download cache stays)"

setup:
	@.deps/install_system_packages.sh
	@python3 .deps/fetch_wheels.py

# Ninja configures again by itself when a CMake file changes.
build/%/build.ninja: CMakePresets.json | setup
	@echo "configure: $*"
	@cmake --preset $* >build/configure-$*.log 2>&1 || { cat build/configure-$*.log; exit 1; }

build: build-release

build-%: setup
	@mkdir -p build
	@$(MAKE) build/$*/build.ninja
	@NINJA_STATUS="[%f/%t %es] " cmake --build build/$* --parallel $(JOBS)

# The tests run on the debug preset: optimised (-O1), with assertions, quick to build.
test: build-debug
	@ctest --preset debug --parallel $(JOBS)

asan tsan: %: build-%
	@ctest --preset $* --parallel $(JOBS)

demo: build-release
	@build/release/piper train examples/gpt/gpt.pipe

bench: build-release
	@build/release/piper_bench --benchmark_format=console --benchmark_out=build/bench.json --benchmark_out_format=json

clean:
	@rm -rf build
