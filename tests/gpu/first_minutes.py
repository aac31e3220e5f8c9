#!/usr/bin/env python3
"""The first minutes on a GPU: `./first_minutes.sh [--limit SECONDS] [--out FOLDER] [--parts a,b] [--tiny]` in the folder of the bundle.

Every step has a limit of its own, and a step that fails or hangs does not stop the others. A ladder of small programs comes first: each rung adds one thing to the rung before. The
first rung that fails runs again under compute-sanitizer, and with the logs of the libraries; the rungs above it are left out. The test that stops the device comes last.

Leaves two files in FOLDER: `all.tgz`, every output, and `summary.txt`, at most 12,000 characters, which are printed, too. `--parts` runs some of the parts (a second run after a
mended fault); `--tiny` has small shapes, to try the script itself.

Exit codes: 0 every step passed; 1 a step failed, or had no time; 2 wrong usage.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
FAILED, USAGE = 1, 2
SUMMARY_CHARACTERS, LINE_CHARACTERS = 12000, 200
LEAST_SECONDS = 8  # a step with less time is left out
SMALL = {"layers": 2, "dim": 256, "heads": 4, "vocab": 512, "seq_length": 256, "sequences": 4, "steps": 6}
TINY = {"layers": 1, "dim": 64, "heads": 1, "vocab": 64, "seq_length": 32, "sequences": 2, "steps": 6}
# The lines of a failing command that give the reason; a failed assertion is followed by its values.
SAYS = re.compile(r"error P\d+|warning P\d+|: Failure$|\[  FAILED  \]|terminate called|[A-Za-z]*Error\b|CUDA_ERROR|ERROR SUMMARY|Invalid __|Segmentation|command not found")
COUNTERS = "gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum,launch__registers_per_thread,sm__warps_active.avg.pct_of_peak_sustained_active"


def definitions(sizes):
    return [word for name, value in sizes.items() for word in ("-D", f"{name}={value}")]


def reasons(text, limit=14):
    """The lines that say why a command failed; of a failed assertion, also its values."""
    lines = text.splitlines()
    found = []
    for at, line in enumerate(lines):
        if not SAYS.search(line):
            continue
        found.append(line)
        if line.endswith(": Failure"):
            for value in lines[at + 1 : at + 7]:
                if not value.strip() or SAYS.search(value):
                    break
                found.append("  " + value)
    return list(dict.fromkeys(found))[:limit]


class Session:
    def __init__(self, out, seconds, work, patience):
        self.out, self.work, self.seconds, self.patience = out, work, seconds, patience
        self.begun = time.monotonic()
        self.summary, self.characters, self.failed = [], 0, []
        self.running = None

    def left(self):
        return self.seconds - (time.monotonic() - self.begun)

    def say(self, text, room=600):
        """Adds a line to the summary; `room` characters stay for the headings of later steps."""
        line = "".join(c if c.isprintable() else " " for c in text)[:LINE_CHARACTERS]
        if self.characters + len(line) + 1 > SUMMARY_CHARACTERS - room:
            return
        self.characters += len(line) + 1
        self.summary.append(line)
        print(line, flush=True)

    def step(self, name, limit, words, lines=2, environment=None):
        """Runs a command; whether it ended with 0. Its output is in NAME.txt, `lines` of its end in the summary."""
        limit = min(limit * self.patience, self.left())
        if limit < LEAST_SECONDS:
            self.say(f"-- {name}: no time is left", room=0)
            self.failed.append(name)
            return False
        begun = time.monotonic()
        log = self.work / f"{name}.txt"
        with open(log, "wb") as to:
            try:
                # By its path: a death test of GoogleTest starts its program again by the first word, without a search.
                words = [shutil.which(str(words[0])) or words[0], *words[1:]]
                self.running = subprocess.Popen([str(word) for word in words], stdout=to, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
                                                cwd=HERE, env={**os.environ, **(environment or {})})
                outcome = f"ended with {self.running.wait(limit)}"
            except OSError as error:
                outcome = f"does not start: {error.strerror}"
            except subprocess.TimeoutExpired:
                outcome = f"did not end within {limit:.0f} s"
            self.stop()
        passed = outcome == "ended with 0"
        if not passed:
            self.failed.append(name)
        self.say(f"{'==' if passed else '!!'} {name}: {outcome}, {time.monotonic() - begun:.1f} s", room=0)
        text = log.read_text(encoding="utf-8", errors="replace")
        shown = [line for line in text.splitlines() if line.strip()][-lines:]
        for line in shown if passed else [*reasons(text), *(line for line in shown if line not in reasons(text))]:
            self.say("   " + line)
        self.pack()
        return passed

    def stop(self):
        """Ends the processes of the running step, if there are any left."""
        if self.running is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.running.pid, number)
            except ProcessLookupError:
                break
            try:
                self.running.wait(2)
            except subprocess.TimeoutExpired:
                pass
        self.running = None

    def pack(self):
        (self.out / "summary.txt").write_text("\n".join(self.summary) + "\n", encoding="utf-8")
        made = self.out / "all.tgz.part"
        with tarfile.open(made, "w:gz") as archive:
            for path in sorted(self.work.rglob("*")):
                if path.is_file() and path.suffix != ".cubin" and "cache" not in path.parts and not path.name.startswith("flight"):
                    archive.add(path, str(path.relative_to(self.work)))
        made.replace(self.out / "all.tgz")


class Parts:
    """Every part as a method: the order of PARTS is that of their use."""

    def __init__(self, session, tiny):
        self.session, self.tiny = session, tiny
        self.small = TINY if tiny else SMALL

    def train(self, file, *words, out):
        return ["piper", "train", "--device", "cuda", file, *words, "--out", self.session.work / out]

    def machine(self):
        for name, words in {
            "gpu": ["nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.max.sm", "--format=csv,noheader"],
            "host": ["sh", "-c", "uname -r; nproc; g++ --version | head -n 1; python3 -c 'import torch; print(\"torch\", torch.__version__, \"cuDNN\", torch.backends.cudnn.version())'; for f in ncu compute-sanitizer; do command -v $f || echo no $f; done"],
            "doctor": ["piper", "doctor"],
        }.items():
            self.session.step(name, 15, words, lines=8)

    def ladder(self):
        mlp, gpt, small = "examples/mlp/mlp.pipe", "bench/gpt_1b.pipe", definitions(self.small)
        plain = {"PIPER_CUDA_GRAPHS": "0"}
        builtin = {"PIPER_CUDA_ATTENTION": "builtin"}
        rungs = [
            ("kernels_and_products", [mlp, "--steps", "8"], plain),
            ("graphs", [mlp, "--steps", "8"], {}),
            ("same_as_the_cpu", [mlp, "--reference"], {}),
            ("bf16_and_attention", [gpt, "gpt_bf16", *small], {**plain, **builtin}),
            ("flash_attention", [gpt, "gpt_bf16", *small], plain),
            ("gpt_as_graphs", [gpt, "gpt_bf16", *small], {}),
            ("gpt_in_f32", [gpt, "gpt_f32", *small], {}),
        ]
        for number, (name, words, environment) in enumerate(rungs, 1):
            rung = f"rung{number}_{name}"
            if self.session.step(rung, 40, self.train(*words, out=rung), environment=environment):
                self.losses(rung)
                continue
            again = f"{rung}_sanitizer"
            self.session.step(again, 60, ["compute-sanitizer", "--print-limit", "5", *self.train(*words, out=again)], lines=8, environment={**environment, **plain})
            again = f"{rung}_logs"
            self.session.step(again, 30, self.train(*words, out=again), lines=8, environment={**environment, "CUDA_LAUNCH_BLOCKING": "1", "CUBLASLT_LOG_LEVEL": "2", "NCCL_DEBUG": "INFO"})
            return

    def losses(self, out):
        metrics = self.session.work / out / "metrics.jsonl"
        if metrics.exists():
            self.session.say("   losses " + " ".join(f"{json.loads(line)['loss']:.5f}" for line in metrics.read_text(encoding="utf-8").splitlines()[:12]))

    def gpt1b(self):
        """The number that matters, where its time goes, and the memory beside the plan."""
        sys.path.insert(0, str(HERE / "bench"))
        from measurements import MIB, MemoryInUse

        sizes = self.small if self.tiny else {}
        command = lambda out, steps, *more: self.train("bench/gpt_1b.pipe", "gpt_bf16", *definitions({**sizes, "steps": steps}), *more, out=out)
        with MemoryInUse(argparse.Namespace(device="cuda")) as memory:
            self.session.step("gpt1b", 45, command("gpt1b", 16, "--profile", self.session.work / "gpt1b.costs.json"), lines=6)
        metrics = self.session.work / "gpt1b" / "metrics.jsonl"
        if memory.most is not None and metrics.exists():
            planned = sum(json.loads(metrics.read_text(encoding="utf-8").splitlines()[-1])["peak_bytes"])
            self.session.say(f"   memory: {memory.most / MIB:,.0f} MiB in use, {planned / MIB:,.0f} MiB planned: context, kernels and libraries take {(memory.most - planned) / MIB:,.0f} MiB")
        self.session.step("gpt1b_any_order", 30, command("gpt1b_any_order", 16), environment={"PIPER_CUDA_DETERMINISTIC": "0"})
        self.session.step("gpt1b_plain", 30, command("gpt1b_plain", 12), environment={"PIPER_CUDA_GRAPHS": "0"})

    def ceilings(self):
        self.session.step("ceilings", 60, ["python3", "-B", "bench/ceilings.py", *(["--tiny"] if self.tiny else [])], lines=24)

    def counters(self):
        sizes = self.small if self.tiny else {"layers": 2}
        command = self.train("bench/gpt_1b.pipe", "gpt_bf16", *definitions({**sizes, "steps": 2}), out="counters")
        self.session.step("counters", 60, ["ncu", "--clock-control", "none", "--csv", "--page", "raw", "--launch-skip", "150", "-c", "260", "--metrics", COUNTERS, *command],
                          environment={"PIPER_CUDA_GRAPHS": "0"})

    def tests(self):
        self.session.step("gpu_test", 90, ["gpu_test", "--gtest_filter=-GpuDeathTest.*"], lines=6)
        self.session.step("gpu_kernel_test", 45, ["gpu_kernel_test", "--gtest_filter=*/1:KernelBlocks.*"], lines=4)

    def bench(self):
        parts = "launches,fused_bf16" if self.tiny else "launches,fused_bf16,gpt_bf16"
        limit = self.session.left() - 25
        self.session.step("bench", limit + 5, ["python3", "-B", "bench/bench_gpu.py", "--piper", shutil.which("piper") or "piper", "--out", self.session.work / "bench", "--parts", parts, "--limit", max(5, int(limit)),
                                               *(["--tiny"] if self.tiny else [])], lines=40)

    def death(self):
        self.session.step("gpu_death_test", 20, ["gpu_test", "--gtest_filter=GpuDeathTest.*"], lines=3)


PARTS = ("machine", "ladder", "gpt1b", "ceilings", "counters", "tests", "bench", "death")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--patience", type=float, help="factor of the limit of each step, which is that of a GPU [1, with --tiny 20]")
    parser.add_argument("--limit", type=float, default=560, help="seconds for all steps together")
    parser.add_argument("--out", default=os.environ.get("OUT", str(HERE / "out")), help="a folder for the two files; $OUT")
    parser.add_argument("--parts", default=",".join(PARTS), help="of " + ", ".join(PARTS))
    parser.add_argument("--tiny", action="store_true", help="small shapes")
    args = parser.parse_args()
    if args.patience is None:
        args.patience = 20 if args.tiny else 1
    unknown = [name for name in args.parts.split(",") if name not in PARTS]
    if unknown:
        parser.error(f"there is no part `{unknown[0]}`; parts are {', '.join(PARTS)}")
    return args


def main():
    args = arguments()
    out = pathlib.Path(args.out).resolve()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        print(f"first_minutes: `{args.out}` cannot be made a folder for results: {error.strerror}", file=sys.stderr)
        return USAGE
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        os.environ.update({"PIPER_STALL_SECONDS": "20", "PYTHONUNBUFFERED": "1"})
        os.environ.setdefault("XDG_CACHE_HOME", str(work / "cache"))
        os.environ.setdefault("NCCL_DEBUG", "WARN")
        session = Session(out, args.limit, work, patience=args.patience)

        def interrupted(*_):
            session.stop()
            session.pack()
            sys.exit(FAILED)

        signal.signal(signal.SIGTERM, interrupted)
        signal.signal(signal.SIGINT, interrupted)
        parts = Parts(session, args.tiny)
        for name in PARTS:
            if name in args.parts.split(","):
                getattr(parts, name)()
        session.say(f"first_minutes: {time.monotonic() - session.begun:.0f} s; failed: {', '.join(session.failed) or 'nothing'}; every output is in all.tgz", room=0)
        session.pack()
    return FAILED if session.failed else 0


if __name__ == "__main__":
    sys.exit(main())
