// Weights from the memory of ranks into files and back, by maps of any order, type and layout.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "runtime/checkpoint/checkpoint_writer.h"
#include "runtime/device/state.h"
#include "runtime/weights/export_weights.h"
#include "runtime/half.h"
#include "runtime/weights/load_weights.h"
#include "runtime/weights/whole_parameters.h"
#include "tests/runtime/state_job.h"
#include "tests/runtime/weight_file_text.h"
#include "tests/support/golden.h"
#include "tests/support/temporary_folder.h"

namespace piper::runtime {
namespace {

namespace fs = std::filesystem;
using test::Random;
using test::TemporaryFolder;

/// A weight with its factors in a random order: other dimensions, cut into factors, permuted.
MappedWeight rearranged(const ParameterShape& shape, Random& random) {
  MappedWeight weight{shape.name, "file." + shape.name, {}, 0, {}, {}};
  for (const std::int64_t dim : shape.dims) {
    const std::int64_t factor = dim % 3 == 0 && random.chance(0.5) ? 3 : 1;
    weight.factors.insert(weight.factors.end(), {factor, dim / factor});
  }
  std::vector<std::size_t> order(weight.factors.size());
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
  random.shuffle(order);
  weight.strides.resize(order.size());
  std::int64_t distance = 1;
  for (const std::size_t k : order) {
    weight.strides[k] = distance;
    distance *= weight.factors[k];
    weight.tensor_dims.insert(weight.tensor_dims.begin(), weight.factors[k]);
  }
  return weight;
}

std::int64_t product(const std::vector<std::int64_t>& factors) {
  std::int64_t elements = 1;
  for (const std::int64_t factor : factors) elements *= factor;
  return elements;
}

/// A weight with a tensor of its own for each position of one of its factors.
std::vector<MappedWeight> spread(const MappedWeight& weight, std::size_t hole) {
  std::vector<MappedWeight> parts;
  std::vector<std::int64_t> distances(weight.factors.size(), 1);
  for (std::size_t k = distances.size(); k-- > 1;)
    distances[k - 1] = distances[k] * weight.factors[k];
  for (std::int64_t i = 0; i < weight.factors[hole]; ++i) {
    MappedWeight part{weight.parameter, weight.tensor + "." + std::to_string(i), {}, 0, {}, {}};
    part.parameter_offset = static_cast<std::uint64_t>(i * distances[hole]);
    for (std::size_t k = 0; k < weight.factors.size(); ++k) {
      if (k == hole) continue;
      const bool outside = weight.strides[k] > weight.strides[hole];
      part.factors.push_back(weight.factors[k]);
      part.strides.push_back(outside ? weight.strides[k] / weight.factors[hole]
                                     : weight.strides[k]);
      part.parameter_strides.push_back(distances[k]);
    }
    part.tensor_dims = {product(part.factors)};
    parts.push_back(std::move(part));
  }
  return parts;
}

/// A map in which some parameters are in several tensors, or share a tensor, one behind the other.
WeightMap random_map(const std::vector<ParameterShape>& shapes, Random& random) {
  WeightMap map;
  map.name = "random";
  const bool spreads = random.chance(0.4);
  for (const ParameterShape& shape : shapes) {
    const MappedWeight weight = rearranged(shape, random);
    if (!spreads || weight.factors.empty() || random.chance(0.3)) {
      map.weights.push_back(weight);
      continue;
    }
    const auto hole = static_cast<std::size_t>(
        random.between(0, static_cast<std::int64_t>(weight.factors.size()) - 1));
    for (MappedWeight& part : spread(weight, hole)) map.weights.push_back(std::move(part));
  }
  if (spreads) random.shuffle(map.weights);
  if (spreads || !random.chance(0.6)) return map;
  std::uint64_t end = 0;
  const std::size_t fused = std::min<std::size_t>(map.weights.size(), 3);
  for (std::size_t i = 0; i < fused; ++i) {
    MappedWeight& weight = map.weights[i];
    weight.tensor = "fused";
    weight.offset = end;
    end += static_cast<std::uint64_t>(product(weight.factors));
  }
  for (std::size_t i = 0; i < fused; ++i)
    map.weights[i].tensor_dims = {static_cast<std::int64_t>(end)};
  return map;
}

/// Files of one layout fit any other one, through buffers of any size.
TEST(Weights, AnyLayoutReadsWhatAnyOtherOneWrote) {
  test::for_each_case(150, [](Random& random) {
    const std::vector<StateParam> model = random_state(random);
    StateJob first(model, random), second(model, random);
    first.fill();
    second.clear();
    const TemporaryFolder folder;
    const std::vector<StoredWeight> weights = weights_of(first.memory());
    const WeightMap map =
        random.chance(0.3) ? own_names(shapes_of(weights)) : random_map(shapes_of(weights), random);
    ExportOptions options;
    options.path = (folder.path() / (random.chance(0.5) ? "out" : "out.safetensors")).string();
    options.dtype = StoredType::f64;  // holds all values exactly
    options.max_file_bytes = random.chance(0.5) ? 200 : kMaxFileBytes;
    options.block_bytes = static_cast<std::uint64_t>(random.between(8, 300));
    options.window_bytes = static_cast<std::uint64_t>(random.between(8, 300));
    ExportReport report;
    const auto refused = export_weights(weights, map, options, report);
    ASSERT_FALSE(refused) << refused->message;
    EXPECT_EQ(report.parameters, model.size());
    Failure failure;
    const auto files = WeightFiles::open(options.path, failure);
    ASSERT_TRUE(files) << failure.message;
    EXPECT_EQ(files->tensors().size(), report.tensors);
    WeightsReport matched;
    const auto differs = match_weights(*files, map, Missing::refused, matched);
    ASSERT_FALSE(differs) << differs->message << differs->notes[0].text;
    EXPECT_TRUE(matched.not_read.empty());
    LoadOptions load;
    load.block_bytes = static_cast<std::uint64_t>(random.between(1, 300));
    load.window_bytes = static_cast<std::uint64_t>(random.between(8, 300));
    ASSERT_FALSE(load_weights(second.memory(), *files, map, load));
    EXPECT_EQ(second.difference(Restored::weights), "");
  });
}

/// Each of several processes reads what its rank holds.
TEST(Weights, ProcessesReadTheirRanks) {
  test::for_each_case(40, [](Random& random) {
    const std::vector<StateParam> model = random_state(random);
    StateJob single(model), job(model, random);
    single.fill();
    job.clear();
    const TemporaryFolder folder;
    const std::vector<StoredWeight> weights = weights_of(single.memory());
    const WeightMap map = random_map(shapes_of(weights), random);
    const std::string path = (folder.path() / "w.safetensors").string();
    ExportReport report;
    ASSERT_FALSE(export_weights(weights, map, {.path = path, .dtype = StoredType::f64}, report));
    Failure failure;
    const auto files = WeightFiles::open(path, failure);
    ASSERT_TRUE(files);
    for (std::size_t rank = 0; rank < job.ranks().size(); ++rank)
      ASSERT_FALSE(load_weights(job.memory(nullptr, rank), *files, map));
    EXPECT_EQ(job.difference(Restored::weights), "");
  });
}

/// The values of a parameter on the one rank of a job.
template <typename T>
std::vector<double> values_in(StateJob& job, std::uint64_t offset, std::uint64_t elements) {
  const unsigned char* const at = job.at(0, false, offset);
  return numbers_of<T>(std::string(reinterpret_cast<const char*>(at), elements * sizeof(T)));
}

/// GPT-2 keeps one matrix [input, three times output] for three matrices [output, input].
TEST(Weights, OneTensorIsThreeTransposedParameters) {
  std::vector<InitialisedParameter> parameters;
  for (const char* name : {"q", "k", "v"})
    parameters.push_back({name, {2, 3}, PIPER_F32, PIPER_ZEROS, 0});
  Failure failure;
  const auto model = WholeParameters::create(parameters, 1, failure);
  ASSERT_TRUE(model);
  const TemporaryFolder folder;
  std::vector<double> numbers;
  for (int i = 0; i < 18; ++i) numbers.push_back(i);
  const std::string path = folder.write(
      "w", weight_file({{"c_attn", StoredType::f16, {3, 6}, bytes_of<Half>(numbers)}}));
  WeightMap map;
  for (std::size_t i = 0; i < 3; ++i)
    map.weights.push_back({parameters[i].name, "c_attn", {3, 6}, 2 * i, {2, 3}, {1, 6}});
  const auto files = WeightFiles::open(path, failure);
  ASSERT_TRUE(files);
  ASSERT_FALSE(load_weights(model->memory(), *files, map));
  std::map<std::string, std::vector<double>> read;
  const std::vector<StoredWeight> weights = weights_of(model->memory());
  for (const StoredWeight& weight : weights) {
    std::string bytes(24, '\0');
    ASSERT_FALSE(weight.source.read(0, bytes.size(), bytes.data()));
    read[weight.name] = numbers_of<float>(bytes);
  }
  EXPECT_EQ(read["q"], (std::vector<double>{0, 6, 12, 1, 7, 13}));
  EXPECT_EQ(read["k"], (std::vector<double>{2, 8, 14, 3, 9, 15}));
  EXPECT_EQ(read["v"], (std::vector<double>{4, 10, 16, 5, 11, 17}));
  // The export is the file again.
  const std::string out = (folder.path() / "out.safetensors").string();
  ExportReport report;
  ASSERT_FALSE(export_weights(weights, map, {.path = out, .dtype = StoredType::f16}, report));
  EXPECT_EQ(report.tensors, 1u);
  const auto written = WeightFiles::open(out, failure);
  ASSERT_TRUE(written);
  std::string bytes(36, '\0');
  ASSERT_FALSE(
      written->read(0, written->tensors().at("c_attn").position, bytes.size(), bytes.data()));
  EXPECT_EQ(bytes, bytes_of<Half>(numbers));
}

/// Experts that are one parameter have a tensor each.
TEST(Weights, OneParameterIsSeveralTransposedTensors) {
  Failure failure;
  const auto model =
      WholeParameters::create({{"up", {2, 2, 3}, PIPER_F32, PIPER_ZEROS, 0}}, 1, failure);
  ASSERT_TRUE(model);
  const TemporaryFolder folder;
  const std::string path = folder.write(
      "w", weight_file({{"e.0", StoredType::f32, {3, 2}, bytes_of<float>({0, 1, 2, 3, 4, 5})},
                        {"e.1", StoredType::f32, {3, 2}, bytes_of<float>({6, 7, 8, 9, 10, 11})}}));
  WeightMap map;
  for (std::uint64_t i = 0; i < 2; ++i)
    map.weights.push_back(
        {"up", "e." + std::to_string(i), {3, 2}, 0, {2, 3}, {1, 2}, 6 * i, {3, 1}});
  const auto files = WeightFiles::open(path, failure);
  ASSERT_TRUE(files);
  WeightsReport report;
  ASSERT_FALSE(check_map(map, std::vector<ParameterShape>{{"up", {2, 2, 3}}}));
  ASSERT_FALSE(match_weights(*files, map, Missing::refused, report));
  EXPECT_EQ(report_text(report),
            "weights of " + path + ": 1 parameter from 2 tensors, 1 rearranged\n");
  // Blocks that begin inside of an expert.
  ASSERT_FALSE(load_weights(model->memory(), *files, map, {.block_bytes = 20}));
  std::string bytes(48, '\0');
  const std::vector<StoredWeight> weights = weights_of(model->memory());
  ASSERT_FALSE(weights[0].source.read(0, bytes.size(), bytes.data()));
  EXPECT_EQ(numbers_of<float>(bytes), (std::vector<double>{0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11}));
  // The export is the file again.
  const std::string out = (folder.path() / "out.safetensors").string();
  ExportReport exported;
  ASSERT_FALSE(export_weights(weights, map, {.path = out}, exported));
  EXPECT_EQ(exported.parameters, 1u);
  EXPECT_EQ(exported.tensors, 2u);
  const auto written = WeightFiles::open(out, failure);
  ASSERT_TRUE(written);
  std::string second(24, '\0');
  ASSERT_FALSE(written->read(0, written->tensors().at("e.1").position, 24, second.data()));
  EXPECT_EQ(second, bytes_of<float>({6, 7, 8, 9, 10, 11}));
}

/// The first values of whole parameters are those that a run has.
TEST(Weights, WholeParametersHaveFirstValues) {
  Failure failure;
  const auto model = WholeParameters::create(
      {{"w", {3, 5}, PIPER_F32, PIPER_NORMAL, 0.02}, {"b", {}, PIPER_BF16, PIPER_CONSTANT, 0.3}}, 7,
      failure);
  ASSERT_TRUE(model);
  const std::vector<StoredWeight> weights = weights_of(model->memory());
  ASSERT_EQ(weights.size(), 2u);
  EXPECT_EQ(weights[0].name, "b");
  EXPECT_EQ(weights[0].source.type, StoredType::bf16);
  std::string bytes(60, '\0');
  ASSERT_FALSE(weights[1].source.read(0, bytes.size(), bytes.data()));
  const piper_random_key key =
      piper_stream_key(7, PIPER_RANDOM_INIT, 0, 0, piper_name_hash("w", 1));
  const std::vector<double> numbers = numbers_of<float>(bytes);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    EXPECT_EQ(numbers[i], static_cast<float>(0.02 * piper_random_normal(key, i)));
}

TEST(Weights, ValuesBeyondTheTypeAreRefused) {
  Failure failure;
  const auto model =
      WholeParameters::create({{"w", {3}, PIPER_F32, PIPER_CONSTANT, 70000}}, 1, failure);
  const TemporaryFolder folder;
  const std::string path = folder.write(
      "w", weight_file({{"w", StoredType::f64, {3}, bytes_of<double>({1, 1e300, 2})}}));
  const std::vector<StoredWeight> weights = weights_of(model->memory());
  const WeightMap map = own_names(shapes_of(weights));
  const auto files = WeightFiles::open(path, failure);
  ASSERT_TRUE(files);
  const auto refused = load_weights(model->memory(), *files, map);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, kWeightOutOfRange);
  EXPECT_EQ(refused->message,
            "`" + path + "` has the value `1e+300` in `w`, which f32 cannot hold");
  const auto fresh =
      WholeParameters::create({{"w", {3}, PIPER_F32, PIPER_CONSTANT, 70000}}, 1, failure);
  ExportReport report;
  const std::string out = (folder.path() / "out.safetensors").string();
  const auto narrow = export_weights(weights_of(fresh->memory()), map,
                                     {.path = out, .dtype = StoredType::f16}, report);
  ASSERT_TRUE(narrow);
  EXPECT_EQ(narrow->code, kWeightOutOfRange);
  EXPECT_EQ(narrow->message, "the value `70000` of `w` is beyond the range of F16");
  EXPECT_FALSE(fs::exists(out));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);  // nothing is left
}

