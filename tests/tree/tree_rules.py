#!/usr/bin/env python3
"""Rules over the tree that no compiler checks: who includes whom, how files are named, how long they are, what CMake lists.

    tree_rules.py ROOT RULE     prints each violation as `path:line: message`; exit 1 when there is one
    tree_rules.py --list        prints the rules

RULE: citations, environment, includes, kinds, names, length, prose, sources, terms.
"""

import pathlib
import re
import sys

import terms

from citation_rule import citations
from prose_rule import prose

TOP_FOLDERS = ("backend", "examples", "frontend", "grammar", "ir", "passes", "runtime", "stdlib", "tests")
CODE = (".h", ".cpp", ".cc", ".inc", ".def")
TEXT = CODE + (".py", ".sh", ".cmake", ".pipe", ".g4", ".cu")
MAX_LINES = 600

# The parts of the runtime that every part of it may include.
RUNTIME = ("runtime/abi.h", "runtime/alignment.h", "runtime/calls.def", "runtime/device/", "runtime/device_abi.h", "runtime/dtypes.h", "runtime/failure.h", "runtime/kernel_math.h", "runtime/options.h", "runtime/phase.h", "runtime/shared_library.h",
           "runtime/trace/")

# Folder -> what it may include of ours, as path prefixes. The first prefix that fits a file counts.
OWN = {
    "frontend/tools/": ("backend/", "embedded/", "frontend/", "ir/", "passes/", "runtime/"),
    "frontend/lsp/": ("backend/", "frontend/ast/", "frontend/format/", "frontend/lower/", "frontend/lsp/", "frontend/parse/", "frontend/pictures/", "frontend/sema/",
                      "frontend/service/", "frontend/source/", "frontend/views/", "ir/", "passes/"),
    "frontend/repl/": ("backend/", "frontend/", "ir/", "passes/"),
    "frontend/views/": ("backend/", "frontend/pictures/", "frontend/service/", "frontend/views/", "ir/", "passes/"),
    "frontend/pictures/": ("embedded/", "frontend/pictures/", "ir/", "passes/"),
    "frontend/service/": ("backend/", "frontend/ast/", "frontend/lower/", "frontend/parse/", "frontend/sema/", "frontend/service/", "frontend/source/", "ir/",
                          "passes/"),
    "frontend/parse/": ("embedded/", "frontend/", "grammar_generated/", "ir/"),
    "frontend/": ("embedded/", "frontend/", "ir/"),
    "passes/order/": ("ir/", "passes/build/", "passes/order/", "passes/selectors/"),
    "passes/": ("ir/", "passes/"),
    "backend/": ("backend/", "embedded/", "ir/", "runtime/abi.h", "runtime/calls.def", "runtime/device_abi.h", "runtime/kernel_math.h", "runtime/shared_library.h"),
    "runtime/cpu/": RUNTIME + ("runtime/cpu/", "runtime/data/", "runtime/transport/"),
    "runtime/cuda/": RUNTIME + ("runtime/cuda/", "runtime/data/", "runtime/processes/", "runtime/transport/"),
    "runtime/device/": RUNTIME,
    "runtime/executor/": RUNTIME + ("runtime/checkpoint/state_memory.h", "runtime/data/", "runtime/executor/", "runtime/processes/", "runtime/transport/"),
    "runtime/": ("runtime/",),
    "ir/": ("embedded/", "ir/"),
    "tests/": ("backend/", "embedded/", "frontend/", "ir/", "passes/", "runtime/", "tests/"),
}

# The top of `frontend` sees the rest of it; nothing below may look up.
FRONTEND_TOP = ("frontend/tools/", "frontend/lsp/", "frontend/pictures/", "frontend/repl/", "frontend/service/", "frontend/views/")

# Libraries: which headers are theirs, and where these may be included.
LIBRARIES = {
    "ANTLR": (r"antlr4.*", ("frontend/parse/",)),
    "LLVM": (r"llvm(-c)?/.*", ("ir/", "frontend/", "passes/", "backend/", "tests/")),
    "LibTorch": (r"(ATen|c10|caffe2|torch)/.*", ("runtime/", "tests/")),
    "NVRTC": (r"nvrtc\.h", ("runtime/", "backend/jit/")),
    "CUDA": (r"(cuda|cublas|cudnn|cupti|nvtx3|cub|thrust).*", ("runtime/",)),
    "NCCL": (r"nccl.*", ("runtime/",)),
    "UCX": (r"uc[mpst]/.*", ("runtime/transport/",)),
    "MPI": (r"mpi(-ext)?\.h|openmpi/.*", ("runtime/",)),
    "GoogleTest": (r"g(test|mock)/.*", ("tests/",)),
    "Google Benchmark": (r"benchmark/.*", ("tests/",)),
}

# Only containers and support of LLVM: no IR, no code generation.
LLVM_PARTS = re.compile(r"llvm/(ADT|Support|LineEditor|Config)/.*")

VAGUE_NAMES = re.compile(r"(^|[._-])(utils?|helpers?|common|misc)([._-]|$)", re.IGNORECASE)
FILE_NAME = re.compile(r"[a-z0-9_.]+$")
ENVIRONMENT = re.compile(r"\b(secure_getenv|getenv|environ)\b")
ENVIRONMENT_PASSES = ("frontend/tools/main.cpp", "backend/jit/command.cpp")
KIND = re.compile(r"(==|!=|<|<=|>|>=) (dag::)?(NodeKind|CommOp)::")
CASE = re.compile(r"(\s*)(case\s.*|default:)")
KIND_CASE = re.compile(r"case (dag::)?(NodeKind|CommOp)::")
KIND_COMPARISONS = ("ir/dag/", "ir/verify/", "tests/")
INCLUDE = re.compile(r'\s*#\s*include\s*(["<])([^">]+)[">]')


