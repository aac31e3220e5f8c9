#!/usr/bin/env python3
"""The command line, the benchmark and the script of the first minutes over a libcuda that runs no kernel and notices broken rules (stubs/strict_libcuda.cpp).

    stub_test.py PIPER FOLDER_OF_STUBS FOLDER_OF_CUDA_WHEELS [FOLDER_OF_TEST_TORCH_CUDA]

Losses are zero here, because nothing is computed. The stub checks every call of the driver: streams, events, captures, memory, and that everything is released.
"""

import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PIPER, STUBS, WHEELS = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
TORCH = pathlib.Path(sys.argv[4]).resolve() if len(sys.argv) > 4 else None
SMALL = {"layers": 2, "dim": 128, "heads": 2, "vocab": 64, "seq_length": 64, "sequences": 4, "steps": 6}


def definitions(sizes):
    return [word for name, value in sizes.items() for word in ("-D", f"{name}={value}")]


class OverStubs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        nvrtc = WHEELS / "nvidia/cu13/lib"
        if not nvrtc.is_dir():
            if "TESTS_NEED_SETUP" in os.environ:
                raise AssertionError(f"there is no NVRTC in `{nvrtc}`")
            raise unittest.SkipTest(f"there is no NVRTC in `{nvrtc}`: `make test` fetches it")
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        libraries = cls.folder / "cuda"
        libraries.mkdir()
        for path in nvrtc.glob("libnvrtc*"):
            (libraries / path.name).symlink_to(path)
        (libraries / "libcublasLt.so.13").symlink_to(STUBS / "strict_cublas_lt/libcublasLt.so.13")
        cls.environment = {**os.environ, "LD_LIBRARY_PATH": str(STUBS / "strict_libcuda"), "PIPER_CUDA_PATH": str(libraries), "XDG_CACHE_HOME": str(cls.folder / "cache"),
                           "PIPER_TORCH_PATH": str(cls.folder / "nowhere"), "PIPER_CUDA_ATTENTION": "builtin"}

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def run_over_stubs(self, words, environment=None, passes=True):
        """The calls of the driver: a Counter. Fails the test if a rule was broken."""
        log = self.folder / "cuda.log"
        log.unlink(missing_ok=True)
        ended = subprocess.run([str(word) for word in words], cwd=ROOT, env={**self.environment, "STUB_CUDA_LOG": str(log), **(environment or {})}, capture_output=True, text=True, check=False)
        said = ended.stdout + ended.stderr
        self.assertEqual(ended.returncode == 0, passes, said)
        lines = log.read_text(encoding="utf-8").splitlines()
        self.assertEqual([line for line in lines if line.startswith("RULE")], [], said)
        if passes:
            self.assertIn("LEFT 0", lines)
        calls = collections.Counter({line.split()[1]: int(line.split()[2]) for line in lines if line.startswith("CALLS")})
        return calls, said