/// A checkpoint may come from anywhere.
TEST(Weights, TensorsWithoutNumbersAreNotExported) {
  const TemporaryFolder folder;
  for (const StoredWeight& weight : {StoredWeight{"w", {2}, {StoredType::i64, 0, {}}},
                                     StoredWeight{"w", {3, 0}, {StoredType::f32, 0, {}}}}) {
    ExportReport report;
    const auto refused =
        export_weights({&weight, 1}, own_names(shapes_of({&weight, 1})),
                       {.path = (folder.path() / "out.safetensors").string()}, report);
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->code, kWeightsUnreadable);
    EXPECT_TRUE(fs::is_empty(folder.path()));
  }
}

TEST(Coverage, EachElementHasOneParameter) {
  const auto weight = [](const char* name, std::uint64_t offset, std::int64_t extent,
                         std::int64_t stride) {
    return MappedWeight{name, "t", {2, 3}, offset, {extent}, {stride}};
  };
  struct Row {
    std::vector<MappedWeight> weights;
    const char* reason;  // empty: none
  };
  for (const Row& row : std::vector<Row>{
           {{weight("a", 0, 6, 1)}, ""},
           {{weight("a", 0, 3, 2), weight("b", 1, 3, 2)}, ""},
           {{weight("a", 0, 2, 3), weight("b", 1, 2, 1), weight("c", 4, 2, 1)}, ""},
           {{weight("a", 0, 5, 1)}, "its element `5` is in no parameter"},
           {{weight("a", 1, 5, 1)}, "its element `0` is in no parameter"},
           {{weight("a", 0, 3, 2), weight("b", 1, 2, 2)}, "its element `5` is in no parameter"},
           {{weight("a", 0, 4, 1), weight("b", 3, 3, 1)},
            "its element `3` is in `b` and in another place, too"},
       }) {
    WeightMap map;
    map.weights = row.weights;
    const auto failure = check_coverage(map);
    EXPECT_EQ(failure ? failure->message : "",
              *row.reason ? std::string("the names do not fill `t` exactly once: ") + row.reason
                          : std::string());
    if (failure) {
      EXPECT_EQ(failure->code, kMapIncomplete);
    }
  }
  // A parameter that has a position twice.
  WeightMap twice;
  twice.weights.push_back({"a", "t", {2, 3}, 0, {2, 3}, {2, 1}});
  EXPECT_TRUE(check_coverage(twice));
}

