"""The tree-sitter grammar against the parser of the compiler, on every text of the project; and its queries.

    tree_sitter_test.py ROOT SCRATCH
"""

import concurrent.futures
import ctypes
import os
import pathlib
import random
import re
import subprocess
import sys
import unittest

import tree_sitter

ROOT, SCRATCH = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
GRAMMAR = ROOT / "editors" / "tree-sitter-piper"


def language():
    """The committed parser, compiled."""
    library = SCRATCH / "piper.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-I", GRAMMAR / "src", GRAMMAR / "src/parser.c", GRAMMAR / "src/scanner.c", "-o", library], check=True)
    entry = ctypes.CDLL(str(library)).tree_sitter_piper
    entry.restype = ctypes.c_void_p
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return tree_sitter.Language(capsule(entry(), b"tree_sitter.Language", None))


LANGUAGE = language()


def parse(text):
    return tree_sitter.Parser(LANGUAGE).parse(text).root_node


def texts():
    """Every `.pipe` file, and every block of the pages that is a text of the language, by a name."""
    found = {}
    for top in ("examples", "stdlib", "tests"):
        for path in sorted((ROOT / top).rglob("*.pipe")):
            found[str(path.relative_to(ROOT))] = path.read_bytes()
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "grammar").glob("*.md")), *sorted((ROOT / "ir/diagnostics/pages").glob("*.md")), *sorted((ROOT / "stdlib").glob("*.md"))]
    for page in pages:
        for number, block in enumerate(re.findall(r"^```pipe.*?\n(.*?)^```", page.read_text(), re.M | re.S)):
            found[f"{page.relative_to(ROOT)}#{number}"] = block.encode()
    return found