def files(root, suffixes):
    for top in TOP_FOLDERS:
        for path in sorted((root / top).rglob("*")):
            if path.is_file() and path.suffix in suffixes:
                yield path, path.relative_to(root).as_posix()


def first_rule(path, table):
    return next((table[prefix] for prefix in table if path.startswith(prefix)), ())


def check_include(root, path, quote, target):
    """The violation of one include line, or None."""
    for library, (pattern, allowed) in LIBRARIES.items():
        if re.fullmatch(pattern, target):
            if not path.startswith(allowed):
                return f"{library} headers belong in {', '.join(allowed)}"
            if library == "LLVM" and not LLVM_PARTS.fullmatch(target):
                return "of LLVM only ADT and Support are used"
            return None
    if quote == "<":
        return "our own headers are included in quotes" if (root / target).is_file() else None
    generated = target.startswith(("embedded/", "grammar_generated/"))
    if not generated and not (root / target).is_file():
        return "includes are written from the project root, and this file is not there"
    if not any(target.startswith(prefix) for prefix in first_rule(path, OWN)):
        return f"{path.split('/')[0]} may not include this"
    if path.startswith("frontend/") and not path.startswith(FRONTEND_TOP) and target.startswith(FRONTEND_TOP):
        return "the phases of frontend may not include its tools"
    return None


def includes(root):
    for path, name in files(root, CODE + (".cu",)):
        if "/testdata/" in name:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            violation = match and check_include(root, name, *match.groups())
            if violation:
                yield f"{name}:{number}: `{line.strip()}`: {violation}"


def names(root):
    for top in TOP_FOLDERS:
        for path in sorted((root / top).rglob("*")):
            name = path.relative_to(root).as_posix()
            if VAGUE_NAMES.search(path.name):
                yield f"{name}:1: a name that says nothing: a thing is named by what it is"
            if path.is_file() and path.suffix in CODE and not FILE_NAME.match(path.name):
                yield f"{name}:1: files are named in snake_case"


def length(root):
    for path, name in files(root, TEXT):
        count = len(path.read_text(encoding="utf-8").splitlines())
        if count > MAX_LINES:
            yield f"{name}:{MAX_LINES + 1}: {count} lines: a file past {MAX_LINES} is split by concept"


def source_lists(path):
    """The SOURCES lists of a CMakeLists.txt: (line number, entry) per list."""
    lists = []
    current = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        for word in re.findall(r"[()]|[^\s()]+", line.split("#")[0]):
            if word == "SOURCES":
                current = []
                lists.append(current)
            elif word in "()" or (word.isupper() and "$" not in word):
                current = None
            elif current is not None:
                current.append((number, word))
    return lists


def sources(root):
    listed = set()
    for top in TOP_FOLDERS:
        for path in sorted((root / top).rglob("CMakeLists.txt")):
            name = path.relative_to(root).as_posix()
            for entries in source_lists(path):
                own = [(number, entry) for number, entry in entries if "$" not in entry]
                for number, entry in own:
                    listed.add((path.parent / entry).resolve())
                for (_, before), (number, entry) in zip(own, own[1:]):
                    if before >= entry:
                        yield f"{name}:{number}: `{entry}` stands after `{before}`: source lists are sorted, without duplicates"
    for path, name in files(root, (".cpp", ".cc")):
        if "/testdata/" not in name and path.resolve() not in listed:
            yield f"{name}:1: no CMakeLists.txt lists this file in SOURCES"


def environment(root):
    """Switches come from the driver's options and runtime/options: `main` hands the environment over, and a started compiler inherits it."""
    for path, name in files(root, CODE):
        if name.startswith("tests/"):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            word = ENVIRONMENT.search(line.split("//")[0])
            if word and not (word[0] == "environ" and name in ENVIRONMENT_PASSES):
                yield f"{name}:{number}: `{word[0]}`: only the driver and runtime/options read the environment"



def kinds(root):
    """A new kind of node is a row of its table: code asks a column or switches. Only the table's folder and the verifier, which asks anew, compare. A switch names
    all kinds, so that the compiler tells a new row where it needs a case."""
    for path, name in files(root, CODE):
        kind_cases = {}  # whether the cases of this indentation are kinds
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            code = line.split("//")[0]
            if KIND.search(code) and not name.startswith(KIND_COMPARISONS):
                yield f"{name}:{number}: `{line.strip()}`: ask a trait of ir/dag/node_kind.h, or switch over all kinds"
            case = CASE.match(code)
            if case and case[2] != "default:":
                kind_cases[case[1]] = KIND_CASE.search(code) is not None
            elif case and kind_cases.pop(case[1], False):
                yield f"{name}:{number}: `default:` among kinds of nodes: name the others, so that a new one does not compile before it has a case"


RULES = {"citations": citations, "environment": environment, "includes": includes, "kinds": kinds, "names": names, "length": length, "prose": prose, "sources": sources, "terms": lambda root: terms.terms(root, files)}


def main():
    if sys.argv[1:] == ["--list"]:
        print(*sorted(RULES), sep="\n")
        return
    root, rule = pathlib.Path(sys.argv[1]), sys.argv[2]
    violations = list(RULES[rule](root))
    for violation in violations:
        print(violation)
    sys.exit(1 if violations else 0)


if __name__ == "__main__":
    main()
