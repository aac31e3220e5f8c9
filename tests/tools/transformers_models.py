"""Compares models of the library with those of Hugging Face's `transformers`, through files of weights.

    python3.11 -I -S tests/tools/transformers_models.py PIPER FOLDER [CASE...]

For each case a small checkpoint with random values is written by `transformers`. A program reads it by its map of names, trains
three steps, and exports the values after the first and the last one. The same steps run in PyTorch. Compared are the losses, the
gradients, the names of the exported tensors, and the loss of the exported folder, which `transformers` reads back.

The wheels are those of the group `transformers` (.deps/wheels.json). PyTorch's wheel links libraries of CUDA, which nothing
calls here: `stand_in_for_cuda` loads libraries of the same names without code, so that 2 GB of wheels need not be fetched.
"""

import collections
import ctypes
import json
import math
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS, BATCH, SEQ, VOCAB = 3, 4, 9, 37

# The libraries that PyTorch links, by the prefix of their functions.
CUDA_LIBRARIES = {
    "libcublas.so.13": "cublas(?!Lt)",
    "libcublasLt.so.13": "cublasLt",
    "libcudnn.so.9": "cudnn",
    "libcufft.so.12": "cufft",
    "libcufile.so.0": "cuFile",
    "libcurand.so.10": "curand",
    "libcusparse.so.12": "cusparse(?!Lt)",
    "libcusparseLt.so.0": "cusparseLt",
    "libnccl.so.2": "p?nccl",
    "libnvshmem_host.so.3": "nvshmem",
}


def tree(group):
    """The folder of the unpacked wheels of a group."""
    command = [sys.executable, str(ROOT / ".deps/fetch_wheels.py"), "--group", group, "--path"]
    return pathlib.Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())


def undefined_symbols(libraries):
    """Names with their versions, which may be empty."""
    text = subprocess.run(["nm", "-D", "--undefined-only", *map(str, libraries)], capture_output=True, text=True, check=True).stdout
    symbols = set()
    for line in text.splitlines():
        words = line.split()
        if len(words) == 2:
            name, _, version = words[1].partition("@")
            symbols.add((name, version.lstrip("@")))
    return symbols


def stand_in_for_cuda(wheels, folder):
    """Loads the real CUDA runtime, and libraries without code for the rest."""
    folder.mkdir()
    symbols = undefined_symbols(sorted((wheels / "torch/lib").glob("*.so")))
    runtime = tree("base") / "nvidia/cu13/lib"
    for library in ("libcudart.so.13", "libcupti.so.13"):
        ctypes.CDLL(str(runtime / library), ctypes.RTLD_GLOBAL)
    for library, prefix in CUDA_LIBRARIES.items():
        wanted = sorted(symbol for symbol in symbols if re.match(prefix, symbol[0]))
        source, script, built = (folder / (library + ending) for ending in (".c", ".map", ""))
        source.write_text("".join(f"void {name}(void) {{ __builtin_trap(); }}\n" for name, _ in wanted))
        command = ["gcc", "-shared", "-fPIC", "-w", "-fno-builtin", f"-Wl,-soname,{library}", "-o", str(built), str(source)]
        versions = collections.defaultdict(list)
        for name, version in wanted:
            if version:
                versions[version].append(name)
        if versions:
            script.write_text("".join(f"{version} {{ global: {'; '.join(names)}; }};\n" for version, names in versions.items()))
            command.append(f"-Wl,--version-script={script}")
        subprocess.run(command, check=True)
        ctypes.CDLL(str(built), ctypes.RTLD_GLOBAL)


class Case:
    def __init__(self, make, names, model, exact):
        self.make = make  # the configuration of `transformers`
        self.names, self.model = names, model
        self.exact = exact  # the largest difference in f64; `transformers` computes norms and rotary positions of some in f32


