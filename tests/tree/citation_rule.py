"""The rule `citations`: every page that a comment or a page cites is in the repository, and so is the section.

    // (docs/execution.md section 4)            a page, from the root or from the folder of the file, with a section
    `docs/execution.md` sections 3 to 6         or several; `docs/laws.md`, law 2
    [phases](docs/architecture.md#2-phases)     a link, with the anchor of a heading

A section N is a heading `## N. ...` of the page.
"""

import functools
import io
import pathlib
import re
import tokenize

FOLDERS = (".deps", "backend", "docs", "editors", "examples", "frontend", "grammar", "ir", "passes", "runtime", "stdlib", "tests")
PAGES = ("CONTRIBUTING.md", "README.md")
SLASHES = (".h", ".cpp", ".cc", ".inc", ".def", ".pipe", ".g4", ".cu")
HASHES = (".sh", ".cmake", ".txt")

CITATION = re.compile(r"(?P<page>[^\s`\"'()<>\[\]|,;:#]+\.md)(?P<anchor>#[\w-]+)?\b`?\)?,?(?:\s+(?:sections?|laws?)\s+(?P<first>\d+)(?:\s+(?P<word>to|and)\s+(?P<last>\d+))?)?")
LINK = re.compile(r"\]\((?P<target>[^)\s#]+)(?:#[\w-]+)?\)")
# Pages that a program writes, and names that stand for many.
NO_PAGE = re.compile(r"(.*/)?(P\d*x+|bench|P1234)\.md|[A-Z]+/.*|.*[*${].*|//.*")


def comments(path):
    """The text of a file in which citations may stand, line by line: of a page all of it, of code its comments."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return text.splitlines()
    if path.suffix == ".py":
        lines = [""] * (text.count("\n") + 1)
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and token.string.startswith('"""')):
                for offset, line in enumerate(token.string.splitlines()):
                    lines[token.start[0] - 1 + offset] += line.lstrip("# ") + " "
        return lines
    mark = "//" if path.suffix in SLASHES else "#"
    return [line.split(mark, 1)[1].lstrip("/<# ") if mark in line else "" for line in text.splitlines()]


def anchor_of(heading):
    return "#" + re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


@functools.lru_cache(maxsize=None)
def headings(page):
    found = re.findall(r"^#+ +(.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {anchor_of(heading) for heading in found}, {int(number) for heading in found for number in re.findall(r"^(\d+)\. ", heading)}


def sections_of(match):
    if not match["first"]:
        return []
    first = int(match["first"])
    if not match["last"]:
        return [first]
    return list(range(first, int(match["last"]) + 1)) if match["word"] == "to" else [first, int(match["last"])]


def check(root, path, match):
    """The faults of one citation: a text each."""
    page = next((base / match["page"] for base in (path.parent, root) if (base / match["page"]).is_file()), None)
    if page is None:
        yield f"there is no page `{match['page']}`"
        return
    anchors, numbers = headings(page.resolve())
    if match["anchor"] and match["anchor"] not in anchors:
        yield f"`{match['page']}` has no heading `{match['anchor']}`"
    for number in sections_of(match):
        if number not in numbers:
            yield f"`{match['page']}` has no section {number}"


def files(root):
    for page in PAGES:
        if (root / page).is_file():
            yield root / page
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            known = path.suffix in (*SLASHES, *HASHES, ".md", ".py")
            if known and path.is_file() and not {"testdata", "node_modules", "__pycache__"} & set(path.parts):
                yield path


def citations(root):
    headings.cache_clear()
    for path in files(root):
        text = "\n".join(comments(path))
        name = path.relative_to(root).as_posix()
        for match in CITATION.finditer(text):
            if not NO_PAGE.fullmatch(match["page"]):
                line = text.count("\n", 0, match.start()) + 1
                yield from (f"{name}:{line}: {fault}" for fault in check(root, path, match))
        for match in LINK.finditer(text) if path.suffix == ".md" else ():
            target = match["target"]
            if "://" not in target and not target.endswith(".md") and not (path.parent / target).exists():
                yield f"{name}:{text.count(chr(10), 0, match.start()) + 1}: there is no `{target}`"
