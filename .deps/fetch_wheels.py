#!/usr/bin/env python3
"""Fetches the pinned wheels of wheels.json into a cache shared by all clones.

Layout of the cache (`$PIPER_CACHE`, else `$XDG_CACHE_HOME/piper`, else `~/.cache/piper`):

    wheels/NAME-KEY/   the unpacked part of one wheel; KEY digests its hash and its unpack list
    trees/KEY/         all wheels of a group side by side (hard links), so that `torch/` and `nvidia/`
                       are neighbours as LibTorch's own run path expects; KEY digests their rows

Groups: `base` for the program, `test` for its tests alone, `transformers` for the Python packages
that a test imports from the tree, `format` and `lint` for the tools of `make format` and `make lint`.

Every folder is built aside and renamed into place, so a folder that exists is complete and two
runs at once do no harm: the one that loses the rename uses the winner's folder.

    fetch_wheels.py                  fetch the missing wheels
    fetch_wheels.py --path           print the tree's path, fetch nothing
    fetch_wheels.py --group test     the same for another group than base
    fetch_wheels.py --from FOLDER    take wheel files from FOLDER before downloading
"""

import argparse
import fnmatch
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_25_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux2010_x86_64")


def cache_root():
    if os.environ.get("PIPER_CACHE"):
        return pathlib.Path(os.environ["PIPER_CACHE"])
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base) / "piper"


def digest(value):
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def say(text):
    print(f"set-up: {text}", flush=True)


def fail(text):
    sys.exit(f"set-up: {text}")


def publish(built, target):
    """Renames a finished folder into place; losing the race to an equal folder is success."""
    try:
        os.rename(built, target)
    except OSError:
        if not target.is_dir():
            raise
        shutil.rmtree(built)


def sha256_of(path):
    hasher = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            hasher.update(block)
    return hasher.hexdigest()


def folder_bytes(folder):
    total = 0
    for root, _, files in os.walk(folder):
        for name in files:
            try:
                total += os.lstat(os.path.join(root, name)).st_size
            except OSError:  # pip moves its files while we look
                pass
    return total


def download(name, pin, folder):
    """Downloads one wheel with pip, which checks the hash, and returns its path."""
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{pin['requirement']} --hash=sha256:{pin['sha256']}\n")
    wheels = folder / "download"
    wheels.mkdir()
    version = pin.get("python", "3.12")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-cache-dir",
               "--no-deps", "--require-hashes", "--only-binary=:all:", "--python-version", version,
               "--implementation", "cp", "--abi", "cp" + version.replace(".", ""), "--dest", str(wheels), "--requirement", str(requirements)]
    for platform in PLATFORMS:
        command += ["--platform", platform]
    temporary = folder / "pip"
    temporary.mkdir()
    started = time.monotonic()
    process = subprocess.Popen(command, env=dict(os.environ, TMPDIR=str(temporary)))
    next_report = 5.0
    while process.poll() is None:
        time.sleep(0.1)
        elapsed = time.monotonic() - started
        if elapsed >= next_report:
            megabytes = folder_bytes(folder) / 1e6
            state = f"{megabytes:.0f} MB" if megabytes >= 1 else "waiting for the first bytes"
            say(f"  {name}: {state} after {elapsed:.0f} s")
            next_report += 5.0
    if process.returncode != 0:
        fail(f"downloading {name} failed (pip's message is above)")
    return next(wheels.glob("*.whl"))


def wanted(member, patterns):
    return any(fnmatch.fnmatchcase(member, pattern) for pattern in patterns)


def unpack_wheel(root, name, pin, seeds):
    """Returns the unpacked folder of one wheel, fetching the wheel when it is not there."""
    target = root / "wheels" / f"{name}-{digest(pin)}"
    if target.is_dir():
        return target
    with tempfile.TemporaryDirectory(prefix=".building-", dir=root) as scratch_name:
        scratch = pathlib.Path(scratch_name)
        stem = pin["requirement"].partition("==")[0].replace("-", "_")
        seeded = [seed for folder in seeds for seed in sorted(folder.glob(f"{stem}-*.whl"))
                  if sha256_of(seed) == pin["sha256"]]
        if seeded:
            wheel = seeded[0]
        else:
            say(f"downloading {name}")
            wheel = download(name, pin, scratch)
        say(f"unpacking {name}")
        built = scratch / "tree"
        with zipfile.ZipFile(wheel) as archive:
            members = [m for m in archive.infolist() if wanted(m.filename, pin["unpack"])]
            archive.extractall(built, members)
            for member in members:  # zipfile sets no permissions
                if member.external_attr >> 16 & 0o111:
                    (built / member.filename).chmod(0o755)
        publish(built, target)
    return target


def build_tree(root, pins, target, seeds):
    parts = [unpack_wheel(root, name, pin, seeds) for name, pin in sorted(pins.items())]
    with tempfile.TemporaryDirectory(prefix=".building-", dir=root) as scratch:
        built = pathlib.Path(scratch) / "tree"
        for part in parts:
            shutil.copytree(part, built, copy_function=os.link, dirs_exist_ok=True)
        publish(built, target)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--path", action="store_true")
    parser.add_argument("--group", default="base")
    parser.add_argument("--from", dest="seeds", action="append", default=[], type=pathlib.Path)
    arguments = parser.parse_args()

    rows = json.loads((HERE / "wheels.json").read_text())
    pins = {name: pin for name, pin in rows.items() if pin.get("group", "base") == arguments.group}
    if not pins:
        fail(f"no wheel of wheels.json is in the group {arguments.group}")
    root = cache_root()
    target = root / "trees" / digest(pins)
    if arguments.path:
        print(target)
        return
    if target.is_dir():
        return
    # The program refuses to run objects that it built there if others can write to the folder.
    os.umask(os.umask(0o022) | 0o022)
    try:
        (root / "wheels").mkdir(parents=True, exist_ok=True)
        (root / "trees").mkdir(parents=True, exist_ok=True)
        build_tree(root, pins, target, arguments.seeds)
    except OSError as error:
        fail(f"cannot fill the cache {root} (PIPER_CACHE chooses another place): {error}")
    say(f"the wheels of group {arguments.group} are in {target}")


if __name__ == "__main__":
    main()
