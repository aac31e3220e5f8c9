"""The parts of `make bench-gpu`: each starts piper and PyTorch as a user would, and reads their output."""

import ctypes
import dataclasses
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import threading
import time

from figures import Figure

HERE = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20

# Dense matrix products per second, without sparsity: data sheets. f32 is plain f32 arithmetic, without TF32.
PEAKS = {
    "H200": {"bf16": 989e12, "f32": 67e12},
    "H100 PCIe": {"bf16": 756e12, "f32": 51e12},
    "H100": {"bf16": 989e12, "f32": 67e12},
    "A100": {"bf16": 312e12, "f32": 19.5e12},
    "B200": {"bf16": 2250e12, "f32": 75e12},
}


class Failed(Exception):
    """A part that should give a figure gives none."""


class Skipped(Exception):
    """A part gives no figure, because something that it needs is missing."""


@dataclasses.dataclass
class Ended:
    out: str
    seconds: float
    cpu_seconds: float


@dataclasses.dataclass
class Machine:
    piper: str
    python: str
    out: pathlib.Path
    device: str
    tiny: bool
    name: str
    deadline: float = 0
    started: int = 0

    def run(self, words, what, environment=None):
        """Runs a command to its end; Failed with its last line if it fails."""
        self.started += 1
        log = self.out / "logs" / f"{self.started:02}-{re.sub('[^a-z0-9_]+', '-', what.lower())}.txt"
        left = self.deadline - time.monotonic()
        if left <= 1:
            raise Failed(f"{what}: the part's time is spent")
        begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        with open(log, "w", encoding="utf-8") as errors:
            try:
                ended = subprocess.run(words, stdout=subprocess.PIPE, stderr=errors, text=True, timeout=left, env={**os.environ, **(environment or {})}, check=False)
            except subprocess.TimeoutExpired:
                raise Failed(f"{what} took longer than the {left:.0f} s that were left (log: {log})") from None
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        with open(log, "a", encoding="utf-8") as all_of_it:
            all_of_it.write(ended.stdout)
        if ended.returncode != 0:
            lines = [line for line in log.read_text(encoding="utf-8").splitlines() if line.strip()]
            told = next((line for line in lines if " error" in line or "Error" in line), lines[-1] if lines else "nothing was said")
            if ended.returncode == 4 and words[0] == self.python:
                raise Skipped(told)
            raise Failed(f"{what} ended with {ended.returncode}: {told[:300]} (log: {log})")
        return Ended(ended.stdout, time.monotonic() - begun, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)

    def train(self, file, train, sizes, environment=None, profile=False):
        """A run of `piper train`: steps as in its metrics, and with `profile` the results of `--profile` for the last one."""
        folder = self.out / "runs" / f"{self.started + 1:02}-{train}"
        words = [self.piper, "train", str(HERE / file), train, "--device", self.device, "--format", "json", "--out", str(folder)]
        for name, value in sizes.items():
            words += ["-D", f"{name}={value}"]
        if profile:
            words += ["--profile", str(folder) + ".costs.json"]
        environment = dict(environment or {})
        if self.tiny:
            words.append("--interpret")
            environment["PIPER_MATH"] = "builtin"
        ended = self.run(words, f"piper train {train}", environment)
        lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        steps = [json.loads(line) for line in lines]
        told = json.loads(ended.out)
        return Run(steps, told, ended.cpu_seconds, json.loads(pathlib.Path(str(folder) + ".costs.json").read_text(encoding="utf-8")) if profile else None)

    def torch(self, words, what):
        return json.loads(self.run([self.python, str(HERE / "torch_gpt.py"), *words, "--device", self.device], what).out)


@dataclasses.dataclass
class Run:
    steps: list
    told: dict
    cpu_seconds: float
    costs: dict | None

    def seconds(self, warm=4):
        """Seconds per step, over all but the first, which warm up and are captured, and a last one that was timed action by action. Two are in flight at a time, so one alone says little."""
        steps = self.steps[:-1] if self.costs is not None and len(self.steps) > 1 else self.steps
        return statistics.mean(step["seconds"] for step in steps[min(warm, len(steps) - 1):])

    def peak_bytes(self):
        return sum(self.steps[-1]["peak_bytes"])

    def last_step(self):
        """Seconds of products, attention, kernels and so on, over all ranks."""
        return {key: sum(rank[key] for rank in self.told["last_step"]) for key in ("seconds", "products", "attention", "kernels", "communication", "idle")}