def accepted(name, text):
    """Whether the compiler's parser accepts it."""
    path = SCRATCH / "texts" / (re.sub(r"\W", "_", name) + ".pipe")
    path.write_bytes(text)
    return subprocess.run(["piper", "show", "ast", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def all_accepted(by_name):
    (SCRATCH / "texts").mkdir(exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(by_name, pool.map(lambda item: accepted(*item), by_name.items())))


def damaged(text, draw):
    """The text with one token left out, written twice, replaced, or with a line end more or less."""
    tokens = re.findall(r"//[^\n]*|\s+|\w+|\"[^\"\n]*\"|\.\.|->|[<>=!]=|.", text.decode(), re.S)
    at, other = draw.randrange(len(tokens)), draw.choice(tokens)
    blank = lambda token: " " if "\n" in token else "\n"
    tokens[at] = draw.choice(["", tokens[at] * 2, other, tokens[at] + other, blank(tokens[at]) if tokens[at].isspace() else "\n" + tokens[at]])
    return "".join(tokens).encode()


def indentation(tree_root, lines):
    """Blanks before each line by the query of indents; None if a line is empty."""
    captured = tree_sitter.QueryCursor(tree_sitter.Query(LANGUAGE, (GRAMMAR / "queries/indents.scm").read_text())).captures(tree_root)
    begun_at, closers = [set() for _ in lines], {}  # brackets that are opened on one line make the next ones deeper once
    for node in captured["indent.begin"]:
        for row in range(node.start_point.row + 1, node.end_point.row + 1):
            begun_at[row].add(node.start_point.row)
    for node in captured["indent.branch"]:
        if lines[node.start_point.row][:node.start_point.column].strip() == "":
            closers[node.start_point.row] = 1
    return [4 * (len(begun_at[row]) - closers.get(row, 0)) if line.strip() else None for row, line in enumerate(lines)]


def first_error(node):
    if node.is_error or node.is_missing:
        return f"{node.start_point.row + 1}:{node.start_point.column + 1}"
    return next((place for child in node.children if child.has_error and (place := first_error(child))), None)


class TreeSitterTest(unittest.TestCase):
    def test_it_accepts_what_the_compiler_accepts(self):
        all_texts = texts()
        verdicts = all_accepted(all_texts)
        self.assertGreater(sum(verdicts.values()), 250)
        self.assertGreater(len(verdicts) - sum(verdicts.values()), 10)
        wrong = []
        for name, text in all_texts.items():
            error = first_error(parse(text))
            if (error is None) != verdicts[name]:
                wrong.append(f"{name}: the compiler {'accepts' if verdicts[name] else 'refuses'} it, the grammar " + (f"does not at {error}" if error else "accepts it"))
        print(f"{len(verdicts)} texts, {sum(verdicts.values())} of them without mistakes of syntax")
        self.assertEqual(wrong, [])

    def test_it_refuses_nothing_that_the_compiler_accepts(self):
        draw = random.Random(1)
        originals = list(texts().values())
        mutants = {f"mutant{number}": damaged(draw.choice(originals), draw) for number in range(400)}
        verdicts = all_accepted(mutants)
        self.assertGreater(sum(verdicts.values()), 50)
        wrong = [f"{name} at {error}:\n{mutants[name].decode()}" for name in mutants if verdicts[name] and (error := first_error(parse(mutants[name])))]
        self.assertEqual(wrong, [])
        # The texts that it accepts beyond that have a line end inside a statement.
        for name in mutants:
            if not verdicts[name] and first_error(parse(mutants[name])) is None:
                self.assertIn(b"\n", mutants[name])

    def test_every_keyword_of_the_language_is_highlighted(self):
        lexer = (ROOT / "grammar/PipeLexer.g4").read_text()
        words = set(re.findall(r"^[A-Z]+ : '([a-z]+)' ;", lexer, re.M))
        self.assertIn("schedule", words)
        query = (GRAMMAR / "queries/highlights.scm").read_text()
        self.assertEqual(words - set(re.findall(r'"([a-z]+)"', query)) - {"true", "false"}, set())
        passes = set(re.findall(r"'(\w+)'", re.search(r"^PASS : (.*) ;", lexer, re.M).group(1)))
        self.assertEqual(set(re.findall(r'"(\w+)"', re.search(r"pass: _ => choice\((.*)\)", (GRAMMAR / "grammar.js").read_text()).group(1))), passes)

    def test_highlights(self):
        text = (ROOT / "tests/editors/net.pipe").read_bytes()
        query = tree_sitter.Query(LANGUAGE, (GRAMMAR / "queries/highlights.scm").read_text())
        found = {}
        for _, captures in tree_sitter.QueryCursor(query).matches(parse(text)):
            for name, nodes in captures.items():
                for node in nodes:
                    found.setdefault(node.start_byte, {})[name] = node.text.decode()
        for piece, name in [("^plain(p: axis", "function"), ("(^p: axis", "variable.parameter"), ("p: ^axis", "type.builtin"), ("^/// How", "comment.documentation"), ("^stage[s] on", "variable"),
                            ("{ ^F a }", "constant.builtin"), ("^plain(pp", "function.call"), ("^repeat min", "keyword.repeat"), ("0^..m", "operator"), ("^mb[0", "label"), ("= ^6", "number")]:
            at = text.index(piece.replace("^", "").encode()) + piece.index("^")
            self.assertIn(name, found.get(at, {}), piece)

    def test_folds_and_indents_follow_the_layout_of_the_project(self):
        folds = tree_sitter.Query(LANGUAGE, (GRAMMAR / "queries/folds.scm").read_text())
        tree_sitter.Query(LANGUAGE, (GRAMMAR / "queries/locals.scm").read_text())
        for path in [*sorted((ROOT / "stdlib").rglob("*.pipe")), *sorted((ROOT / "examples").rglob("*.pipe"))]:
            text = path.read_text()
            root, lines = parse(text.encode()), text.split("\n")
            begins = {node.start_point.row for node in tree_sitter.QueryCursor(folds).captures(root).get("fold", [])}
            self.assertEqual([line for row, line in enumerate(lines) if line.split("//")[0].rstrip().endswith("{") and row not in begins], [], path)
            for row, (line, blanks) in enumerate(zip(lines, indentation(root, lines))):
                if blanks is not None:
                    self.assertEqual(len(line) - len(line.lstrip()), blanks, f"{path}:{row + 1}: {line}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