class Runs(OverStubs):
    def train(self, file, *words, environment=None, passes=True):
        return self.run_over_stubs([PIPER, "train", "--device", "cuda", file, *words, "--out", self.folder / "run"], environment, passes)

    def test_every_kind_of_step(self):
        small = definitions(SMALL)
        calls, _ = self.train("examples/mlp/mlp.pipe", "--steps", 8)
        self.assertEqual(calls["cuGraphLaunch"], 6, "the first two steps are enqueued action by action")
        self.assertEqual(calls["cuStreamEndCapture"], 2)
        calls, _ = self.train("examples/mlp/mlp.pipe", "--steps", 8, environment={"PIPER_CUDA_GRAPHS": "0"})
        self.assertEqual(calls["cuGraphLaunch"] + calls["cuStreamBeginCapture_v2"], 0)
        self.train("tests/gpu/bench/gpt_1b.pipe", "gpt_bf16", *small, "--profile", self.folder / "costs.json")
        self.train("tests/gpu/bench/gpt_1b.pipe", "gpt_f32", *small, "--trace", self.folder / "trace.json")

    def test_four_ranks_on_one_device(self):
        small = definitions({**SMALL, "layers": 4, "microbatches": 4})
        for graphs in ("0", "1"):
            self.train("tests/gpu/bench/pipeline.pipe", "four", *small, environment={"PIPER_CUDA_GRAPHS": graphs})

    def test_attention_of_libtorch(self):
        if TORCH is None:
            self.skipTest("built without LibTorch")
        torch = self.folder / "torch"
        (torch / "lib").mkdir(parents=True, exist_ok=True)
        shutil.copy(TORCH / "libtorch_cuda.so", torch / "lib")
        (torch / "build-version").write_text("2.11.0+cu130\n", encoding="utf-8")
        for train in ("gpt_bf16", "gpt_f32"):
            for deterministic in ("0", "1"):
                _, said = self.train("tests/gpu/bench/gpt_1b.pipe", train, *definitions(SMALL),
                                     environment={"PIPER_TORCH_PATH": str(torch), "PIPER_CUDA_ATTENTION": "torch", "PIPER_CUDA_DETERMINISTIC": deterministic})
                self.assertNotIn("warning", said)

    def test_the_full_size_of_the_benchmark(self):
        """Real sizes: memory and launches are those of a GPU."""
        calls, _ = self.train("tests/gpu/bench/gpt_1b.pipe", "gpt_bf16", "-D", "steps=4")
        self.assertEqual(calls["cuGraphLaunch"], 2)

    def test_a_context_that_fails_is_named(self):
        calls, _ = self.train("examples/mlp/mlp.pipe", "--steps", 100)
        for launches in (100, calls["cuLaunchKernel"] + 50):
            _, said = self.train("examples/mlp/mlp.pipe", "--steps", 100, environment={"STUB_CUDA_DIES": str(launches)}, passes=False)
            self.assertIn("P6017", said)

    def test_the_benchmark(self):
        out = self.folder / "bench"
        self.run_over_stubs([sys.executable, "-B", HERE / "bench/bench_gpu.py", "--piper", PIPER, "--out", out, "--tiny", "--parts", "launches,loopback"])
        parts = json.loads((out / "bench.json").read_text(encoding="utf-8"))["parts"]
        self.assertEqual({part["name"]: part["status"] for part in parts}, {"launches": "measured", "loopback": "measured"}, parts)


