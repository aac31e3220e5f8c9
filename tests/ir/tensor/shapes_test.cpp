// The shape rule of every op: results and refusals, as text in golden files.

#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "ir/tensor/op_rules.h"
#include "tests/support/file_test.h"
#include "tests/support/golden.h"
#include "tests/support/op_cases.h"

namespace piper::test {
namespace {

using tensor::Op;

struct ShapeLine {
  std::string text;
  Op op{};
  tensor::Inferred inferred;
};

std::vector<ShapeLine> infer_lines(const std::string& text, Context& context) {
  std::vector<ShapeLine> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t first = line.find('|'), second = line.find('|', first + 1);
    std::string name = line.substr(0, line.find(' '));
    const auto op = tensor::parse_op(name);
    if (!op || second == std::string::npos) {
      ADD_FAILURE() << "cannot read: " << line;
      continue;
    }
    std::vector<tensor::Type> operands;
    std::istringstream types(line.substr(first + 1, second - first - 1));
    for (std::string type; std::getline(types, type, ';');) {
      if (type.find('[') != std::string::npos) operands.push_back(make_type(context, type));
    }
    const tensor::Attrs attrs = make_attrs(context, line.substr(second + 1));
    lines.push_back({line, *op, tensor::infer(*op, operands, attrs, context.symbols)});
  }
  return lines;
}

PIPER_FILE_TEST(TensorShapes, "tests/ir/testdata/tensor_shapes", ".shapes",
                [](const FileTest& test) {
                  Context context;
                  std::string out;
                  for (const ShapeLine& line : infer_lines(test.text, context)) {
                    out += line.text + "\n";
                    if (!line.inferred.error.empty())
                      out += "    error: " + line.inferred.error + "\n";
                    for (const tensor::Type& type : line.inferred.types)
                      out += "    " + print(type, context.symbols) + "\n";
                  }
                  expect_golden(test.beside(".out"), out);
                });

TEST(TensorShapes, EveryOpHasALegalAndAnIllegalLine) {
  std::set<Op> legal, illegal;
  Context context;
  for (const char* name : {"pointwise", "reduction", "parts", "library"}) {
    const auto text = read_text("tests/ir/testdata/tensor_shapes/" + std::string(name) + ".shapes");
    ASSERT_TRUE(text);
    for (const ShapeLine& line : infer_lines(*text, context)) {
      (line.inferred.error.empty() ? legal : illegal).insert(line.op);
      EXPECT_EQ(line.inferred.error.empty(), !line.inferred.types.empty()) << line.text;
    }
  }
  for (const tensor::OpInfo& info : tensor::all_ops()) {
    EXPECT_TRUE(legal.count(info.op)) << "no legal shapes of `" << info.name << "`";
    EXPECT_TRUE(illegal.count(info.op)) << "no illegal shapes of `" << info.name << "`";
  }
}

TEST(TensorTypes, ElementsOfHugeTypesDoNotWrapAround) {
  Context context;
  const tensor::Type type =
      make_type(context, "f64[a: 4611686018427387904, b: 4611686018427387904]");
  EXPECT_GT(type.elements(), 0);
  EXPECT_GT(type.bytes(), 0);
}

}  // namespace
}  // namespace piper::test