class MemoryInUse:
    """The maximum memory in use on the device, by `nvidia-smi`: the plan, and everything outside it."""

    def __init__(self, machine):
        self.most = None
        self.base = self.read() if machine.device == "cuda" else None
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    @staticmethod
    def read():
        try:
            told = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], capture_output=True, text=True, timeout=10, check=True)
            return int(told.stdout.split()[0]) * MIB
        except (OSError, ValueError, IndexError, subprocess.SubprocessError):
            return None

    def watch(self):
        while True:
            used = self.read()
            if used is not None:
                self.most = max(self.most or 0, used - self.base)
            if self.ends.wait(0.5):
                return

    def __enter__(self):
        if self.base is not None:
            self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        if self.thread.is_alive():
            self.thread.join()


# ---- a GPT of one G parameters beside PyTorch

GPT = {"layers": 18, "dim": 2048, "heads": 16, "vocab": 32768, "seq_length": 2048, "sequences": 8, "steps": 24}
TINY_GPT = {"layers": 1, "dim": 32, "heads": 2, "vocab": 64, "seq_length": 16, "sequences": 2, "steps": 6}


def flops_per_token(sizes):
    """PaLM (Chowdhery et al. 2022), appendix B: 6 N + 12 L H Q T. N: weights that multiply, without lookup tables; all scores count, though half are masked."""
    layers, dim, vocab, seq = (sizes[key] for key in ("layers", "dim", "vocab", "seq_length"))
    return 6 * (12 * layers * dim * dim + vocab * dim) + 12 * layers * dim * seq


def peak_of(name, dtype):
    return next((peaks[dtype] for device, peaks in PEAKS.items() if device in name), None)


def utilisation(machine, dtype, sizes, tokens_per_second, who, goal=None):
    peak = peak_of(machine.name, dtype)
    if peak is None:
        return []
    share = 100 * tokens_per_second * flops_per_token(sizes) / peak
    return [Figure(f"{who}, model FLOP utilisation", share, "%", goal=goal, note=f"(6 N + 12 L H Q T) x tokens/s over {peak / 1e12:g} TFLOP/s")]


def gpt(machine, dtype, changes, goals, compiles):
    sizes = {**(TINY_GPT if machine.tiny else GPT), **({} if machine.tiny else changes)}
    with MemoryInUse(machine) as memory:
        run = machine.train("gpt_1b.pipe", f"gpt_{dtype}", sizes, profile=True)
    tokens = sizes["sequences"] * sizes["seq_length"]
    speeds = {"piper": tokens / run.seconds()}
    yield Figure(f"piper {dtype}", speeds["piper"], "tokens/s", note=f"{run.seconds() * 1e3:.1f} ms a step of {tokens} tokens, loss {run.steps[0]['loss']:.3f} -> {run.steps[-1]['loss']:.3f}")
    yield from utilisation(machine, dtype, sizes, speeds["piper"], "piper", goals.get("utilisation"))
    if dtype == "bf16":
        # PyTorch's flash attention adds its gradients in any order by default, piper's in one.
        any_order = "piper, attention adds in any order"
        speeds[any_order] = tokens / machine.train("gpt_1b.pipe", f"gpt_{dtype}", sizes, {"PIPER_CUDA_DETERMINISTIC": "0"}).seconds()
        yield Figure(any_order, speeds[any_order], "tokens/s", note="PIPER_CUDA_DETERMINISTIC=0")
        yield from utilisation(machine, dtype, sizes, speeds[any_order], any_order)
    yield Figure("piper, planned memory", run.peak_bytes() / MIB, "MiB")
    if memory.most is not None:
        yield Figure("piper, memory in use by nvidia-smi", memory.most / MIB, "MiB", note="with all that lies outside the plan: context, scratch of products, kernels")
    parts = run.last_step()
    for key in ("products", "attention", "kernels", "idle"):
        yield Figure(f"piper, {key} of a step action by action", 1e3 * parts[key], "ms")
    words = ["train", "--dtype", dtype]
    for name, value in sizes.items():
        words += [f"--{name.replace('_', '-')}", str(value)]
    eager = machine.torch(words, f"PyTorch eager {dtype}")
    yield from beside(machine, dtype, sizes, speeds, eager, "eager PyTorch", goals.get("eager"))
    if compiles and not machine.tiny:
        compiled = machine.torch([*words, "--compile"], f"torch.compile {dtype}")
        yield from beside(machine, dtype, sizes, speeds, compiled, "torch.compile", goals.get("compile"))


