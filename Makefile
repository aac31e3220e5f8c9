# Two commands do everything on a fresh machine: `make demo` and `make test`.

MAKEFLAGS += --no-print-directory
JOBS ?= $(shell nproc)

.DEFAULT_GOAL := help
.PHONY: help setup test-setup build test test-gpu bench-gpu gpu-bundle test-editors demo bench asan asan-quick tsan format lint clean

help:
	@echo "make demo    set up, build, train a small GPT on four local devices, compare with one device, sample text from it"
	@echo "make test    set up, build, run every test"
	@echo "make test-gpu  the tests of the runtime on CUDA that need a GPU; without one they are skipped"
	@echo "make bench-gpu  programs on a GPU, beside PyTorch and copies of memory; without one it reports the missing parts"
	@echo "make gpu-bundle  build/gpu-bundle(.tar.gz): all that a GPU machine without network needs for both"
	@echo "make test-editors  the language server in Neovim, Emacs and VS Code, which it installs into the cache"
	@echo "make build   set up and leave the program at build/release/piper"
	@echo "make bench   run the benchmarks"
	@echo "make asan    the tests under the address and undefined-behaviour sanitizers"
	@echo "make asan-quick  the tests of the compiler half under the address and undefined-behaviour sanitizers"
	@echo "make tsan    the tests under the thread sanitizer"
	@echo "make format  lay out every C++ source in place, with clang-format"
	@echo "make lint    rules of the tree, layout, clang-tidy; SINCE=REVISION: clang-tidy for changed files alone"
	@echo "make setup   fetch what the build needs: system packages, pinned wheels"
	@echo "make clean   remove build/ (the download cache stays)"

setup:
	@.deps/install_system_packages.sh
	@python3 .deps/fetch_wheels.py

# For tests only: NVRTC, which compiles the CUDA kernels, and the Python packages of Hugging Face's models.
test-setup: setup
	@python3 .deps/fetch_wheels.py --group test
	@python3 .deps/fetch_wheels.py --group transformers

# Ninja configures again by itself when a CMake file changes.
build/%/build.ninja: | setup
	@mkdir -p build
	@echo "configure: $*"
	@cmake --preset $* >build/configure-$*.log 2>&1 || { cat build/configure-$*.log; exit 1; }

# $(call ninja,PRESET,TARGET): one line of progress on a terminal, errors in full.
ninja = NINJA_STATUS="[%f/%t %es] " ninja -C build/$(1) -j $(JOBS) $(2)

build: build/release/build.ninja
	@$(call ninja,release,program)

# The tests run on the debug preset: optimised (-O1), with assertions, quick to build.
test: build/debug/build.ninja test-setup
	@$(call ninja,debug,all)
	@TESTS_NEED_SETUP=1 ctest --preset debug --parallel $(JOBS)

test-gpu: build/debug/build.ninja test-setup
	@$(call ninja,debug,gpu_test gpu_kernel_test piper)
	@ctest --preset debug -L '^gpu$$' -V

bench-gpu: build
	@python3 -B tests/gpu/bench/bench_gpu.py --piper build/release/piper --out build/bench-gpu

# The bundle is tried in another folder, with the pinned LibTorch, as far as this machine allows.
gpu-bundle: build
	@$(call ninja,release,gpu_test gpu_kernel_test)
	@tests/gpu/make_bundle.sh build/release build/gpu-bundle
	@elsewhere=$$(mktemp -d) && tar -C $$elsewhere -xzf build/gpu-bundle.tar.gz && cd $$elsewhere/gpu-bundle && \
	  PIPER_TORCH_PATH=$$(python3 $(CURDIR)/.deps/fetch_wheels.py --path) ./check.sh && rm -rf $$elsewhere

test-editors: build
	@tests/editors/run.sh build/release

asan: build/asan/build.ninja test-setup
	@$(call ninja,asan,all)
	@TESTS_NEED_SETUP=1 ctest --preset asan --parallel $(JOBS)

asan-quick: build/asan/build.ninja test-setup
	@$(call ninja,asan,compiler_tests)
	@TESTS_NEED_SETUP=1 ctest --preset asan -L '^compiler$$' --parallel $(JOBS)

# The thread sanitizer of gcc 12 cannot start under wide address randomisation.
fixed_addresses = $(shell setarch --addr-no-randomize true 2>/dev/null && echo setarch --addr-no-randomize)
tsan: build/tsan/build.ninja test-setup
	@$(call ninja,tsan,all)
	@TESTS_NEED_SETUP=1 $(fixed_addresses) ctest --preset tsan --parallel $(JOBS)

# Real text that every machine has after set-up: the headers inside the LibTorch wheel, split by file.
demo: build
	@python3 examples/gpt/make_corpus.py "$$(python3 .deps/fetch_wheels.py --path)/torch/include" build/demo
	@build/release/piper train examples/gpt/gpt.pipe -D corpus=build/demo/train.txt -D held_out=build/demo/held_out.txt --out build/demo/run
	@build/release/piper train examples/gpt/gpt.pipe -D corpus=build/demo/train.txt -D held_out=build/demo/held_out.txt --reference
	@build/release/piper sample examples/gpt/gpt.pipe -D corpus=build/demo/train.txt -D held_out=build/demo/held_out.txt --from build/demo/run --prompt "// Returns " --tokens 110 --temperature 0.6 --top-p 0.9 --seed 1
	@echo

bench: build
	@$(call ninja,release,piper_bench)
	@GOMP_SPINCOUNT=1000 build/release/piper_bench --benchmark_out=build/bench.json --benchmark_out_format=json

format:
	@python3 .deps/lint.py format --jobs $(JOBS)

lint: build/debug/build.ninja test-setup
	@python3 .deps/lint.py lint --since "$(SINCE)" --jobs $(JOBS)

clean:
	@rm -rf build
