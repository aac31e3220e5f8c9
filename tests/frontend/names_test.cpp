// `names` items: the maps of models as goldens, mistakes to caret expectations, and the law that
// makes a map invertible.

#include <map>

#include "tests/diagnostics/findings.h"
#include "tests/frontend/lowered.h"
#include "tests/support/file_test.h"
#include "tests/support/golden.h"

namespace piper {
namespace {

using test::Lowered;

std::string list_text(const std::vector<std::int64_t>& list) {
  std::string text;
  for (const std::int64_t number : list)
    text += (text.empty() ? "" : ", ") + std::to_string(number);
  return "[" + text + "]";
}

/// `q: extents [4, 2] at 0 by [2, 1]  <->  "h.0.q"[2, 4] at 0 by [1, 4]`
std::string map_text(const WeightMap& map) {
  std::string text = "names " + map.name + "\n";
  for (const MappedWeight& weight : map.weights) {
    text += "  " + weight.parameter + ": extents " + list_text(weight.factors) + " at " +
            std::to_string(weight.parameter_offset) + " by " + list_text(weight.parameter_strides) +
            "  <->  \"" + weight.tensor + "\"" + list_text(weight.tensor_dims) + " at " +
            std::to_string(weight.offset) + " by " + list_text(weight.strides) + "\n";
  }
  for (const std::string& name : map.ignored) text += "  ignore \"" + name + "\"\n";
  for (const ConfigFact& fact : map.config) text += "  " + fact.key + ": " + fact.value + "\n";
  return text;
}

std::int64_t product(const std::vector<std::int64_t>& list) {
  std::int64_t result = 1;
  for (const std::int64_t number : list) result *= number;
  return result;
}

/// Counts how often each element is named from `offset` on.
void count(std::uint64_t offset, const std::vector<std::int64_t>& factors,
           const std::vector<std::int64_t>& strides, std::vector<int>& counts) {
  ASSERT_EQ(factors.size(), strides.size());
  for (std::int64_t i = 0; i < product(factors); ++i) {
    std::uint64_t at = offset;
    std::int64_t left = i;
    for (std::size_t f = factors.size(); f-- > 0; left /= factors[f])
      at += static_cast<std::uint64_t>(left % factors[f] * strides[f]);
    ASSERT_LT(at, counts.size());
    ++counts[at];
  }
}

/// Every element of every parameter is in the map once, and so is every element of every tensor.
void expect_invertible(const WeightMap& map, const tensor::Graph& model) {
  std::map<std::string, std::vector<int>> parameters, tensors;
  for (const tensor::Param& param : model.params) {
    std::vector<std::int64_t> extents;
    for (const tensor::Dim& dim : model.type(param.value).dims) extents.push_back(dim.extent);
    parameters[std::string(model.context().text(param.name))].resize(
        static_cast<std::size_t>(product(extents)));
  }
  for (const MappedWeight& weight : map.weights) {
    std::vector<int>& tensor = tensors[weight.tensor];
    const auto size = static_cast<std::size_t>(product(weight.tensor_dims));
    ASSERT_TRUE(tensor.empty() || tensor.size() == size) << weight.tensor;
    tensor.resize(size);
    ASSERT_TRUE(parameters.contains(weight.parameter)) << weight.parameter;
    count(weight.offset, weight.factors, weight.strides, tensor);
    count(weight.parameter_offset, weight.factors, weight.parameter_strides,
          parameters[weight.parameter]);
  }
  for (const auto* all : {&parameters, &tensors}) {
    for (const auto& [name, counts] : *all) {
      for (const int times : counts) ASSERT_EQ(times, 1) << name;
    }
  }
  for (const std::string& name : map.ignored) EXPECT_FALSE(tensors.contains(name)) << name;
}

PIPER_FILE_TEST(NamesGoldens, "tests/frontend/testdata/names/goldens", ".pipe",
                [](const test::FileTest& test) {
                  Lowered lowered(test.text, test.path);
                  ASSERT_TRUE(lowered.program.ok) << lowered.report();
                  std::string text;
                  for (std::size_t i = 0; i < lowered.program.trains.size(); ++i) {
                    ASSERT_TRUE(lowered.train(sema::TrainId::at(i))) << lowered.report();
                    for (const lower::ResolvedNames& names : lowered.result->names) {
                      text += map_text(names.map);
                      expect_invertible(names.map, lowered.result->model);
                    }
                  }
                  test::expect_golden(test.beside(".map"), text);
                });

PIPER_FILE_TEST(NamesErrors, "tests/frontend/testdata/names/errors", ".pipe",
                [](const test::FileTest& test) {
                  test::expect_findings(
                      test, [&](const std::string& path, const std::string& source) {
                        Lowered lowered(source, path);
                        EXPECT_TRUE(lowered.program.ok) << lowered.report();
                        for (std::size_t i = 0; i < lowered.program.trains.size(); ++i) {
                          const std::size_t before = lowered.sink.error_count();
                          const bool fine = lowered.train(sema::TrainId::at(i));
                          EXPECT_EQ(fine, lowered.sink.error_count() == before)
                              << lowered.program.trains[i].name();
                        }
                        return test::findings(lowered.sink, lowered.file);
                      });
                });

/// The maps of the library fit its models, tied and not, with few keys and with as many as queries.
TEST(NamesLibrary, MapsFitTheirModels) {
  const std::pair<const char*, const char*> kCases[] = {
      {"hf_gpt2", "gpt2(layers: 2, dim: 8, heads: 2, vocab: 11, positions: 6)"},
      {"hf_gpt2_base", "gpt2(layers: 2, dim: 8, heads: 2, vocab: 11, positions: 6)"},
      {"hf_llama", "llama(layers: 2, dim: 8, heads: 4, vocab: 11, hidden: 12, kv_heads: 2)"},
      {"hf_llama", "llama(layers: 2, dim: 8, heads: 2, vocab: 11, hidden: 12, tied: true)"},
      {"hf_mistral", "llama(layers: 1, dim: 8, heads: 4, vocab: 11, hidden: 12, kv_heads: 1)"},
      {"hf_qwen3",
       "llama(layers: 2, dim: 8, heads: 4, vocab: 11, hidden: 12, kv_heads: 2, width: 6, qk_norm: true, tied: true)"},
  };
  for (const auto& [names, model] : kCases) {
    SCOPED_TRACE(model);
    const std::string file = std::string(names) == "hf_gpt2_base" ? "hf_gpt2" : names;
    Lowered lowered("use std.models.gpt2\nuse std.models.llama\nuse std.names." + file +
                    "\nmesh one(p: 1)\ntrain t = " + model +
                    " on one {\n    data:  synthetic(batch: 2, seq: 4, classes: 11)\n"
                    "    optim: sgd(lr: 0.1)\n    steps: 1\n    let _map = " +
                    names + "\n}\n");
    ASSERT_TRUE(lowered.train("t")) << lowered.report();
    ASSERT_TRUE(lowered.sink.empty()) << lowered.report();
    ASSERT_EQ(lowered.result->names.size(), 1u);
    expect_invertible(lowered.result->names[0].map, lowered.result->model);
  }
}

/// A line of the library is no place that a user can change: the diagnostic is at the name in the
/// train.
TEST(NamesLibrary, MistakesAreAtTheMention) {
  Lowered lowered(
      "use std.models.mlp\nuse std.names.hf_llama\nmesh one(p: 1)\n"
      "train t = mlp(layers: 1, features: 2, hidden: 2, classes: 2) on one {\n"
      "    data:  synthetic(batch: 2, classes: 2)\n    optim: sgd(lr: 0.1)\n    steps: 1\n"
      "    let _map = hf_llama\n}\n");
  EXPECT_FALSE(lowered.train("t"));
  for (const Diagnostic& diagnostic : lowered.sink.sorted())
    EXPECT_EQ(diagnostic.range.file, lowered.file) << diagnostic.message;
}

TEST(NamesValue, OnlyTrainsResolveIt) {
  Lowered lowered("names mine { w: \"w\"[dim] }\nmesh one(p: 1)\n");
  EXPECT_TRUE(lowered.program.ok) << lowered.report();
  EXPECT_TRUE(lowered.program.find_names("mine").valid());
  EXPECT_FALSE(lowered.program.find_names("yours").valid());
}

/// The map of `init` is that of its item, whichever others the train mentions.
TEST(NamesValue, InitialWeightsHaveThoseOfTheirItem) {
  Lowered lowered(
      "model net() {\n"
      "    input x: tensor[batch, dim: 4]\n"
      "    weight w[dim, out: 3]\n"
      "    loss square(x @ w)\n"
      "}\n"
      "names other { w: \"other\"[dim, out] }\n"
      "names mine { w: \"mine\"[out, dim] }\n"
      "mesh one(p: 1)\n"
      "train t = net() on one {\n"
      "    data: synthetic(batch: 2)\n"
      "    optim: sgd(lr: 0.1)\n"
      "    steps: 5\n"
      "    let _unused = other\n"
      "    let map = mine\n"
      "    init: weights(\"w\", missing: init, names: map)\n"
      "}\n");
  ASSERT_TRUE(lowered.train("t")) << lowered.report();
  const auto& init = lowered.result->strategy.settings.init;
  ASSERT_TRUE(init && init->map);
  EXPECT_TRUE(init->keeps_missing);
  EXPECT_EQ(init->names, "mine");
  ASSERT_EQ(init->map->weights.size(), 1u);
  EXPECT_EQ(init->map->weights[0].tensor, "mine");
  EXPECT_EQ(init->map->weights[0].tensor_dims, (std::vector<std::int64_t>{3, 4}));
}

}  // namespace
}  // namespace piper