def llama_case(kind, names, tied=False, kv_heads=4, **more):
    sizes = dict(vocab_size=VOCAB, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
                 num_key_value_heads=kv_heads, tie_word_embeddings=tied, rms_norm_eps=1e-5, initializer_range=0.3, **more)
    arguments = f"layers: 2, dim: 16, heads: 4, vocab: {VOCAB}, hidden: 24, kv_heads: {kv_heads}, tied: {str(tied).lower()}"
    if "head_dim" in more:
        arguments += f", width: {more['head_dim']}"
    if names == "hf_qwen3":
        arguments += ", qk_norm: true"
    return Case(lambda library: getattr(library, kind)(**sizes), names, f"llama({arguments})", 2e-6)


CASES = {
    "gpt2": Case(lambda library: library.GPT2Config(vocab_size=VOCAB, n_positions=12, n_embd=16, n_layer=2, n_head=4, resid_pdrop=0.0,
                                                    embd_pdrop=0.0, attn_pdrop=0.0, initializer_range=0.3),
                 "hf_gpt2", f"gpt2(layers: 2, dim: 16, heads: 4, vocab: {VOCAB}, positions: 12)", 1e-11),
    "llama": llama_case("LlamaConfig", "hf_llama"),
    "llama_tied": llama_case("LlamaConfig", "hf_llama", tied=True),
    "llama_grouped": llama_case("LlamaConfig", "hf_llama", kv_heads=2),
    "qwen3": llama_case("Qwen3Config", "hf_qwen3", tied=True, kv_heads=2, head_dim=6),
    "mistral": llama_case("MistralConfig", "hf_mistral", kv_heads=1, sliding_window=None),
}

PROGRAM = """use std.models.gpt2
use std.models.llama
use std.names.{names}
mesh one(d: 1)
train tuned = {model} on one {{
    data:       arrays("data.safetensors", batch: {batch}, seq: {seq}, sampling: epoch)
    optim:      sgd(lr: {rate}, momentum: 0.9)
    steps:      {steps}
    dtype:      {dtype}
    init:       weights("base", names: {names})
    checkpoint: every(1)
}}
"""
RATE = 0.5


