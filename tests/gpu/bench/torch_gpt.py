#!/usr/bin/env python3
"""The model of gpt_1b.pipe in PyTorch, and copies of device memory: the baseline of `make bench-gpu`.

    torch_gpt.py train --device cuda --dtype bf16 --layers 18 --dim 2048 --heads 16 --vocab 32768 --seq-length 2048 --sequences 8 --steps 20 [--compile]
    torch_gpt.py copy --device cuda --bytes 1073741824

Prints one JSON object. bf16: parameters and activations of 16 bits, gradients and moments of f32 beside f32 master weights, as in piper. f32: without TF32, as in piper.
Exit 4 if PyTorch or its device is missing.
"""

import argparse
import json
import statistics
import sys
import time

try:
    import torch
    import torch.nn.functional as F
    from torch import nn
except ImportError as error:
    print(f"PyTorch is not here: {error}", file=sys.stderr)
    sys.exit(4)


class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.gain, eps=1e-5)


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([Norm(dim), Norm(dim)])
        self.q, self.k, self.v, self.out = (nn.Linear(dim, dim, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(dim, 4 * dim, bias=False), nn.Linear(4 * dim, dim, bias=False)

    def forward(self, x):
        batch, seq, dim = x.shape
        h = self.norms[0](x)
        q, k, v = (project(h).view(batch, seq, self.heads, dim // self.heads).transpose(1, 2) for project in (self.q, self.k, self.v))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, seq, dim))
        return x + self.down(F.gelu(self.up(self.norms[1](x))))


class Gpt(nn.Module):
    def __init__(self, layers, dim, heads, vocab, seq):
        super().__init__()
        self.token = nn.Embedding(vocab, dim)
        self.position = nn.Parameter(0.02 * torch.randn(seq, dim))
        self.blocks = nn.ModuleList([Block(dim, heads) for _ in range(layers)])
        self.norm = Norm(dim)
        self.out = nn.Linear(dim, vocab, bias=False)
        nn.init.normal_(self.token.weight, std=0.02)

    def forward(self, tokens, targets):
        x = self.token(tokens) + self.position
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.out(self.norm(x)).flatten(0, 1), targets.flatten())


class Optimizer:
    """AdamW on f32 master weights, with clipping; for an f32 model on its parameters themselves."""

    def __init__(self, parameters, narrow, fused):
        self.parameters = parameters
        self.masters = [p.detach().float().clone() for p in parameters] if narrow else parameters
        self.gradients = [torch.zeros_like(m) for m in self.masters] if narrow else None
        self.adamw = torch.optim.AdamW(self.masters, lr=1e-4, weight_decay=0.1, fused=fused)

    def step(self):
        if self.gradients is not None:
            torch._foreach_copy_(self.gradients, [p.grad for p in self.parameters])
            for master, gradient in zip(self.masters, self.gradients):
                master.grad = gradient
        nn.utils.clip_grad_norm_(self.masters, 1.0, foreach=True)
        self.adamw.step()
        with torch.no_grad():
            if self.gradients is not None:
                torch._foreach_copy_(self.parameters, self.masters)
        for parameter in self.parameters:
            parameter.grad = None


def synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


def train(args):
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    narrow = args.dtype == "bf16"
    dtype = torch.bfloat16 if narrow else torch.float32
    with torch.device(args.device):
        model = Gpt(args.layers, args.dim, args.heads, args.vocab, args.seq_length).to(dtype)
    parameters = list(model.parameters())
    optimizer = Optimizer(parameters, narrow, fused=args.device == "cuda")
    step_of = torch.compile(model) if args.compile else model
    seconds, loss = [], None
    for step in range(args.steps):
        tokens, targets = (torch.randint(args.vocab, (args.sequences, args.seq_length), device=args.device) for _ in range(2))
        synchronize(args.device)
        start = time.perf_counter()
        loss = step_of(tokens, targets)
        loss.backward()
        optimizer.step()
        synchronize(args.device)
        seconds.append(time.perf_counter() - start)
        if step == 0 or step + 1 == args.steps:
            print(f"step {step + 1}/{args.steps}  loss {loss.item():.4f}  {seconds[-1]:.3f} s", file=sys.stderr, flush=True)
    later = seconds[min(args.warm, len(seconds) - 1):]
    return {
        "parameters": sum(p.numel() for p in parameters),
        "tokens_per_second": args.sequences * args.seq_length / statistics.mean(later),
        "seconds": seconds,
        "loss": loss.item(),
        "peak_bytes": torch.cuda.max_memory_allocated() if args.device == "cuda" else None,
        "torch": torch.__version__,
    }


def copy(args):
    source = torch.ones(args.bytes // 4, device=args.device)
    target = torch.empty_like(source)
    seconds = []
    for _ in range(12):
        synchronize(args.device)
        start = time.perf_counter()
        for _ in range(args.copies):
            target.copy_(source)
        synchronize(args.device)
        seconds.append((time.perf_counter() - start) / args.copies)
    return {"bytes_per_second": 2 * args.bytes / statistics.median(seconds[2:]), "bytes": args.bytes, "torch": torch.__version__}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("train", "copy"))
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--dtype", choices=("bf16", "f32"), default="bf16")
    parser.add_argument("--compile", action="store_true")
    for name, default in (("layers", 18), ("dim", 2048), ("heads", 16), ("vocab", 32768), ("seq-length", 2048), ("sequences", 8), ("steps", 20), ("warm", 4), ("bytes", 1 << 30), ("copies", 10)):
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()


def main():
    args = arguments()
    if args.device == "cuda" and not torch.cuda.is_available():
        print("PyTorch finds no GPU", file=sys.stderr)
        sys.exit(4)
    print(json.dumps(train(args) if args.what == "train" else copy(args)))


if __name__ == "__main__":
    main()
