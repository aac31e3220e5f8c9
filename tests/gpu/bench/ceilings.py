#!/usr/bin/env python3
"""Limits at the shapes of gpt_1b.pipe, by PyTorch: a copy on the device, products in bf16, attention by each of its libraries, forward and gradient.

    ceilings.py [--tiny] [--device cpu]

Exit 4 if PyTorch or its device is missing.
"""

import argparse
import sys
import time

try:
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ImportError as error:
    print(f"PyTorch is not here: {error}", file=sys.stderr)
    sys.exit(4)

# Rows, columns and depth of the products of a step: forward, and gradients of weights.
PRODUCTS = ((16384, 2048, 2048), (16384, 6144, 2048), (16384, 8192, 2048), (16384, 2048, 8192), (16384, 32768, 2048), (2048, 2048, 16384), (2048, 8192, 16384), (2048, 32768, 16384))


def seconds(work, device, times=10):
    for _ in range(3):
        work()
    if device == "cpu":
        begun = time.perf_counter()
        for _ in range(times):
            work()
        return (time.perf_counter() - begun) / times
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    first.record()
    for _ in range(times):
        work()
    last.record()
    torch.cuda.synchronize()
    return 1e-3 * first.elapsed_time(last) / times


def copies(device, elements):
    source = torch.ones(elements, device=device)
    target = torch.empty_like(source)
    print(f"copy: {2e-9 * source.nbytes / seconds(lambda: target.copy_(source), device):,.0f} GB/s read and written", flush=True)


def products(device, shapes):
    for m, n, k in shapes:
        a, b = (torch.randn(*shape, device=device, dtype=torch.bfloat16) for shape in ((m, k), (k, n)))
        out = torch.empty(m, n, device=device, dtype=torch.bfloat16)
        print(f"product {m} x {n} x {k}: {2e-12 * m * n * k / seconds(lambda: torch.mm(a, b, out=out), device):,.0f} TFLOP/s", flush=True)


def attention(device, batch, seq, heads, width, names):
    q, k, v = (torch.randn(batch, seq, heads, width, device=device, dtype=torch.bfloat16).transpose(1, 2).requires_grad_() for _ in range(3))
    for name, deterministic in names:
        torch.use_deterministic_algorithms(deterministic)
        what = f"{name}{', gradients in one order' if deterministic else ''}"
        try:
            with sdpa_kernel(getattr(SDPBackend, name)):
                forward = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)
                out = forward()
                change = torch.randn_like(out)
                times = seconds(forward, device), seconds(lambda: torch.autograd.grad(out, (q, k, v), change, retain_graph=True), device)
            print(f"{what}: forward {1e3 * times[0]:.3f} ms, gradient {1e3 * times[1]:.3f} ms", flush=True)
        except RuntimeError as error:  # not for this device or shape
            print(f"{what}: {str(error).splitlines()[0]}", flush=True)
    torch.use_deterministic_algorithms(False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true")
    args = parser.parse_args()
    if args.device == "cuda" and not torch.cuda.is_available():
        print("PyTorch finds no GPU", file=sys.stderr)
        sys.exit(4)
    copies(args.device, 1 << 10 if args.tiny else 1 << 28)
    products(args.device, ((32, 16, 8),) if args.tiny else PRODUCTS)
    attention(args.device, *((1, 16, 2, 16) if args.tiny else (8, 2048, 16, 128)),
              (("FLASH_ATTENTION", False), ("FLASH_ATTENTION", True), ("CUDNN_ATTENTION", False), ("CUDNN_ATTENTION", True)))


if __name__ == "__main__":
    main()
