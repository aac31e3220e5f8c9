#!/usr/bin/env python3
"""Saves and loads the tensors of a checkpoint with torch.distributed.checkpoint, for checkpoint_bench.cpp.

    torch_checkpoint.py CHECKPOINT FOLDER RESULT    ->  RESULT: {"save_us": ..., "save_bytes": ..., "load_us": ..., "load_bytes": ...}

The bytes are the growth of resident memory at its peak. Ends with code 3 if there is no torch.
"""
import json
import pathlib
import sys
import time

try:
    import torch
    import torch.distributed.checkpoint as dcp
except ImportError:
    sys.exit(3)

TYPES = {"F32": torch.float32, "F64": torch.float64, "BF16": torch.bfloat16}


def tensors_of(path):
    """The tensors of a safetensors file."""
    content = bytearray(path.read_bytes())
    data = 8 + int.from_bytes(content[:8], "little")
    for name, entry in json.loads(content[8:data]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        count = (end - begin) // TYPES[entry["dtype"]].itemsize
        tensor = torch.frombuffer(content, dtype=TYPES[entry["dtype"]], count=count, offset=data + begin)
        yield name, tensor.reshape(entry["shape"]).clone()


def status_bytes(name):
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return 1024 * int(line.split()[1])
    return 0


def used_by(work):
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    before, begin = status_bytes("VmRSS"), time.perf_counter()
    work()
    took = time.perf_counter() - begin
    return int(1e6 * took), max(0, status_bytes("VmHWM") - before)


def main():
    checkpoint, folder, result = map(pathlib.Path, sys.argv[1:])
    state = {name: tensor for path in sorted(checkpoint.glob("*.safetensors")) for name, tensor in tensors_of(path)}
    save_us, save_bytes = used_by(lambda: dcp.save(state, checkpoint_id=folder))
    found = {name: torch.zeros_like(tensor) for name, tensor in state.items()}
    load_us, load_bytes = used_by(lambda: dcp.load(found, checkpoint_id=folder))
    if any(not torch.equal(found[name], tensor) for name, tensor in state.items()):
        sys.exit("the tensors that were loaded differ")
    result.write_text(json.dumps({"save_us": save_us, "save_bytes": save_bytes, "load_us": load_us, "load_bytes": load_bytes}))


main()
