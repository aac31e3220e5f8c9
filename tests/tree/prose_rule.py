"""The rule `prose`: sentences of comments, pages and `.def` tables are plain technical English.

REFUSED patterns have no exceptions. Sentences with RATCHET patterns are counted by top folder: RATCHET_LIMITS has the counts, which may only fall.

    prose_rule.py ROOT     prints each sentence that a pattern finds, refused or counted, and the totals by folder
"""

import ast
import io
import pathlib
import re
import sys
import tokenize

REFUSED = (
    (re.compile(r"^(What|Who|Whoever|Whatever|Whose)\b(?!.*\?$)"), "a sentence has a subject: name the thing"),
    (re.compile(r"^Of (?!course\b)"), "a sentence has a subject: `Of ...` leaves it out"),
    (re.compile(r"^(So|As|That) many\b|^(Nothing|None) where\b|^(Those|That) (of|that|which)\b"), "say what it is: `the maximum number of ...`, `empty if ...`"),
    (re.compile(r"\b(is|are|was|were|be|been|being) told\b|\b[Tt]ells? of\b"), "`reported`, `notified`, `says`"),
    (re.compile(r"\bspeaks? of\b|\b(have|has|had) come to\b|\bbut for\b"), "`refers to`, `reached`, `except`"),
)
RATCHET = (re.compile(r"\b(of|to|from|with|by|for|in|behind|beside) (what|who|whoever|whom)\b"), re.compile(r"\b[Nn]obody\b"), re.compile(r"^Where\b"))

# Top folder (`.`: files of the root) -> the number of its counted sentences; 0 for the others.
RATCHET_LIMITS = {}

FOLDERS = (".ci", ".deps", "backend", "docs", "editors", "examples", "frontend", "grammar", "ir", "passes", "runtime", "stdlib", "tests")
SKIPPED = re.compile(r"(^|/)(testdata|node_modules|__pycache__)/|^editors/tree-sitter-piper/src/")  # expected outputs and generated code
SLASHES = (".h", ".cpp", ".cc", ".inc", ".def", ".cu", ".c", ".js", ".mjs", ".g4", ".pipe")
MARKS = {".cmake": "#", ".sh": "#", ".el": ";", ".scm": ";", ".lua": "--", "CMakeLists.txt": "#", "Makefile": "#", "run": "#"}  # by ending or name

# Strings are tokens, too: a mark inside one opens no comment.
TOKEN = re.compile(r'R"([^\s()\\]*)\((?s:.*?)\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|//[^\n]*|/\*(?s:.*?)\*/')
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`(\"*])")
CODE_SPAN = re.compile(r"`[^`]*`")
LIST_ITEM = re.compile(r"\s*([-*] |\d+\. |-{3,})")


def slash_comments(text, strings):
    """(line, column, text) of each line of a comment and, if `strings`, of each string of several words."""
    line, start = 1, 0
    for token in TOKEN.finditer(text):
        line += text.count("\n", start, token.start())
        start = token.start()
        column = start - text.rfind("\n", 0, start)
        if token[0].startswith("//"):
            yield line, column, token[0].lstrip("/")
        elif token[0].startswith("/*"):
            for offset, part in enumerate(token[0][2:-2].split("\n")):
                yield line + offset, column, part.strip(" *")
        elif strings and token[0].startswith('"') and " " in token[0]:
            yield line, -start, token[0][1:-1]


def marked_comments(text, mark):
    comment = re.compile(r"(?:^|\s)" + mark + r"+((?:\s|$)[^\n]*)")
    for number, line in enumerate(text.splitlines(), 1):
        found = comment.search(line)
        if found:
            yield number, found.start(1), found[1]


def python_comments(text):
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.start[1], token.string.lstrip("#!")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            for offset, line in enumerate(node.body[0].value.value.split("\n")):
                yield node.body[0].lineno + offset, -1, line.strip() if offset == 0 else line


def markdown_lines(text):
    """Cells of tables have a column each; blocks of code are left out."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and line.startswith("|"):
            yield from ((number, column, cell) for column, cell in enumerate(line.strip("| ").split("|"), 1))
        elif not fenced:
            yield number, 0, line


def paragraphs(lines):
    """(line, text) of each run of consecutive lines of one column. A list item, a heading and a change of indentation begin a paragraph, except in text that continues an item."""
    first, text, before = 0, "", None
    for number, column, line in lines:
        indent = len(line) - len(line.lstrip())
        here = (number, column, indent)
        item = LIST_ITEM.match(line) or line.startswith("#")
        goes_on = before and number == before[0] + 1 and column == before[1] and (indent == before[2] or before[3]) and not item and line.strip()
        if text and not goes_on:
            yield first, text
            text = ""
        if line.strip():
            words = (LIST_ITEM.sub("", line, count=1) if item else line).strip("# ")
            first, text = (first, f"{text} {words}") if text else (number, words)
        before = (*here, bool(item))
    if text:
        yield first, text


def comment_lines(path, text):
    if path.suffix == ".md":
        return markdown_lines(text)
    if path.suffix == ".py":
        return python_comments(text)
    if path.suffix in SLASHES:
        return slash_comments(text, path.suffix == ".def")
    return marked_comments(text, MARKS.get(path.suffix) or MARKS[path.name])


def sentences(path):
    """(line, sentence) of the prose in a file, without spans of code. The line is the first one of the sentence's paragraph."""
    for line, text in paragraphs(comment_lines(path, path.read_text(encoding="utf-8"))):
        for sentence in SENTENCE_END.split(CODE_SPAN.sub("`_`", text)):
            yield line, sentence.strip(" *_")


def files(root):
    paths = [path for path in sorted(root.iterdir()) if path.is_file()]
    for folder in FOLDERS:
        paths += sorted((root / folder).rglob("*"))
    for path in paths:
        name = path.relative_to(root).as_posix()
        known = path.suffix in (*SLASHES, ".md", ".py") or path.suffix in MARKS or path.name in MARKS
        if known and path.is_file() and not SKIPPED.search(name):
            yield path, name


def findings(root):
    """(folder, `path:line`, sentence, reason) of each sentence that a pattern finds; a counted one has no reason."""
    for path, name in files(root):
        folder = name.split("/")[0] if "/" in name else "."
        for line, sentence in sentences(path):
            reason = next((reason for pattern, reason in REFUSED if pattern.search(sentence)), None)
            if reason or any(pattern.search(sentence) for pattern in RATCHET):
                yield folder, f"{name}:{line}", sentence, reason


def prose(root):
    counts = {}
    for folder, place, sentence, reason in findings(root):
        if reason:
            yield f"{place}: `{sentence}`: {reason}"
        else:
            counts[folder] = counts.get(folder, 0) + 1
    for folder in sorted({*counts, *RATCHET_LIMITS}):
        count, limit = counts.get(folder, 0), RATCHET_LIMITS.get(folder, 0)
        if count > limit:
            yield f"{folder}:1: {count} sentences with `of what`, `nobody` or `Where ...`, but at most {limit} are allowed: `prose_rule.py ROOT` lists them"
        elif count < limit:
            yield f"tests/tree/prose_rule.py:1: `{folder}` has {count} counted sentences: lower its limit from {limit}"


def main():
    totals = {}
    for folder, place, sentence, reason in findings(pathlib.Path(sys.argv[1])):
        print(f"{place}: {'refused' if reason else 'counted'}: {sentence}")
        totals.setdefault(folder, [0, 0])[0 if reason else 1] += 1
    for folder, (refused, counted) in sorted(totals.items()):
        print(f"{folder}: {refused} refused, {counted} counted")


if __name__ == "__main__":
    main()