class Comparison:
    """One case in one type."""

    def __init__(self, piper, folder, name, dtype):
        self.piper, self.folder, self.case, self.dtype = piper, folder, CASES[name], dtype
        self.title = f"{name} {dtype}"
        self.bound = self.case.exact if dtype == "f64" else 1e-5
        self.wrong, self.largest = [], 0.0

    def run_piper(self, *words):
        environment = dict(os.environ, PIPER_MATH="builtin")
        result = subprocess.run([self.piper, *words], cwd=self.folder, env=environment, capture_output=True, text=True)
        if result.returncode != 0:
            sys.exit(f"{self.title}: piper {' '.join(words)}\n{result.stdout}{result.stderr}")
        return result.stdout

    def check(self, quantity, difference, scale=1.0):
        self.largest = max(self.largest, difference / scale)
        if not difference <= self.bound * scale:
            self.wrong.append(f"{quantity} differs by {difference:.3g}, and {self.bound * scale:.3g} is allowed")

    def make_files(self):
        torch.manual_seed(sum(map(ord, self.title)))
        model = transformers.AutoModelForCausalLM.from_config(self.case.make(transformers), attn_implementation="eager")
        for parameter in model.parameters():  # gains and biases begin with one value
            parameter.data += 0.1 * torch.randn_like(parameter)
        model.eval()
        model.save_pretrained(self.folder / "base")
        tokens = torch.randint(VOCAB, (BATCH, SEQ + 1))
        safetensors.torch.save_file({"tokens": tokens[:, :-1].contiguous(), "targets": tokens[:, 1:].contiguous()},
                                    str(self.folder / "data.safetensors"))
        self.tokens = tokens
        (self.folder / "tuned.pipe").write_text(PROGRAM.format(names=self.case.names, model=self.case.model, batch=BATCH, seq=SEQ,
                                                               rate=RATE, steps=STEPS, dtype=self.dtype))
        return model.double() if self.dtype == "f64" else model

    def loss(self, model):
        logits = model(input_ids=self.tokens[:, :-1]).logits
        return torch.nn.functional.cross_entropy(logits.reshape(-1, VOCAB), self.tokens[:, 1:].reshape(-1))

    def train_torch(self, model):
        """The losses, the gradients of the first step, and the loss after the last one."""
        optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9)
        losses, gradients = [], {}
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = self.loss(model)
            loss.backward()
            losses.append(loss.item())
            gradients = gradients or {name: p.grad.clone() for name, p in model.named_parameters()}
            optimizer.step()
        return losses, gradients, self.loss(model).item()

    def exported(self, step):
        self.run_piper("export", f"run:{step}", "--names", self.case.names, "--program", "tuned.pipe", "-o", f"step{step}")
        return safetensors.torch.load_file(str(self.folder / f"step{step}/model.safetensors"))

    def run(self):
        model = self.make_files()
        before = {name: p.detach().clone() for name, p in model.named_parameters()}
        losses, gradients, last_loss = self.train_torch(model)
        said = self.run_piper("train", "tuned.pipe", "--interpret", "--out", "run")
        if "not read" in said or "not compared" in said or "first values" in said:
            self.wrong.append(f"the run says {said}")
        lines = [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()]
        for step, (expected, line) in enumerate(zip(losses, lines, strict=True), 1):
            self.check(f"the loss of step {step}", abs(expected - line["loss"]), max(1.0, expected))
        first = self.exported(1)
        stored = safetensors.torch.load_file(str(self.folder / "base/model.safetensors"))
        if first.keys() != stored.keys():
            self.wrong.append(f"other tensors: {sorted(first.keys() ^ stored.keys())}")
        smallest = 6e-8 if self.dtype == "f32" else 1.2e-16
        for name, gradient in gradients.items():
            # The export has the parameter after the step, rounded.
            found = (before[name] - first[name].to(gradient.dtype)) / RATE
            rounding = 4 * smallest * before[name].abs().max().item() / RATE
            difference = (found - gradient).abs().max().item()
            self.check(f"the gradient of {name}", max(0.0, difference - rounding), gradient.abs().max().item())
        self.exported(STEPS)
        again, info = transformers.AutoModelForCausalLM.from_pretrained(
            self.folder / f"step{STEPS}", attn_implementation="eager", output_loading_info=True)
        unread = {kind: keys for kind, keys in info.items() if keys}
        if unread:
            self.wrong.append(f"transformers reads the export with {unread}")
        if type(again) is not type(model):
            self.wrong.append(f"transformers reads the export as {type(again).__name__}")
        again = again.eval().double() if self.dtype == "f64" else again.eval().float()
        self.check("the loss of the export", abs(self.loss(again).item() - last_loss), max(1.0, last_loss))
        if not math.isfinite(last_loss) or last_loss >= losses[0]:
            self.wrong.append(f"training does not lower the loss: {losses}, {last_loss}")
        print(f"{self.title}: {'; '.join(self.wrong) or f'equal up to {self.largest:.1g}'}", flush=True)
        return not self.wrong


def main():
    global torch, transformers, safetensors
    piper, folder = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    wheels = tree("transformers")
    stand_in_for_cuda(wheels, folder / "cuda")
    sys.path.insert(0, str(wheels))
    os.environ["HF_HUB_OFFLINE"] = "1"
    import safetensors.torch
    import torch
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    equal = True
    for name in sys.argv[3:] or CASES:
        for dtype in ("f32", "f64"):
            case = folder / f"{name}_{dtype}"
            case.mkdir()
            equal = Comparison(piper, case, name, dtype).run() and equal
    sys.exit(0 if equal else 1)


if __name__ == "__main__":
    main()
