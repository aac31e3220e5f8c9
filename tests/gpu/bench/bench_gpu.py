#!/usr/bin/env python3
"""`make bench-gpu`: measures programs of this folder on a GPU, beside PyTorch and beside copies of memory (tests/gpu/README.md).

    bench_gpu.py --piper build/release/piper --out build/bench-gpu
    bench_gpu.py --piper build/debug/piper --out /tmp/bench --device cpu --tiny     # the same parts in a few seconds, for their form alone
    bench_gpu.py ... --parts gpt,launches                                           # some

Writes OUT/bench.json and OUT/bench.md, and the outputs of all commands into OUT/logs. Each part has a limit, all of them together --limit seconds; a part that fails gives the reason, and
the others go on.

Exit codes: 0 all parts gave their figures; 1 one of them failed; 2 wrong usage; 3 there is no GPU, no driver, or a library of CUDA is missing.
"""

import argparse
import datetime
import json
import pathlib
import subprocess
import sys
import time

from figures import Figure, markdown, table
from measurements import PARTS, Failed, Machine, Skipped

FAILED, USAGE, NO_GPU = 1, 2, 3
NEEDED = ("NVIDIA driver", "NVRTC", "cuBLASLt")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--piper", required=True, help="the program")
    parser.add_argument("--out", required=True, help="a folder for results")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true", help="small shapes and few steps: figures without meaning")
    parser.add_argument("--python", default=sys.executable, help="the Python that has PyTorch")
    parser.add_argument("--parts", default=",".join(PARTS), help="of " + ", ".join(PARTS))
    parser.add_argument("--limit", type=float, default=530, help="seconds for all parts together")
    args = parser.parse_args()
    unknown = [name for name in args.parts.split(",") if name not in PARTS]
    if unknown:
        parser.error(f"there is no part `{unknown[0]}`; parts are {', '.join(PARTS)}")
    return args


def doctor(piper):
    """The findings of `piper doctor`: the name of the device and the missing parts."""
    told = json.loads(subprocess.run([piper, "doctor", "--format", "json"], check=True, capture_output=True, text=True).stdout)
    if not isinstance(told, dict) or not all(isinstance(told.get(key), list) for key in ("libraries", "gpus")):
        raise ValueError("it lists no libraries and GPUs")
    missing = [f"{each['name']}: {each['reason']}" for each in told["libraries"] if each["name"] in NEEDED and not each["found"]]
    if not missing and not told["gpus"]:
        missing.append("the driver lists no GPU")
    driver = next((each.get("version", "") for each in told["libraries"] if each["name"] == "NVIDIA driver"), "")
    return (told["gpus"][0]["name"] if told["gpus"] else ""), driver, missing


def run_part(name, machine, deadline):
    part = PARTS[name]
    begun = time.monotonic()
    machine.deadline = min(begun + part.limit, deadline)
    told = {"name": name, "what": part.what, "figures": []}
    print(f"\n{name}: {part.what} (at most {machine.deadline - begun:.0f} s)", flush=True)
    try:
        if machine.deadline - begun < 5:
            raise Failed("the limit of all parts is spent")
        for figure in part.measure(machine):
            told["figures"].append(figure)
            print("  " + figure.line(), flush=True)
        told["status"] = "measured"
    except Skipped as reason:
        told["status"], told["reason"] = "skipped", str(reason)
    except Failed as reason:
        told["status"], told["reason"] = "failed", str(reason)
    except (KeyError, ValueError, IndexError, OSError, ZeroDivisionError) as error:  # a program printed something unexpected
        told["status"], told["reason"] = "failed", f"{type(error).__name__}: {error}"
    told["seconds"] = time.monotonic() - begun
    if told["status"] != "measured":
        print(f"  {told['status']}: {told['reason']}", flush=True)
    return told


def main():
    args = arguments()
    piper = str(pathlib.Path(args.piper).resolve())
    try:
        device, driver, missing = doctor(piper)
    except (OSError, subprocess.CalledProcessError, ValueError, KeyError, TypeError) as error:
        print(f"bench-gpu: `{args.piper} doctor` does not say what is here: {type(error).__name__}: {error}", file=sys.stderr)
        return USAGE
    if args.device == "cuda" and missing:
        print(f"bench-gpu: nothing was measured, this machine lacks {'; '.join(missing)}", file=sys.stderr)
        return NO_GPU
    name = device if args.device == "cuda" else "the CPU"
    out = pathlib.Path(args.out).resolve()
    try:
        (out / "logs").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        print(f"bench-gpu: `{args.out}` cannot be made a folder for results: {error.strerror}", file=sys.stderr)
        return USAGE
    machine = Machine(piper=piper, python=args.python, out=out, device=args.device, tiny=args.tiny, name=name)
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    print(f"{name}{', CUDA ' + driver.removeprefix('CUDA ') if args.device == 'cuda' else ''}, {date}{', tiny: figures mean nothing' if args.tiny else ''}", flush=True)
    deadline = time.monotonic() + args.limit
    told = [run_part(part, machine, deadline) for part in args.parts.split(",")]
    command = "make bench-gpu" if args.device == "cuda" and not args.tiny else "bench_gpu.py " + " ".join(sys.argv[1:])
    heading = {"date": date, "device": name, "driver": driver, "command": command, "tiny": args.tiny}
    (out / "bench.json").write_text(json.dumps({"schema": 1, **heading, "parts": told}, indent=1, default=Figure.as_json) + "\n", encoding="utf-8")
    (out / "bench.md").write_text(markdown(heading, told), encoding="utf-8")
    print("\n" + table(told))
    print(f"JSON in {out / 'bench.json'}, for tests/gpu/README.md: {out / 'bench.md'}")
    return FAILED if any(part["status"] == "failed" or (part["status"] == "skipped" and not args.tiny) for part in told) else 0


if __name__ == "__main__":
    sys.exit(main())