def beside(machine, dtype, sizes, speeds, torch, who, goal):
    other = torch["tokens_per_second"]
    yield Figure(f"{who} {dtype}", other, "tokens/s", note=f"torch {torch['torch']}, {torch['parameters'] / 1e6:,.3f} M parameters, loss {torch['loss']:.3f}")
    yield from utilisation(machine, dtype, sizes, other, who)
    if torch["peak_bytes"]:
        yield Figure(f"{who}, peak memory", torch["peak_bytes"] / MIB, "MiB", note="as its allocator counts")
    for ours, speed in speeds.items():
        yield Figure(f"{ours} to {who}", speed / other, "", goal=goal)


def gpt_bf16(machine):
    yield from gpt(machine, "bf16", {}, {"utilisation": 50, "eager": 1.3, "compile": 1.0}, compiles=True)


def gpt_f32(machine):
    yield from gpt(machine, "f32", {"sequences": 2, "steps": 10}, {}, compiles=False)


# ---- actions

def launches(machine):
    """With graphs and without, at two numbers of steps: the difference between these is steps alone."""
    few, many = (20, 60) if machine.tiny else (200, 2000)
    sizes = {"layers": 2, "microbatches": 2} if machine.tiny else {}
    program = machine.run([machine.piper, "show", "program", str(HERE / "launches.pipe"), "--device", "cuda", *[word for name, value in sizes.items() for word in ("-D", f"{name}={value}")]],
                          "show program launches").out
    actions = int(re.search(r": (\d+) actions", program).group(1))
    kernels = sum(line.split()[0] in ("launch", "memset", "cublasLt") for line in program.splitlines() if line.startswith("    "))
    for graphs, goal in ((1, 2.0), (0, None)):
        runs = [machine.train("launches.pipe", "many", {**sizes, "steps": steps}, {"PIPER_CUDA_GRAPHS": str(graphs)}) for steps in (few, many)]
        kind = "graphs" if graphs else "action by action"
        wall = 1e6 * runs[1].seconds() / actions
        yield Figure(f"{kind}, a step over its {actions} actions", wall, "us", goal=goal, at_most=True, note=f"the device's time of {kernels} small kernels included")
        yield Figure(f"{kind}, CPU time of an action", 1e6 * max(0.0, runs[1].cpu_seconds - runs[0].cpu_seconds) / (actions * (many - few)), "us", note="of all threads, waiting included")


# ---- memory

def copy_speed(machine):
    """Bytes read and written per second by a copy on the device."""
    if machine.device == "cuda":
        return machine.torch(["copy"], "PyTorch copy")["bytes_per_second"]
    size = 8 * MIB
    source, target = ctypes.create_string_buffer(size), ctypes.create_string_buffer(size)
    times = []
    for _ in range(5):
        begun = time.monotonic()
        ctypes.memmove(target, source, size)
        times.append(time.monotonic() - begun)
    return 2 * size / statistics.median(times)


