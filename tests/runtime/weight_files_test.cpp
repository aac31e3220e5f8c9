// Files of weights: those that open, those that are damaged or hostile, and how they fit a model.
#include "runtime/weights/weight_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "runtime/weights/match.h"
#include "tests/runtime/weight_file_text.h"
#include "tests/support/temporary_folder.h"

namespace piper::runtime {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;

TestTensor tensor(const std::string& name, std::vector<std::int64_t> dims = {2}) {
  std::size_t elements = 1;
  for (const std::int64_t dim : dims) elements *= static_cast<std::size_t>(dim);
  return {name, StoredType::f32, std::move(dims), std::string(elements * 4, '\0')};
}

std::string refusal(const std::string& path) {
  Failure failure;
  if (WeightFiles::open(path, failure)) return "";
  EXPECT_EQ(failure.code, kWeightsUnreadable);
  EXPECT_NE(failure.hint, "");
  return failure.message;
}

TEST(WeightFiles, AFileOrAFolderOpens) {
  const TemporaryFolder folder;
  const std::string one = folder.write("any.name", weight_file({tensor("a"), tensor("b")}));
  folder.write("model/model.safetensors", weight_file({tensor("a"), tensor("b")}));
  folder.write("pieces/part one.safetensors", weight_file({tensor("a")}));
  folder.write("pieces/2", weight_file({tensor("b")}));
  folder.write("pieces/not.named", "nothing");
  folder.write(
      "pieces/model.safetensors.index.json",
      R"({"metadata":{"total_size":16},"weight_map":{"a":"part one.safetensors","b":"2"}})");
  // As the cache of a hub has them.
  fs::create_directory(folder.path() / "links");
  fs::create_symlink("../any.name", folder.path() / "links" / "model.safetensors");
  for (const std::string& path :
       {one, (folder.path() / "model").string(), (folder.path() / "pieces").string(),
        (folder.path() / "links").string()}) {
    Failure failure;
    const auto files = WeightFiles::open(path, failure);
    ASSERT_TRUE(files) << failure.message;
    EXPECT_EQ(files->path(), path);
    EXPECT_EQ(files->is_folder(), path != one);
    ASSERT_EQ(files->tensors().size(), 2u);
    EXPECT_TRUE(files->tensors().contains("a"));
    EXPECT_TRUE(files->tensors().contains("b"));
  }
}

TEST(WeightFiles, OtherFilesAreRefused) {
  const TemporaryFolder folder;
  const std::string root = folder.path().string() + "/";
  EXPECT_EQ(refusal(root + "none"), "cannot read `" + root + "none`: No such file or directory");
  fs::create_symlink("loop", folder.path() / "loop");
  EXPECT_EQ(refusal(root + "loop"),
            "cannot read `" + root + "loop`: Too many levels of symbolic links");
  ASSERT_EQ(mkfifo((root + "pipe").c_str(), 0600), 0);
  EXPECT_EQ(refusal(root + "pipe"), "cannot read `" + root + "pipe`: it is no plain file");
  EXPECT_EQ(refusal("/dev/zero"), "cannot read `/dev/zero`: it is no plain file");
  fs::create_directories(folder.path() / "empty");
  EXPECT_EQ(refusal(root + "empty"),
            "cannot read `" + root +
                "empty`: it has neither `model.safetensors` nor `model.safetensors.index.json`");
  fs::create_directories(folder.path() / "deep" / "model.safetensors");
  EXPECT_EQ(refusal(root + "deep"),
            "cannot read `" + root + "deep/model.safetensors`: it is no plain file");
  const std::string complete = weight_file({tensor("a"), tensor("b")});
  for (const std::size_t bytes : {0u, 7u, 8u, 40u}) {
    folder.write("short", complete.substr(0, bytes));
    EXPECT_NE(refusal(root + "short"), "") << bytes;
  }
  folder.write("short", complete.substr(0, complete.size() - 1));
  EXPECT_NE(refusal(root + "short").find("describes `16` bytes of data"), std::string::npos);
}

TEST(WeightFiles, AnIndexIsNotTrusted) {
  struct Row {
    const char* index;
    const char* reason;  // after the name of the file
  };
  const TemporaryFolder folder;
  folder.write("outside", weight_file({tensor("a")}));
  folder.write("m/1", weight_file({tensor("a"), tensor("b")}));
  folder.write("m/2", weight_file({tensor("b")}));
  folder.write("m/3", weight_file({tensor("c")}));
  fs::create_directories(folder.path() / "m" / "folder");
  const std::string file = folder.path().string() + "/m/";
  for (const Row& row : std::vector<Row>{
           {"", "model.safetensors.index.json`: it is no JSON: "},
           {"{\"weight_map\":{}", "model.safetensors.index.json`: it is no JSON: "},
           {"[]", "model.safetensors.index.json`: it has no object `weight_map`"},
           {"{}", "model.safetensors.index.json`: it has no object `weight_map`"},
           {R"({"weight_map":["a"]})",
            "model.safetensors.index.json`: it has no object `weight_map`"},
           {R"({"weight_map":{"a":1}})",
            "model.safetensors.index.json`: its tensor `a` is in no file beside it"},
           {R"({"weight_map":{"a":"../outside"}})",
            "model.safetensors.index.json`: its tensor `a` is in no file beside it"},
           {R"({"weight_map":{"a":"/etc/passwd"}})",
            "model.safetensors.index.json`: its tensor `a` is in no file beside it"},
           {R"({"weight_map":{"a":".."}})",
            "model.safetensors.index.json`: its tensor `a` is in no file beside it"},
           {R"({"weight_map":{"a":""}})",
            "model.safetensors.index.json`: its tensor `a` is in no file beside it"},
           {"{\"weight_map\":{\"a\":\"1\\u0000\"}}",
            "model.safetensors.index.json`: its tensor `a` is in no file beside it"},
           {R"({"weight_map":{"a":"1","a":"2"}})",
            "model.safetensors.index.json`: it is no JSON: "},
           {R"({"weight_map":{"a":"none"}})", "none`: No such file or directory"},
           {R"({"weight_map":{"a":"folder"}})", "folder`: it is no plain file"},
           {R"({"weight_map":{"a":"1"}})", "1`: its tensor `b` is not in the index"},
           {R"({"weight_map":{"a":"1","b":"2"}})",
            "1`: it has the tensor `b`, and the index says that `2` has it"},
           {R"({"weight_map":{"c":"3","d":"3"}})",
            "3`: it has no tensor `d`, and the index says that it does"},
       }) {
    folder.write("m/model.safetensors.index.json", row.index);
    EXPECT_EQ(refusal((folder.path() / "m").string()).find("cannot read `" + file + row.reason), 0u)
        << row.index << "\n"
        << refusal((folder.path() / "m").string());
  }
}

TEST(WeightFiles, AreReadWhereTheyAre) {
  const TemporaryFolder folder;
  const std::string path =
      folder.write("w", weight_file({{"a", StoredType::f32, {2}, bytes_of<float>({1, 2})},
                                     {"b", StoredType::f64, {1}, bytes_of<double>({3})}}));
  Failure failure;
  const auto files = WeightFiles::open(path, failure);
  ASSERT_TRUE(files);
  const WeightFiles::Tensor& b = files->tensors().at("b");
  double value = 0;
  ASSERT_FALSE(files->read(b.file, b.position, sizeof value, &value));
  EXPECT_EQ(value, 3);
  const std::uint32_t before = files->fingerprint();
  EXPECT_EQ(WeightFiles::open(path, failure)->fingerprint(), before);
  fs::resize_file(path, fs::file_size(path) - 1);
  EXPECT_EQ(files->read(b.file, b.position, sizeof value, &value)->message,
            "cannot read `" + path + "`: it became shorter while it was read");
}

// ---- how files fit a model

struct Matched {
  std::optional<Failure> failure;
  WeightsReport report;
};

Matched match(const std::string& path, const WeightMap& map, Missing missing = Missing::refused) {
  Failure failure;
  Matched matched;
  const auto files = WeightFiles::open(path, failure);
  EXPECT_TRUE(files) << failure.message;
  if (files) matched.failure = match_weights(*files, map, missing, matched.report);
  return matched;
}

std::vector<std::string> notes_of(const Failure& failure) {
  std::vector<std::string> notes;
  for (const Note& note : failure.notes) notes.push_back(note.text);
  return notes;
}

TEST(MatchWeights, AllDifferencesAreListed) {
  const TemporaryFolder folder;
  const std::string path =
      folder.write("w", weight_file({tensor("shape", {3, 2}),
                                     {"type", StoredType::i32, {2}, std::string(8, '\0')},
                                     tensor("right"),
                                     tensor("surplus")}));
  const std::vector<ParameterShape> shapes = {
      {"shape", {2, 3}}, {"type", {2}}, {"right", {2}}, {"missing", {4}}};
  const Matched refused = match(path, own_names(shapes));
  ASSERT_TRUE(refused.failure);
  EXPECT_EQ(refused.failure->code, kWeightsDiffer);
  EXPECT_EQ(refused.failure->message, "the weights of `" + path + "` do not fit the model");
  EXPECT_EQ(notes_of(*refused.failure),
            (std::vector<std::string>{"`shape` is F32[3, 2], and that of this model is [2, 3]",
                                      "`type` is I32[2], and weights are F64, F32, F16 or BF16",
                                      "it has no `missing`"}));
  EXPECT_NE(refused.failure->hint.find("missing: init"), std::string::npos);
  // A word allows what is missing, and no other difference.
  EXPECT_EQ(notes_of(*match(path, own_names(shapes), Missing::initialised).failure).size(), 2u);
  const Matched taken = match(path, own_names(std::vector<ParameterShape>{shapes[2], shapes[3]}),
                              Missing::initialised);
  ASSERT_FALSE(taken.failure) << taken.failure->message;
  EXPECT_EQ(report_text(taken.report),
            "weights of " + path + ": 1 parameter from 1 tensor\n" +
                "not in it, with first values: `missing`\n"
                "not read, because no parameter has them: `shape`, `surplus`, `type`\n");
}

TEST(MatchWeights, LongListsAreCut) {
  const TemporaryFolder folder;
  const std::string path = folder.write("w", weight_file({tensor("other")}));
  std::vector<ParameterShape> shapes;
  for (int i = 0; i < 40; ++i) shapes.push_back({"p" + std::to_string(i), {2}});
  const Matched refused = match(path, own_names(shapes));
  ASSERT_TRUE(refused.failure);
  EXPECT_EQ(refused.failure->notes.size(), 17u);
  EXPECT_EQ(refused.failure->notes.back().text, "24 more differ");
  const std::string text = report_text(match(path, own_names(shapes), Missing::initialised).report);
  EXPECT_NE(text.find(" and 32 more\n"), std::string::npos) << text;
}

/// A parameter that the file has in part is refused, whatever may be missing.
TEST(MatchWeights, PartsOfParametersBelongTogether) {
  const TemporaryFolder folder;
  const std::string path = folder.write("w", weight_file({tensor("e.0"), tensor("x")}));
  WeightMap map;
  for (std::uint64_t i = 0; i < 2; ++i)
    map.weights.push_back({"up", "e." + std::to_string(i), {2}, 0, {2}, {1}, 2 * i, {1}});
  map.weights.push_back({"y", "y", {2}, 0, {2}, {1}});
  for (const Missing missing : {Missing::refused, Missing::initialised}) {
    const Matched matched = match(path, map, missing);
    ASSERT_TRUE(matched.failure);
    EXPECT_EQ(notes_of(*matched.failure)[0], "it has no `e.1`, which has values of `up`");
    EXPECT_EQ(matched.failure->notes.size(), missing == Missing::refused ? 2u : 1u);
    EXPECT_EQ(matched.report.missing, std::vector<std::string>{"y"});
  }
}

/// A map has other names; those that it ignores are no surplus.
TEST(MatchWeights, MapsRearrange) {
  const TemporaryFolder folder;
  const std::string path =
      folder.write("w", weight_file({tensor("qkv", {3, 4}), tensor("buffer"), tensor("x")}));
  WeightMap map;
  map.name = "foreign";
  map.ignored = {"buffer", "not.there"};
  for (int i = 0; i < 2; ++i)
    map.weights.push_back(
        {i ? "k" : "q", "qkv", {3, 4}, static_cast<std::uint64_t>(2 * i), {2, 3}, {1, 4}});
  map.weights.push_back({"x", "x", {2}, 0, {2}, {1}});
  const Matched matched = match(path, map);
  ASSERT_FALSE(matched.failure) << matched.failure->message;
  EXPECT_EQ(report_text(matched.report),
            "weights of " + path + ": 3 parameters from 2 tensors, 2 rearranged\n");
  map.weights[0].tensor_dims = map.weights[1].tensor_dims = {4, 3};
  EXPECT_EQ(notes_of(*match(path, map).failure),
            std::vector<std::string>{"`qkv` is F32[3, 4], and that of this model is [4, 3]"});
  map.weights[0].tensor = "q.weight";
  EXPECT_EQ(notes_of(*match(path, map).failure)[0],
            "it has no `q.weight`, which has values of `q`");
}

TEST(MatchWeights, ConfigsStateFacts) {
  const TemporaryFolder folder;
  const std::string model = weight_file({tensor("x")});
  folder.write("m/model.safetensors", model);
  const std::string alone = folder.write("alone.safetensors", model);
  WeightMap map = own_names(std::vector<ParameterShape>{{"x", {2}}});
  map.config = {{"rope_theta", "10000"}, {"model_type", "\"llama\""}, {"sliding_window", "null"}};
  const std::string path = (folder.path() / "m").string();
  struct Row {
    const char* config;
    std::vector<std::string> notes;
  };
  for (
      const Row& row : std::vector<Row>{
          {R"({"model_type":"llama","rope_theta":1e4,"other":[1]})", {}},
          {R"({"model_type":"llama","rope_theta":10000.0,"sliding_window":null})", {}},
          {R"({"model_type":"gpt2","rope_theta":500000,"sliding_window":4096})",
           {"`rope_theta` of its `config.json` is `500000`, and that of this model is `10000`",
            "`model_type` of its `config.json` is `gpt2`, and that of this model is `llama`",
            "`sliding_window` of its `config.json` is `4096`, and that of this model is `null`"}},
          {R"({"model_type":"llama","rope_parameters":{"rope_theta":5e5,"rope_type":"default"}})",
           {"`rope_theta` of its `config.json` is `500000`, and that of this model is `10000`"}},
          {R"({"model_type":"llama","rope_parameters":{"rope_theta":1e4,"rope_type":"llama3"}})",
           {"`rope_type` of its `config.json` is `llama3`, and Piper does not have scaled rotary "
            "positions"}},
          {R"({"model_type":"llama","rope_theta":1e4,"rope_scaling":{"type":"linear"}})",
           {"`type` of its `config.json` is `linear`, and Piper does not have scaled rotary "
            "positions"}},
          {R"({"model_type":"llama","rope_theta":1e4,"partial_rotary_factor":0.5})",
           {"`partial_rotary_factor` of its `config.json` is `0.5`, and Piper does not have rotary "
            "positions of a part of the width"}},
          {R"({"model_type":"llama","rope_theta":1e4,"partial_rotary_factor":1.0})", {}},
          {R"({"model_type":"llama","rope_theta":1e4,"rope_parameters":{"rope_theta":5}})",
           {"`rope_theta` of its `config.json` is `5`, and that of this model is `10000`"}},
          {R"({"model_type":"llama","rope_parameters":{"type":"yarn","rope_theta":1e4}})",
           {"`type` of its `config.json` is `yarn`, and Piper does not have scaled rotary "
            "positions"}},
          {R"({"model_type":"llama","rope_theta":1e4,"rope_parameters":{"full":{"rope_type":"yarn"}}})",
           {"`rope_type` of its `config.json` is `yarn`, and Piper does not have scaled rotary "
            "positions"}},
          {R"({"model_type":"llama","rope_theta":1e4,"layer_types":["full_attention","sliding_attention"]})",
           {"`layer_types` of its `config.json` is `[...]`, and Piper does not have attention to a "
            "window of positions"}},
          {R"({"model_type":"llama","rope_theta":1e4,"layer_types":["full_attention"]})", {}},
          {R"({"model_type":"llama","rope_theta":1e4,"other":{"rope_theta":5,"type":"x"}})", {}},
      }) {
    folder.write("m/config.json", row.config);
    const Matched matched = match(path, map);
    EXPECT_EQ(matched.failure ? notes_of(*matched.failure) : std::vector<std::string>(), row.notes)
        << row.config;
    // The file of that name has the folder's facts.
    EXPECT_EQ(match(path + "/model.safetensors", map).failure.has_value(), !row.notes.empty());
  }
  // A file from before a fact had a name says nothing of it.
  folder.write("m/config.json", R"({"model_type":"llama"})");
  const Matched older = match(path, map);
  ASSERT_FALSE(older.failure);
  EXPECT_EQ(report_text(older.report),
            "weights of " + path + ": 1 parameter from 1 tensor\n" +
                "not compared, because its `config.json` lacks them: `rope_theta`\n");
  // An object of rotary numbers that are plain is as good as none.
  map.config.push_back({"rope_scaling", "null"});
  folder.write("m/config.json", R"({"model_type":"llama","rope_scaling":{"rope_type":"default"}})");
  EXPECT_FALSE(match(path, map).failure);
  folder.write("m/config.json", R"({"model_type":"llama","rope_scaling":{"factor":2}})");
  EXPECT_TRUE(match(path, map).failure);
  map.config.back().key = "quantization_config";
  folder.write("m/config.json", R"({"model_type":"llama","quantization_config":{"type":"int8"}})");
  EXPECT_TRUE(match(path, map).failure);
  map.config.pop_back();
  // A window is none while it is switched off, and a fact of a map decides alone.
  map.config.pop_back();
  folder.write("m/config.json", R"({"sliding_window":64,"use_sliding_window":false})");
  EXPECT_FALSE(match(path, map).failure);
  folder.write("m/config.json", R"({"sliding_window":64})");
  EXPECT_EQ(
      notes_of(*match(path, map).failure),
      std::vector<std::string>{"`sliding_window` of its `config.json` is `64`, and Piper does "
                               "not have attention to a window of positions"});
  map.config.push_back({"sliding_window", "null"});
  folder.write("m/config.json", "{");
  EXPECT_EQ(match(path, map).failure->code, kWeightsUnreadable);
  std::filesystem::remove(folder.path() / "m/config.json");
  EXPECT_EQ(match(path, map).report.unchecked.size(), 3u);
  const Matched unchecked = match(alone, map);
  ASSERT_FALSE(unchecked.failure);
  EXPECT_EQ(report_text(unchecked.report),
            "weights of " + alone + ": 1 parameter from 1 tensor\n" +
                "not compared, because no `config.json` is beside it: `rope_theta`, `model_type`, "
                "`sliding_window`\n");
}

TEST(CheckMap, MapsAreThoseOfTheirModel) {
  const std::vector<ParameterShape> shapes = {{"a", {2, 3}}, {"s", {}}};
  const WeightMap right = own_names(shapes);
  EXPECT_FALSE(check_map(right, shapes));
  const auto wrong = [&](auto change) {
    WeightMap map = right;
    change(map.weights);
    const auto failure = check_map(map, shapes);
    EXPECT_TRUE(failure && failure->code == kBadJob);
    return failure ? failure->message : "";
  };
  using Weights = std::vector<MappedWeight>;
  EXPECT_NE(wrong([](Weights& w) { w.pop_back(); }).find("it lacks `s`"), std::string::npos);
  wrong([](Weights& w) { w.push_back(w[0]); });
  wrong([](Weights& w) { w[0].parameter = "b"; });
  wrong([](Weights& w) { w[0].factors = {2, 2}; });
  wrong([](Weights& w) { w[0].factors = {6}; });
  wrong([](Weights& w) { w[0].offset = 1; });
  wrong([](Weights& w) { w[0].offset = UINT64_MAX; });
  wrong([](Weights& w) { w[0].strides = {-3, 1}; });
  wrong([](Weights& w) { w[0].strides = {0, 1}; });
  wrong([](Weights& w) { w[0].strides = {INT64_MAX, 1}; });
  wrong([](Weights& w) { w[0].tensor_dims = {2, 2}; });
  wrong([](Weights& w) { w[0].tensor_dims = {INT64_MAX, INT64_MAX}; });
  wrong([](Weights& w) { w[1].tensor = "a"; });
  // Parts of a parameter are all of it.
  const auto split = [](Weights& w, std::uint64_t second) {
    w[0] = {"a", "a.0", {3}, 0, {3}, {1}, 0, {1}};
    w.push_back({"a", "a.1", {3}, 0, {3}, {1}, second, {1}});
  };
  WeightMap parts = right;
  split(parts.weights, 3);
  EXPECT_FALSE(check_map(parts, shapes));
  EXPECT_NE(wrong([&](Weights& w) {
              split(w, 2);
            }).find("its element `2` is in `a.1` and in another place"),
            std::string::npos);
  wrong([&](Weights& w) { split(w, 4); });
  wrong([&](Weights& w) { split(w, UINT64_MAX); });
  wrong([&](Weights& w) {
    split(w, 3);
    w.pop_back();
  });
  wrong([](Weights& w) { w[0].parameter_offset = 1; });
  wrong([](Weights& w) { w[0].parameter_strides = {3}; });
  wrong([](Weights& w) { w[0].parameter_strides = {3, 0}; });
  // Numbers that are one parameter have a tensor each.
  WeightMap numbers;
  for (std::uint64_t i = 0; i < 2; ++i)
    numbers.weights.push_back({"n", "n." + std::to_string(i), {}, 0, {}, {}, i, {}});
  EXPECT_FALSE(check_map(numbers, std::vector<ParameterShape>{{"n", {2}}}));
}

}  // namespace
}  // namespace piper::runtime