class Export : public testing::Test {
 protected:
  Export()
      : model_(WholeParameters::create(
            {{"w", {64}, PIPER_F32, PIPER_ONES, 1}, {"x", {64}, PIPER_F32, PIPER_ONES, 1}}, 1,
            failure_)) {}
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  std::optional<Failure> write(const std::string& name, ExportOptions options = {}) {
    options.path = path(name);
    const std::vector<StoredWeight> weights = weights_of(model_->memory());
    return export_weights(weights, own_names(shapes_of(weights)), options, report_);
  }
  /// The names in the folder: nothing partial is left.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  const TemporaryFolder folder_;
  Failure failure_;
  std::unique_ptr<WholeParameters> model_;
  ExportReport report_;
};

TEST_F(Export, FoldersHaveOneFileOrAnIndex) {
  ASSERT_FALSE(write("one"));
  ASSERT_EQ(report_.files.size(), 1u);
  EXPECT_EQ(report_.files[0].name, "model.safetensors");
  EXPECT_EQ(fs::file_size(folder_.path() / "one" / "model.safetensors"), report_.files[0].bytes);
  fs::create_directory(folder_.path() / "two");
  ASSERT_FALSE(write("two/", {.max_file_bytes = 256}));
  EXPECT_EQ(
      *test::read_text(folder_.path() / "two" / "model.safetensors.index.json"),
      "{\"metadata\":{\"total_size\":512},\"weight_map\":{"
      "\"w\":\"model-00001-of-00002.safetensors\",\"x\":\"model-00002-of-00002.safetensors\"}}\n");
  ASSERT_FALSE(write("deep/er/one"));
  EXPECT_EQ(names(), (std::vector<std::string>{"deep", "one", "two"}));
  // A folder with files stays as it is.
  const auto refused = write("one");
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, kOutputUnwritable);
  EXPECT_EQ(refused->message,
            "cannot write `" + path("one") + "`: it is a folder that is not empty");
  folder_.write("file", "");
  EXPECT_EQ(write("file")->message, "cannot write `" + path("file") + "`: it is no folder");
  EXPECT_TRUE(write("file/one"));
}