def kernel_actions(machine, train, sizes):
    """Per action of the only rank that consists of kernels alone: their names and their bytes, from the table that `build` gives."""
    words = [str(HERE / "fused.pipe"), train, "--device", "cuda", *[word for name, value in sizes.items() for word in ("-D", f"{name}={value}")]]
    folder = machine.out / "runs" / f"{machine.started + 1:02}-{train}-kernels"
    built = json.loads(machine.run([machine.piper, "build", *words, "-o", str(folder), "--format", "json"], f"piper build {train}").out)
    size_of = {kernel["name"]: kernel["bytes"] for kernel in built["cuda_kernels"]}
    actions, others = {}, set()
    action = None
    for line in machine.run([machine.piper, "show", "program", *words], f"show program {train}").out.splitlines():
        if found := re.match(r"  \w\S* \d+  (\S+)  ", line):
            action = found.group(1)
        elif found := re.match(r"    launch +(\w+)<<<", line):
            actions.setdefault(action, []).append(found.group(1))
        elif line.startswith("    ") and line.split()[0] != "check":
            others.add(action)
    return {name: (kernels, sum(size_of[kernel] for kernel in kernels)) for name, kernels in actions.items() if name not in others}


def seconds_of(costs, action):
    """In a cost file a body has its own name: `F.stage0` is `stage0.F`."""
    name, _, of = action.partition(".")
    return costs["actions"].get(action, costs["bodies"].get(f"{of}.{name}"))


def fused(machine, dtype):
    sizes = {"sequences": 2, "seq_length": 8, "dim": 16, "classes": 8} if machine.tiny else {}
    train = f"kernels_{dtype}"
    copy = copy_speed(machine)
    yield Figure("copy on the device", copy / 1e9, "GB/s", note="bytes read and written")
    costs = machine.train("fused.pipe", train, sizes, profile=True).costs
    least = 0 if machine.tiny else 256 * MIB
    for action, (kernels, moved) in kernel_actions(machine, train, sizes).items():
        seconds = seconds_of(costs, action)
        if moved < least or not seconds:
            continue
        speed = moved / seconds
        yield Figure(f"{dtype} {action}", 100 * speed / copy, "% of the copy", goal=85, note=f"{', '.join(kernels)}: {moved / MIB:,.0f} MiB at {speed / 1e9:,.0f} GB/s")


def fused_f32(machine):
    yield from fused(machine, "f32")


def fused_bf16(machine):
    yield from fused(machine, "bf16")


# ---- ranks

def loopback(machine):
    sizes = {"layers": 4, "dim": 16, "heads": 2, "vocab": 32, "seq_length": 8, "microbatches": 4, "sequences": 8, "steps": 6} if machine.tiny else {}
    runs = {train: machine.train("pipeline.pipe", train, sizes, profile=True) for train in ("whole", "four")}
    for train, what in (("whole", "one rank"), ("four", "four ranks, 1F1B")):
        run = runs[train]
        yield Figure(what, run.steps[-1]["tokens_per_second"] * run.steps[-1]["seconds"] / run.seconds(), "tokens/s", note=f"loss {run.steps[-1]['loss']:.4f}, {run.peak_bytes() / MIB:,.0f} MiB planned")
    yield Figure("four ranks to one", runs["whole"].seconds() / runs["four"].seconds(), "", note="on one device nothing is gained by four: what is lost is the cost of messages and waiting")
    losses = [run.steps[-1]["loss"] for run in runs.values()]
    difference = abs(losses[0] - losses[1]) / (max(map(abs, losses)) or 1)
    if difference > 1e-3:
        raise Failed(f"the losses come apart: {losses[0]} and {losses[1]}")
    yield Figure("losses of both, relative difference", difference, "", goal=1e-3, at_most=True)


@dataclasses.dataclass
class Part:
    what: str
    limit: float  # seconds
    measure: object


PARTS = {
    "launches": Part("what it costs to launch an action", 60, launches),
    "fused_f32": Part("fused kernels of f32 beside copies of memory", 60, fused_f32),
    "fused_bf16": Part("the same of bf16", 60, fused_bf16),
    "loopback": Part("a pipeline of four ranks on one device", 60, loopback),
    "gpt_bf16": Part("a GPT of 1.04 G parameters in bf16, beside PyTorch", 250, gpt_bf16),
    "gpt_f32": Part("the same in f32, 2 samples a step", 110, gpt_f32),
}
