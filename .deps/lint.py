#!/usr/bin/env python3
"""The layout of C++ sources and the checks of clang-tidy.

    lint.py format               lay out every source in place
    lint.py lint [--since REV]   rules of the tree, layout of every source, clang-tidy;
                                 with REV, clang-tidy only for sources that differ from REV, or
                                 whose header of the same name does

Sources are the `.cpp` and `.h` files that git knows or would add; clang-format passes over the files
of `.clang-format-ignore`. clang-tidy reads `build/debug`, which is configured first, and needs its
generated headers but no objects.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/debug"
BATCH = 64  # files of one clang-format process


def output(*command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def tool(group, path):
    """Path of a tool inside the wheels of a group, which are fetched if they are missing."""
    fetch = (sys.executable, ROOT / ".deps/fetch_wheels.py", "--group", group)
    subprocess.run(fetch, check=True)
    return pathlib.Path(output(*fetch, "--path").strip()) / path


def sources():
    listed = output("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.cpp", "*.h")
    return sorted({name for name in listed.split("\0") if name and (ROOT / name).is_file()})


def run_all(commands, jobs):
    """Runs the commands side by side, prints what each says, and returns whether all succeed."""
    def run(command):
        return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    succeeded = True
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for result in pool.map(run, commands):
            if result.returncode != 0:
                succeeded = False
                print(result.stdout, end="", flush=True)
    return succeeded


def run_clang_format(arguments, jobs):
    program = tool("format", "clang_format/data/bin/clang-format")
    names = sources()
    return run_all([[program, *arguments, *names[i:i + BATCH]] for i in range(0, len(names), BATCH)], jobs)


def check_tree():
    command = [sys.executable, "-B", "tests/tree/tree_rules.py"]
    return run_all([[*command, ".", rule] for rule in output(*command, "--list").split()], 1)


def compiled_sources():
    database = BUILD / "compile_commands.json"
    if not database.is_file():
        sys.exit("lint: build/debug is not configured: run `make lint`")
    entries = json.loads(database.read_text())
    paths = (pathlib.Path(entry["directory"], entry["file"]).resolve() for entry in entries)
    return {path.relative_to(ROOT).as_posix() for path in paths if path.is_relative_to(ROOT) and not path.is_relative_to(ROOT / "build")}


def generate_headers(jobs):
    targets = (line.partition(": ")[0] for line in output("ninja", "-C", BUILD, "-t", "targets", "all").splitlines())
    headers = [name for name in targets if name.startswith("generated/") and name.endswith(".h")]
    subprocess.run(["ninja", "-C", BUILD, "-j", str(jobs), "--quiet", *headers], check=True)


def run_clang_tidy(since, jobs):
    """Checks compiled sources, and the headers of the tree that they include."""
    program = tool("lint", "clang_tidy/data/bin/clang-tidy")
    names = compiled_sources()
    if since:
        changed = output("git", "diff", "--name-only", "-z", "--diff-filter=d", since, "--").split("\0")
        names &= {name.removesuffix(".h") + ".cpp" if name.endswith(".h") else name for name in changed}
    if not names:
        return True
    generate_headers(jobs)
    print(f"clang-tidy: {len(names)} files", flush=True)
    return run_all([[program, "-p", BUILD, "--quiet", name] for name in sorted(names)], jobs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("task", choices=("format", "lint"))
    parser.add_argument("--since", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()

    if arguments.task == "format":
        succeeded = run_clang_format(["-i"], arguments.jobs)
    else:
        checks = [check_tree(), run_clang_format(["--dry-run", "-Werror"], arguments.jobs), run_clang_tidy(arguments.since, arguments.jobs)]
        succeeded = all(checks)
    sys.exit(0 if succeeded else 1)


if __name__ == "__main__":
    main()