TEST_F(Export, FilesAreReplacedAsAWhole) {
  folder_.write("out.safetensors", "the one before");
  chmod(path("out.safetensors").c_str(), 0640);
  fs::create_symlink("out.safetensors", folder_.path() / "link.safetensors");
  bool stop = true;
  ExportOptions options;
  options.stopped = [&] { return stop; };
  ASSERT_FALSE(write("link.safetensors", options));
  EXPECT_TRUE(report_.files.empty());
  EXPECT_EQ(*test::read_text(path("out.safetensors")), "the one before");
  stop = false;
  ASSERT_FALSE(write("link.safetensors", options));
  EXPECT_TRUE(fs::is_symlink(folder_.path() / "link.safetensors"));
  EXPECT_EQ(fs::file_size(path("out.safetensors")), report_.files[0].bytes);
  struct stat status{};
  ASSERT_EQ(stat(path("out.safetensors").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0640u);
  EXPECT_EQ(names(), (std::vector<std::string>{"link.safetensors", "out.safetensors"}));
  ASSERT_EQ(mkfifo(path("pipe.safetensors").c_str(), 0600), 0);
  EXPECT_EQ(write("pipe.safetensors")->message,
            "cannot write `" + path("pipe.safetensors") + "`: it is no plain file");
  EXPECT_EQ(write("none/out.safetensors")->message,
            "cannot write `" + path("none/out.safetensors") + "`: No such file or directory");
}

/// A full disk, as the limit on the size of files shows it.
TEST_F(Export, NothingIsLeftOfAnExportThatFails) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 300;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto file = write("out.safetensors"), folder = write("out");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_TRUE(file && folder);
  EXPECT_EQ(file->message, "cannot write `" + path("out.safetensors") + "`: File too large");
  EXPECT_TRUE(names().empty());
}