class FirstMinutes(OverStubs):
    """The script of the bundle; tests are stand-ins, because kernels do not run."""

    GOOGLETEST = "tests/some_test.cpp:7: Failure\nExpected equality of these values:\n  loss\n    Which is: 3\n  7\n[  FAILED  ] Some.Test (1 ms)\n"

    def setUp(self):
        self.bundle = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        (self.bundle / "bin").mkdir()
        shutil.copy(HERE / "first_minutes.py", self.bundle)
        shutil.copy(HERE / "bundle_first_minutes.sh", self.bundle / "first_minutes.sh")
        shutil.copy(HERE / "bundle_env.sh", self.bundle / "env.sh")
        shutil.copytree(HERE / "bench", self.bundle / "bench")
        shutil.copytree(ROOT / "examples", self.bundle / "examples")
        for path in (PIPER, PIPER.parent / "piper_torch_plugin.so"):
            if path.exists():
                (self.bundle / "bin" / path.name).symlink_to(path)
        self.program("gpu_test", "exit 0")
        self.program("gpu_kernel_test", "exit 0")
        self.program("nvidia-smi", 'case "$*" in *memory.used*) echo 700;; *) echo "a stub, 580.00, 143771 MiB, 1980 MHz";; esac')
        self.program("compute-sanitizer", 'shift 2; "$@"; echo "========= ERROR SUMMARY: 0 errors"')

    def program(self, name, text):
        path = self.bundle / "bin" / name
        path.unlink(missing_ok=True)  # it may be a link to the program of the build
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)

    def first_minutes(self, *words, environment=None):
        out = self.bundle / "results"
        log = self.folder / "first_minutes.log"
        log.unlink(missing_ok=True)
        ended = subprocess.run([str(self.bundle / "first_minutes.sh"), "--tiny", "--out", str(out), *words], capture_output=True, text=True, check=False,
                               env={**self.environment, "STUB_CUDA_LOG": str(log), **(environment or {})})
        self.assertEqual(sorted(path.name for path in out.iterdir()), ["all.tgz", "summary.txt"], ended.stdout + ended.stderr)
        summary = (out / "summary.txt").read_text(encoding="utf-8")
        self.assertLessEqual(len(summary), 12000)
        with tarfile.open(out / "all.tgz") as archive:
            names = set(archive.getnames())
        return ended.returncode, summary, names, log.read_text(encoding="utf-8") if log.exists() else ""

    def test_the_ladder(self):
        code, summary, names, log = self.first_minutes("--parts", "machine,ladder,gpt1b,death")
        self.assertIn("CALLS cuLaunchKernel", log)
        self.assertNotIn("RULE", log)
        for rung in ("rung1_kernels_and_products", "rung2_graphs"):
            self.assertIn(f"== {rung}: ended with 0", summary)
        # Nothing is computed, so the comparison with the CPU is the first rung that fails. It ends the ladder, not the script.
        self.assertRegex(summary, r"!! rung3_same_as_the_cpu: ended with 1")
        self.assertRegex(summary, r"rung3_same_as_the_cpu_sanitizer: ended with")
        self.assertRegex(summary, r"rung3_same_as_the_cpu_logs: ended with")
        self.assertNotIn("rung4", summary)
        self.assertIn("== gpt1b: ended with 0", summary)
        self.assertIn("MiB planned: context, kernels and libraries take", summary)
        self.assertTrue(summary.index("gpt1b_plain") < summary.index("gpu_death_test"))
        self.assertEqual(code, 1)
        self.assertLessEqual({"gpu.txt", "rung1_kernels_and_products.txt", "gpt1b/metrics.jsonl", "gpt1b.costs.json", "gpu_death_test.txt"}, names)

    def test_a_step_that_hangs_or_fails_does_not_stop_the_others(self):
        self.program("gpu_test", "exit 1")
        self.program("ncu", "sleep 600 & sleep 600")
        code, summary, _, _ = self.first_minutes("--parts", "counters,tests", "--patience", "0.2")
        self.assertEqual(code, 1)
        self.assertRegex(summary, r"!! counters: did not end within \d+ s")
        self.assertIn("!! gpu_test: ended with 1", summary)
        self.assertIn("== gpu_kernel_test: ended with 0", summary)

    def test_a_death_test_finds_its_program(self):
        (self.bundle / "bin/gpu_test").unlink()
        (self.bundle / "bin/gpu_test").symlink_to(shutil.which("ls"))  # which names itself by the first word
        _, summary, _, _ = self.first_minutes("--parts", "death")
        self.assertIn(f"{self.bundle}/bin/gpu_test: unrecognized option", summary)

    def test_the_assertion_is_printed(self):
        self.program("gpu_test", f"printf '%s' '{self.GOOGLETEST}'; exit 1")
        _, summary, _, _ = self.first_minutes("--parts", "tests")
        for text in ("tests/some_test.cpp:7: Failure", "Which is: 3", "[  FAILED  ] Some.Test", "== gpu_kernel_test: ended with 0"):
            self.assertIn(text, summary)

    def test_the_summary_has_a_limit(self):
        self.program("gpu_test", "for i in $(seq 400); do echo \"tests/some_test.cpp:$i: Failure $(seq -s ' ' 200)\"; echo \"error P6017: $i $(seq -s ' ' 200)\"; done; exit 1")
        _, summary, _, _ = self.first_minutes("--parts", "tests,death")
        self.assertIn("gpu_death_test: ended with", summary)

    def test_parts_that_do_not_exist_are_wrong_usage(self):
        ended = subprocess.run([sys.executable, "-B", str(HERE / "first_minutes.py"), "--parts", "all"], capture_output=True, text=True, check=False)
        self.assertEqual(ended.returncode, 2)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])
