#!/usr/bin/env python3
"""Prints the curves of a folder of event files, as TensorBoard's own reader has them (tests/README.md).

    print_events.py FOLDER     exit 1 if a curve has steps out of order, or is empty
"""

import sys

from tensorboard.backend.event_processing import event_accumulator


def main(folder):
    events = event_accumulator.EventAccumulator(folder, size_guidance={event_accumulator.SCALARS: 0}).Reload()
    tags = events.Tags()["scalars"]
    ordered = bool(tags)
    for tag in sorted(tags):
        points = events.Scalars(tag)
        steps = [point.step for point in points]
        ordered = ordered and steps == sorted(set(steps))
        print(f"{tag}: {len(points)} points, step {steps[0]} {points[0].value:g}, step {steps[-1]} {points[-1].value:g}")
    print("in order" if ordered else "out of order")
    return 0 if ordered else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