TEST_F(Export, CheckpointsAreVerified) {
  // More than a piece that has a checksum: opening a checkpoint verifies the pieces of headers.
  const std::vector<StateParam> model = {{.name = "w", .dims = {1100, 1000}}};
  StateJob job(model);
  job.fill();
  Manifest facts;
  facts.batch = 8;
  CheckpointWriter writer(job.memory(), {.out_folder = folder_.path().string(), .run = facts});
  ASSERT_FALSE(writer.save(3));
  ASSERT_FALSE(writer.finish());
  const auto checkpoint = Checkpoint::open(path("step-3"), failure_);
  ASSERT_TRUE(checkpoint) << failure_.message;
  const std::vector<StoredWeight> weights = weights_of(*checkpoint);
  ASSERT_EQ(weights.size(), 1u);  // and no state of the optimizer
  ASSERT_FALSE(checkpoint->verify_weights());
  ExportReport report;
  ASSERT_FALSE(export_weights(weights, own_names(shapes_of(weights)),
                              {.path = path("out.safetensors")}, report));
  const auto files = WeightFiles::open(path("out.safetensors"), failure_);
  ASSERT_TRUE(files);
  StateJob other(model);
  ASSERT_FALSE(load_weights(other.memory(), *files, own_names(shapes_of(weights))));
  EXPECT_EQ(other.difference(Restored::weights), "");
  std::string text = *test::read_text(path("step-3/model.safetensors"));
  text.back() = static_cast<char>(text.back() + 1);
  folder_.write("step-3/model.safetensors", text);
  const auto damaged = Checkpoint::open(path("step-3"), failure_);
  ASSERT_TRUE(damaged) << failure_.message;
  EXPECT_EQ(damaged->verify_weights()->code, kCheckpointUnreadable);
}

}  // namespace
}  // namespace piper::runtime
