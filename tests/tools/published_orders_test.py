"""Compares orders of the library with those of published_orders.py and with tables of torch.distributed.pipelining.

Usage: published_orders_test.py PIPER; it runs `PIPER show orders` in the project root, and prints the first difference of each schedule.
"""

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import published_orders

TORCH_TABLES = Path(__file__).parent / "testdata" / "torch_orders.txt"
TORCH_PASSES = {"F": "F", "B": "B", "I": "BI", "W": "BW"}


def orders_of_library(piper, schedule, sizes):
    """The operations of each rank, or the text of a refusal."""
    command = [piper, "show", "orders", schedule, "--format", "json"]
    for name, value in sizes.items():
        command += ["-D", f"{name}={value}"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        return run.stderr
    return [[(step["op"], step["stage"], step["mb"]) for step in rank] for rank in json.loads(run.stdout)["orders"]]


def legal_sizes():
    """(schedule, sizes) that the schedules accept."""
    for p in range(1, 6):
        for m in range(1, 3 * p + 2):
            sizes = {"p": p, "m": m}
            for schedule in ("interleaved", "interleaved_zb", "looped_bfs"):
                for v in (1, 2, 3):
                    yield schedule, {**sizes, "v": v}
            if m >= p:
                yield "interleaved", {**sizes, "v": 2, "group": m}
            for group in range((p + 1) // 2, p + 1):
                yield "group_interleaved", {**sizes, "v": 2 + m % 2, "group": group}
            if m >= 2 * p:
                yield "zb_h2", sizes
            if m % 2 == 0:
                yield "gems", sizes
            for waves in (1, 2):
                yield "hanayo", {**sizes, "waves": waves}
        for m in (1, 2, 3, p, 2 * p, 2 * p + 5, 3 * p + 7):
            for schedule in ("v_min", "v_half", "v_1f1b"):
                yield schedule, {"p": p, "m": m}
    for schedule in ("v_min", "v_half", "v_1f1b"):
        yield schedule, {"p": 8, "m": 24}
    for p in (2, 4, 6):
        for units in (1, 2, 3):
            yield "chimera", {"p": p, "m": units * p}
            yield "bit_pipe", {"p": p, "m": units * p}


def published(schedule, sizes):
    return getattr(published_orders, schedule)(**sizes)


def torch_tables():
    """(schedule, sizes, orders) of every line of the table."""
    for line in TORCH_TABLES.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        head, _, ranks = line.partition(": ")
        schedule, *sizes = head.split()
        orders = []
        for rank in ranks.split(" | "):
            actions = re.findall(r"(\d+)([FBIW])(\d+)", rank)
            orders.append([(TORCH_PASSES[name], int(stage), int(mb)) for stage, name, mb in actions])
        yield schedule, {name: int(value) for name, value in (size.split("=") for size in sizes)}, orders


def difference(actual, expected):
    """The first difference in words, or an empty text."""
    if isinstance(actual, str):
        return f"refused: {actual}"
    for r, (left, right) in enumerate(zip(actual, expected, strict=True)):
        for number, (one, other) in enumerate(zip(left, right)):
            if one != other:
                return f"rank {r}, operation {number}: {one} instead of {other}"
        if len(left) != len(right):
            return f"rank {r}: {len(left)} operations instead of {len(right)}"
    return ""


def main():
    piper = sys.argv[1]
    cases = [(schedule, sizes, published(schedule, sizes)) for schedule, sizes in legal_sizes()]
    cases += torch_tables()
    assert len(cases) > 500, "the lists of cases are cut"
    failed = set()
    with ThreadPoolExecutor(max_workers=2) as pool:
        actual = pool.map(lambda case: orders_of_library(piper, case[0], case[1]), cases)
        for (schedule, sizes, expected), found in zip(cases, actual):
            text = difference(found, expected)
            if text and schedule not in failed:
                failed.add(schedule)
                print(f"{schedule} {sizes}: {text}")
    print(f"{len(cases)} orders compared")
    sys.exit(1 if failed else 0)


main()
