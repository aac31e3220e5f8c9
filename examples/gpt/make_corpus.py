#!/usr/bin/env python3
"""Makes the demo's corpus from a folder of text files: two files, split by source file.

    make_corpus.py FOLDER OUT     ->  OUT/train.txt, OUT/held_out.txt

Files are taken in sorted order; every 16th one is held out, so that no file is in both. Does nothing when OUT was made from the same
folder.
"""
import pathlib
import sys

SUFFIXES = {".h", ".hpp", ".cuh", ".inc"}


def main():
    folder, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    stamp = out / "made_from"
    if stamp.is_file() and stamp.read_text() == str(folder):
        return
    out.mkdir(parents=True, exist_ok=True)
    files = sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES and path.is_file())
    if not files:
        sys.exit(f"no text files below {folder}")
    with open(out / "train.txt", "wb") as train, open(out / "held_out.txt", "wb") as held_out:
        for number, path in enumerate(files):
            (held_out if number % 16 == 15 else train).write(path.read_bytes())
    stamp.write_text(str(folder))
    for name in ("train.txt", "held_out.txt"):
        print(f"corpus: {out / name}, {(out / name).stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
