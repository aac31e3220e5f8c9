"""Tests of the rules: each finds its violations in a small tree, and nothing in a right one."""

import pathlib
import sys
import tempfile
import unittest
import unittest.mock
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import prose_rule
import terms
import tree_rules


class TreeRules(unittest.TestCase):
    def check(self, rule, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return list(tree_rules.RULES[rule](root))

    def includes(self, path, *targets):
        """How many of the includes are refused in a file at `path`; our own headers all exist."""
        files = {t.strip('"'): "" for t in targets if t.startswith('"') and "/" in t and "llvm" not in t and "antlr" not in t}
        files[path] = "".join(f"#include {t}\n" for t in targets)
        return len(self.check("includes", files))

    def test_kinds(self):
        for path, line, refused in (
            ("passes/a.cpp", "if (node.kind == NodeKind::chunk) return;", 1),
            ("backend/a.h", "bool a = x.kind != dag::NodeKind::norm;", 1),
            ("passes/a.cpp", "case NodeKind::chunk: break;  // == NodeKind::chunk", 0),
            ("passes/a.cpp", "node.kind = NodeKind::send;", 0),
            ("passes/a.cpp", "const bool sums = traits(kind).comm_op == CommOp::all_reduce;", 1),
            ("backend/a.cpp", "return traffic >= dag::CommOp::offload;", 1),
            ("ir/dag/a.h", "return traffic >= CommOp::offload;", 0),
            ("ir/verify/a.cpp", "if (node.kind == NodeKind::norm) return;", 0),
        ):
            self.assertEqual(len(self.check("kinds", {path: line + "\n"})), refused, line)
        switch = "switch (kind) {\n  case dag::NodeKind::load: {\n    switch (other) {\n      case 1: return 1;\n      default: return 2;\n    }\n  }\n  %s return 0;\n}\n"
        for last, refused in (("default:", 1), ("case NodeKind::norm:", 0)):
            self.assertEqual(len(self.check("kinds", {"ir/verify/a.cpp": switch % last})), refused, last)

    def test_own_includes(self):
        for path, allowed, refused in (
            ("ir/dag/a.h", ['"ir/ids.h"'], ['"passes/p.h"', '"frontend/ast/a.h"', '"runtime/abi.h"', '"backend/b.h"']),
            ("passes/order/a.cpp", ['"ir/ids.h"', '"passes/selectors/s.h"'], ['"passes/simulate/t.h"']),
            ("passes/a.cpp", ['"ir/ids.h"', '"passes/p.h"'], ['"frontend/ast/a.h"', '"backend/b.h"', '"runtime/abi.h"']),
            ("backend/a.cpp", ['"ir/ids.h"', '"runtime/abi.h"', '"runtime/kernel_math.h"', '"runtime/shared_library.h"'], ['"passes/p.h"', '"runtime/executor/e.h"']),
            ("runtime/a.cpp", ['"runtime/abi.h"'], ['"ir/ids.h"', '"backend/b.h"', '"tests/support/golden.h"']),
            ("runtime/device/a.cpp", ['"runtime/abi.h"'], ['"runtime/cpu/c.h"', '"runtime/executor/e.h"']),
            ("runtime/cuda/a.cpp", ['"runtime/abi.h"', '"runtime/device/d.h"'], ['"runtime/cpu/c.h"', '"runtime/executor/e.h"']),
            ("runtime/executor/a.cpp", ['"runtime/device/d.h"', '"runtime/processes/p.h"'], ['"runtime/cpu/c.h"', '"runtime/cuda/c.h"']),
            ("frontend/sema/a.cpp", ['"frontend/ast/a.h"', '"ir/ids.h"'], ['"passes/p.h"', '"backend/b.h"', '"runtime/abi.h"',
                                                                          '"frontend/tools/driver.h"', '"frontend/service/s.h"']),
            ("frontend/service/a.cpp", ['"passes/p.h"', '"frontend/lower/l.h"', '"backend/b.h"'], ['"frontend/tools/driver.h"', '"runtime/abi.h"']),
            ("frontend/tools/a.cpp", ['"frontend/service/s.h"', '"passes/p.h"', '"backend/b.h"', '"runtime/executor/e.h"'],
             ['"tests/support/golden.h"']),
            ("tests/ir/a_test.cpp", ['"passes/p.h"', '"tests/support/golden.h"'], []),
        ):
            self.assertEqual(self.includes(path, *allowed), 0, path)
            for target in refused:
                self.assertEqual(self.includes(path, target), 1, f"{path} includes {target}")

    def test_libraries(self):
        for path, allowed, refused in (
            ("ir/a.h", ['"llvm/ADT/StringMap.h"', "<vector>"], ['"llvm/IR/Module.h"', "<torch/torch.h>", '"antlr4-runtime.h"', "<mpi.h>"]),
            ("frontend/parse/a.cpp", ['"antlr4-runtime.h"', '"grammar_generated/PipeParser.h"'], ["<ATen/ATen.h>"]),
            ("frontend/sema/a.cpp", [], ['"antlr4-runtime.h"', '"grammar_generated/PipeParser.h"']),
            ("runtime/a.cpp", ["<ATen/core/Tensor.h>", "<mpi.h>", "<nccl.h>", "<cuda.h>"], ['"llvm/ADT/StringMap.h"', "<gtest/gtest.h>"]),
            ("backend/jit/a.cpp", ["<nvrtc.h>"], ["<cuda_runtime.h>", "<c10/core/Device.h>"]),
            ("backend/emit_cpp/a.cpp", [], ["<nvrtc.h>"]),
            ("tests/ir/a_test.cpp", ["<gtest/gtest.h>", "<ATen/ATen.h>", "<benchmark/benchmark.h>"], ["<mpi.h>"]),
        ):
            self.assertEqual(self.includes(path, *allowed), 0, path)
            for target in refused:
                self.assertEqual(self.includes(path, target), 1, f"{path} includes {target}")

    def test_includes_start_at_the_root(self):
        self.assertEqual(len(self.check("includes", {"ir/a.h": '#include "ids.h"\n', "ir/ids.h": ""})), 1)
        self.assertEqual(len(self.check("includes", {"ir/a.h": "#include <ir/ids.h>\n", "ir/ids.h": ""})), 1)

    def test_the_offending_line_is_shown(self):
        found = self.check("includes", {"ir/a.h": '\n#include "passes/p.h"\n', "passes/p.h": ""})
        self.assertEqual(found, ['ir/a.h:2: `#include "passes/p.h"`: ir may not include this'])

    def test_citations(self):
        page = {"docs/a.md": "# A\n\n## 1. One thing\n\n### Two, three\n\n## 2. Next\n", "ir/README.md": "", "ir/b.h": ""}
        for path, text, refused in (
            ("ir/a.h", "// (docs/a.md section 2), README.md and ir/README.md\n", 0),
            ("ir/a.h", "// `docs/a.md`, sections 1 to 2\n", 0),
            ("ir/a.h", "// docs/a.md\n/// section 3\n", 1),
            ("ir/a.h", "// docs/a.md sections 1 to 4\n", 2),
            ("ir/a.h", "// DESIGN.md section 8\n", 1),
            ("ir/a.cpp", 'open("none.md");  // a.md\n', 1),
            ("ir/a.cpp", "// https://example.com/none.md, pages/P60xx.md, pages/P<number>.md\n", 0),
            ("tests/a.py", '"""docs/b.md"""\nx = "c.md"  # d.md\n', 2),
            ("docs/b.md", "[a](a.md#two-three) [b](a.md#two) [c](../ir/b.h) [d](../ir/c.h)\n", 2),
            ("README.md", "`docs/a.md` and `a.md`\n", 1),
            ("tests/testdata/a.h", "// none.md\n", 0),
        ):
            self.assertEqual(len(self.check("citations", {**page, path: text})), refused, text)

    def test_names(self):
        bad = ["ir/string_util.h", "ir/helpers/a.h", "tests/common.py", "passes/misc.cpp", "runtime/io-utils.cpp", "ir/Dag.h"]
        self.assertEqual(len(self.check("names", {name: "" for name in bad})), len(bad) + 1)  # io-utils.cpp breaks two rules
        self.assertEqual(self.check("names", {"ir/utility_of_stage.h": "", "ir/uncommon.h": "", "tests/README.md": ""}), [])

    def test_length(self):
        self.assertEqual(self.check("length", {"ir/a.h": "\n" * 600}), [])
        self.assertEqual(len(self.check("length", {"ir/a.h": "\n" * 601, "stdlib/a.pipe": "\n" * 601})), 2)

    def test_environment(self):
        bad = {"backend/a.cpp": 'getenv("CXX");\n', "runtime/b.cpp": "for (char** e = environ; *e; ++e) {}\n", "frontend/tools/main.cpp": 'std::getenv("A");\n'}
        self.assertEqual(len(self.check("environment", bad)), 3)
        good = {"frontend/tools/main.cpp": "environ;\n", "runtime/o.cpp": "read_environment(environment);\n", "tests/a.cpp": "getenv(name);\n"}
        self.assertEqual(self.check("environment", good), [])

    def test_prose(self):
        for path, text, refused in (
            ("ir/a.h", "// What makes a term adds it.\n", 1),
            ("ir/a.h", "// What is a term?\n", 0),
            ("ir/a.h", "int a;  // adds. Of two the first\n", 1),
            ("ir/a.h", "/* One line.\n * So many steps\n */\n", 1),
            ("ir/a.h", "// A run\n// is told.\n", 1),
            ("ir/a.h", "// A run.\n//\n// speaks `of`\n", 0),
            ("ir/a.cpp", 'f("// Who"); f(R"(// Whose)");\n', 0),
            ("ir/a.def", 'ROW(a, "Those of all.")  // it speaks of b\n', 2),
            ("tests/a.py", '"""Who runs."""\nx = "What"  # but for x\n', 2),
            ("docs/a.md", "# What\n\nA line has\ncome to an end.\n\n- One\n- Of two\n\n| a | Whose |\n", 4),
            ("docs/a.md", "```\nWhat\n```\nIt prints `What` and `been told`.\n", 0),
            ("Makefile", "# What only tests need.\n", 1),
            ("ir/testdata/a.pipe", "// What\n", 0),
        ):
            with unittest.mock.patch.dict(prose_rule.RATCHET_LIMITS, clear=True):
                self.assertEqual(len(self.check("prose", {path: text})), refused, text)

    def test_prose_ratchet(self):
        counted = {"ir/a.h": "// Nobody waits. Where it waits, a part of what is left.\n", "passes/a.h": "// It waits for whom?\n"}
        for limits, refused in (({"ir": 2, "passes": 1}, 0), ({"ir": 2}, 1), ({"ir": 3, "passes": 1}, 1), ({}, 2)):
            with unittest.mock.patch.dict(prose_rule.RATCHET_LIMITS, limits, clear=True):
                self.assertEqual(len(self.check("prose", counted)), refused, limits)

    def test_sources(self):
        right = "piper_library(piper_ir\n  SOURCES\n    a.cpp\n    dag/b.cpp\n  DEPS\n    z y)\n"
        tree = {"ir/CMakeLists.txt": right, "ir/a.cpp": "", "ir/dag/b.cpp": ""}
        self.assertEqual(self.check("sources", tree), [])
        self.assertEqual(len(self.check("sources", {**tree, "ir/dag/c.cpp": ""})), 1)
        unsorted = right.replace("    a.cpp\n    dag/b.cpp\n", "    dag/b.cpp\n    a.cpp\n")
        self.assertEqual(len(self.check("sources", {**tree, "ir/CMakeLists.txt": unsorted})), 1)
        self.assertEqual(len(self.check("sources", {**tree, "ir/CMakeLists.txt": right.replace("a.cpp", "# a.cpp")})), 1)

    def test_terms(self):
        for path, line, refused in (
            ("ir/a.cpp", "PiperStretch a;", 1),
            ("ir/a.cpp", "// PiperStretch a;", 0),
            ("tests/a.cpp", 'text("PiperStretch");', 0),
            ("ir/a.h", "int what;", 1),
            ("ir/a.h", "void tell(int count);", 1),
            ("ir/a.h", "int f(std::string_view whole);", 1),
            ("ir/a.h", "struct OfPhase {", 1),
            ("ir/a.h", "int value;  // what it is", 0),
            ("ir/a.h", "call(a.what, b.rest);", 0),
            ("ir/a.cpp", "bool told_ = false;", 1),
            ("tests/a_test.cpp", "TEST(Suite, WhatIsGoneIsGone) {", 1),
            ("tests/a_test.cpp", "TEST(Suite, RefusesUnknownNames) {", 0),
        ):
            with unittest.mock.patch.multiple(terms, HEADERS={}, LOCALS={}):
                self.assertEqual(len(self.check("terms", {path: line + "\n"})), refused, line)
        with unittest.mock.patch.multiple(terms, HEADERS={"ir/a.h": 1}, LOCALS={"ir": 2}):
            self.assertEqual(self.check("terms", {"ir/a.h": "int what;\n", "ir/a.cpp": "int each = 0, other; int most;\n"}), [])
            self.assertEqual(len(self.check("terms", {"ir/a.h": "int value;\n", "ir/a.cpp": "int each = 0;\n"})), 2)


unittest.main()
