#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "runtime/data/bigram.h"
#include "runtime/data/file_text.h"
#include "runtime/data/step_data.h"
#include "tests/support/temporary_folder.h"

namespace piper::runtime {
namespace {

constexpr std::int64_t kDims[] = {8, 16};
constexpr PiperInput kInputs[] = {
    {.name = "tokens", .dtype = PIPER_I64, .num_dims = 2, .dims = kDims, .sample_dim = 0},
    {.name = "targets", .dtype = PIPER_I64, .num_dims = 2, .dims = kDims, .sample_dim = 0}};

PiperData bytes(const std::string& path, std::int64_t seq = 16) {
  return {.kind = 1,
          .path = path.c_str(),
          .batch = 8,
          .seq = seq,
          .classes = 0,
          .batches = 0,
          .where = {"data", {"a.pipe", 7, 3, 7, 7}},
          .sampling = PIPER_REPLACEMENT,
          .token_type = PIPER_TOKENS_BY_FILE};
}

std::string text(std::size_t length) {
  std::string out;
  for (std::size_t i = 0; i < length; ++i) out += static_cast<char>((i * 2654435761u >> 13) & 0xFF);
  return out;
}

std::unique_ptr<StepData> open(const PiperData& data, std::span<const PiperInput> inputs = kInputs,
                               DataUse use = DataUse::training) {
  Failure failure;
  auto out = open_data(data, inputs, 5, use, failure);
  EXPECT_TRUE(out) << describe(failure);
  return out;
}

TEST(Bytes, SamplesAreWindowsOfTheText) {
  const test::TemporaryFolder folder;
  const std::string content = text(5000), path = folder.write("corpus.txt", content);
  const auto data = open(bytes(path));
  std::set<std::string> seen;
  for (std::uint64_t step = 0; step < 20; ++step) {
    std::int64_t tokens[8][16], targets[8][16];
    data->load(0, step, 0, 8, tokens);
    data->load(1, step, 0, 8, targets);
    for (int s = 0; s < 8; ++s) {
      std::string window;
      for (int i = 0; i < 16; ++i) window += static_cast<char>(tokens[s][i]);
      EXPECT_NE(content.find(window), std::string::npos);
      for (int i = 0; i + 1 < 16; ++i) EXPECT_EQ(targets[s][i], tokens[s][i + 1]);
      seen.insert(window);
    }
    // However the batch is cut, a sample is the same.
    std::int64_t part[2][16];
    data->load(0, step, 5, 2, part);
    for (int i = 0; i < 16; ++i) {
      EXPECT_EQ(part[0][i], tokens[5][i]);
      EXPECT_EQ(part[1][i], tokens[6][i]);
    }
  }
  EXPECT_GT(seen.size(), 150u);
}

TEST(Bytes, AnOtherSeedDrawsOtherWindows) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("corpus.txt", text(5000));
  Failure failure;
  const auto a = open_data(bytes(path), kInputs, 1, DataUse::training, failure),
             b = open_data(bytes(path), kInputs, 2, DataUse::training, failure);
  std::int64_t x[8][16], y[8][16];
  a->load(0, 0, 0, 8, x);
  b->load(0, 0, 0, 8, y);
  EXPECT_NE(std::memcmp(x, y, sizeof(x)), 0);
}

TEST(Bytes, AFolderIsReadInSortedOrder) {
  const test::TemporaryFolder folder;
  folder.write("b/z.txt", "zz");
  folder.write("a.txt", "aaaa");
  folder.write("b/c.txt", "cccc");
  folder.write(".hidden", "hhhhhhhhhhhhhhhhhhhh");
  constexpr std::int64_t dims[] = {8, 3};
  const PiperInput input{
      .name = "tokens", .dtype = PIPER_I64, .num_dims = 2, .dims = dims, .sample_dim = 0};
  const auto windows =
      open(bytes(folder.path().native(), 3), std::span(&input, 1), DataUse::held_out);
  EXPECT_EQ(windows->batches().taken, 1u);
  std::int64_t out[3][3];
  windows->load(0, 0, 0, 3, out);
  std::string seen;
  for (const auto& row : out) {
    for (const std::int64_t c : row) seen += static_cast<char>(c);
  }
  EXPECT_EQ(seen, "aaaaccccz");
}

TEST(Bytes, HeldOutWindowsCoverTheText) {
  const test::TemporaryFolder folder;
  const std::string content = text(16 * 42 + 8), path = folder.write("corpus.txt", content);
  const auto data = open(bytes(path), kInputs, DataUse::held_out);
  const Batches batches = data->batches();
  EXPECT_EQ(batches.taken, 6u);
  EXPECT_EQ(batches.samples_taken(), 42u);
  std::string seen;
  for (std::uint64_t step = 0; step < batches.taken; ++step) {
    std::int64_t tokens[8][16];
    data->load(0, step, 0, 8, tokens);
    for (std::uint64_t s = 0; s < batches.samples_of(step); ++s) {
      for (const std::int64_t c : tokens[s]) seen += static_cast<char>(c);
    }
    // The places that are left have the last window.
    for (std::uint64_t s = batches.samples_of(step); s < 8; ++s)
      EXPECT_EQ(std::memcmp(tokens[s], tokens[batches.samples_of(step) - 1], sizeof tokens[s]), 0);
  }
  EXPECT_EQ(seen, content.substr(0, 16 * 42));
}

/// Each sample once, in order, for all sizes; with a limit whole batches that are spread evenly, or
/// all.
TEST(Data, BatchesCoverTheSamples) {
  for (std::uint64_t batch = 1; batch <= 5; ++batch) {
    for (std::uint64_t samples = 1; samples <= 17; ++samples) {
      for (std::int64_t limit = 0; limit <= 6; ++limit) {
        const Batches batches = Batches::over(samples, batch, limit);
        const std::uint64_t all = (samples + batch - 1) / batch;
        EXPECT_EQ(batches.all(), all);
        ASSERT_EQ(batches.taken,
                  limit == 0 ? all : std::min(all, static_cast<std::uint64_t>(limit)));
        std::vector<std::uint64_t> seen;
        for (std::uint64_t step = 0; step < batches.taken; ++step) {
          EXPECT_EQ(batches.first_of(step) % batch, 0u);
          for (std::uint64_t place = 0; place < batch; ++place) {
            const std::uint64_t sample = batches.sample(step, place);
            ASSERT_LT(sample, samples);
            if (place < batches.samples_of(step)) seen.push_back(sample);
          }
        }
        EXPECT_EQ(seen.size(), batches.samples_taken());
        EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()) &&
                    std::adjacent_find(seen.begin(), seen.end()) == seen.end());
        if (batches.taken == all) {
          EXPECT_EQ(seen.size(), samples);
        } else {
          EXPECT_EQ(seen.size(), batches.taken * batch);
        }
      }
    }
  }
}

/// The weights of samples are the input behind those of the model; a job without them takes whole
/// batches.
TEST(Data, HeldOutSamplesHaveWeights) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("corpus.txt", text(16 * 11 + 1));
  constexpr std::int64_t kBatch[] = {8};
  for (const std::uint32_t dtype : {PIPER_F32, PIPER_F64}) {
    const PiperInput weight{
        .name = "sample.weight", .dtype = dtype, .num_dims = 1, .dims = kBatch, .sample_dim = 0};
    PiperJob job{};
    job.num_inputs = 2;
    job.inputs = kInputs;
    job.held_out = bytes(path);
    Failure failure;
    EXPECT_FALSE(open_held_out(job, failure));
    EXPECT_EQ(failure.code, kShortHeldOutBatch);
    EXPECT_EQ(
        failure.message,
        "the held-out data ends in a batch of 3, and samples of this model depend on each other: 11 windows are no multiple of the batch of 8");
    EXPECT_EQ(failure.place.line, 7u);
    job.sample_weight = &weight;
    const auto data = open_held_out(job, failure);
    ASSERT_TRUE(data) << failure.message;
    for (std::uint64_t step = 0; step < 2; ++step) {
      double values[8] = {};
      data->load(2, step, 2, 5, values);
      for (std::uint64_t s = 0; s < 5; ++s) {
        const double got = dtype == PIPER_F64
                               ? values[s]
                               : static_cast<double>(reinterpret_cast<const float*>(values)[s]);
        EXPECT_EQ(got, step == 0 || s + 2 < 3 ? 1 : 0);
      }
    }
    EXPECT_EQ(held_out_text(*data, 0), "held-out batch 1 of 2, windows 1 to 8");
    EXPECT_EQ(held_out_text(*data, 1), "held-out batch 2 of 2, windows 9 to 11");
    job.sample_weight = nullptr;
    job.held_out.batches = 1;
    EXPECT_TRUE(open_held_out(job, failure));
  }
}

TEST(Bytes, RefusesWhatItCannotGive) {
  const test::TemporaryFolder folder;
  const auto refused = [](const PiperData& data, std::span<const PiperInput> inputs) {
    Failure failure;
    EXPECT_FALSE(open_data(data, inputs, 0, DataUse::training, failure));
    EXPECT_EQ(failure.place.file, "a.pipe");
    EXPECT_EQ(failure.place.line, 7u);
    EXPECT_FALSE(failure.hint.empty());
    return std::to_string(failure.code) + " " + failure.message;
  };
  const std::string tiny = folder.write("tiny.txt", "0123456789abcdef"),
                    empty = folder.write("empty.txt", "");
  const std::string missing = folder.path() / "none", bare = folder.path() / "bare";
  std::filesystem::create_directory(bare);
  EXPECT_EQ(refused(bytes(missing), kInputs),
            "6006 cannot read `" + missing + "`: no such file or directory");
  EXPECT_EQ(refused(bytes(bare), kInputs),
            "6006 cannot read `" + bare + "`: the folder holds no files");
  Failure failure;
  EXPECT_EQ(text_size(tiny, failure), 16u);
  EXPECT_EQ(text_size(folder.path(), failure), 16u);
  EXPECT_EQ(text_size(missing, failure), std::nullopt);
  EXPECT_EQ(failure.message, "cannot read `" + missing + "`: no such file or directory");
  const Text whole = read_text(tiny, failure).value();
  EXPECT_EQ(whole.size(), 16u);
  EXPECT_EQ(read_text(folder.path(), failure, 10)->size(), 10u);
  EXPECT_EQ(read_text(tiny, failure, 17), whole);
  EXPECT_EQ(find_byte_from(whole, 'a', std::nullopt), 10u);
  EXPECT_EQ(find_byte_from(whole, 'a', 'a'), 11u);
  EXPECT_FALSE(find_byte_from(whole, 'g', std::nullopt));
  EXPECT_EQ(refused(bytes(tiny), kInputs),
            "6007 `" + tiny + "` has `16` bytes; a window of `seq: 16` needs `17`");
  EXPECT_EQ(refused(bytes(empty), kInputs),
            "6007 `" + empty + "` has `0` bytes; a window of `seq: 16` needs `17`");
  EXPECT_EQ(refused(bytes(tiny, 0), kInputs), "6008 `bytes` needs a positive `batch` and `seq`");
  PiperInput input = kInputs[0];
  input.name = "image";
  EXPECT_EQ(refused(bytes(tiny), std::span(&input, 1)),
            "6008 `bytes` has no values for the input `image`");
  input = kInputs[0];
  input.dtype = PIPER_F32;
  EXPECT_EQ(refused(bytes(tiny), std::span(&input, 1)),
            "6008 the input `tokens` does not hold integers");
  input = kInputs[0];
  EXPECT_EQ(refused(bytes(tiny, 9), std::span(&input, 1)),
            "6008 the input `tokens` is not a window of `9` bytes per sample");
  input.name = "label";
  PiperData synthetic{.kind = 2,
                      .path = nullptr,
                      .batch = 8,
                      .seq = 0,
                      .classes = 0,
                      .batches = 0,
                      .where = {"data", {"a.pipe", 7, 3, 7, 7}},
                      .sampling = PIPER_REPLACEMENT,
                      .token_type = PIPER_TOKENS_BY_FILE};
  EXPECT_EQ(refused(synthetic, std::span(&input, 1)),
            "6008 the input `label` holds integers and `synthetic` has no bound for them");
}

TEST(Synthetic, ElementsAreFunctionsOfTheSample) {
  constexpr std::int64_t dims[] = {4, 6, 5};
  const PiperInput inputs[] = {
      {.name = "x", .dtype = PIPER_F64, .num_dims = 3, .dims = dims, .sample_dim = 1},
      {.name = "x", .dtype = PIPER_F32, .num_dims = 3, .dims = dims, .sample_dim = 1},
      {.name = "y", .dtype = PIPER_I64, .num_dims = 3, .dims = dims, .sample_dim = 1}};
  const PiperData synthetic{.kind = 2,
                            .path = nullptr,
                            .batch = 6,
                            .seq = 0,
                            .classes = 3,
                            .batches = 0,
                            .where = {},
                            .sampling = PIPER_REPLACEMENT,
                            .token_type = PIPER_TOKENS_BY_FILE};
  const auto data = open(synthetic, inputs);
  double whole[4][6][5], part[4][2][5];
  float single[4][6][5];
  std::int64_t classes[4][6][5];
  data->load(0, 9, 0, 6, whole);
  data->load(0, 9, 3, 2, part);
  data->load(1, 9, 0, 6, single);
  data->load(2, 9, 0, 6, classes);
  std::map<std::int64_t, int> counts;
  double sum = 0, squares = 0;
  for (int o = 0; o < 4; ++o) {
    for (int i = 0; i < 5; ++i) {
      for (int s = 0; s < 6; ++s) {
        sum += whole[o][s][i];
        squares += whole[o][s][i] * whole[o][s][i];
        EXPECT_EQ(single[o][s][i], static_cast<float>(whole[o][s][i]));
        ++counts[classes[o][s][i]];
      }
      EXPECT_EQ(part[o][0][i], whole[o][3][i]);
      EXPECT_EQ(part[o][1][i], whole[o][4][i]);
    }
  }
  EXPECT_NEAR(sum / 120, 0, 0.3);
  EXPECT_NEAR(squares / 120, 1, 0.4);
  EXPECT_EQ(counts.size(), 3u);
  EXPECT_EQ(counts.begin()->first, 0);
  for (const auto& [value, count] : counts) EXPECT_GT(count, 20);
  double other[4][6][5];
  data->load(0, 10, 0, 6, other);
  EXPECT_NE(std::memcmp(whole, other, sizeof(whole)), 0);
}

TEST(Texts, AreReadOnce) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("text", "one");
  TextFiles texts;
  Failure failure;
  const auto first = texts.read(path, failure);
  ASSERT_TRUE(first);
  folder.write("text", "two");
  EXPECT_EQ(texts.read(path, failure), first);
  EXPECT_FALSE(texts.read(path + ".missing", failure));
  folder.write("text.missing", "here");
  EXPECT_TRUE(texts.read(path + ".missing", failure)) << "a failure is not kept";
}

// A silently skipped file would not be missed until a model has not learned it.
TEST(Texts, BinaryFilesInAFolderAreRefused) {
  const test::TemporaryFolder elsewhere;
  const auto told = [&](const std::string& made, const auto& make) {
    const test::TemporaryFolder folder;
    folder.write("a/text", "one");
    folder.write("z.txt", "two");
    const std::string path = folder.path() / made;
    make(path);
    Failure of_text, of_size;
    EXPECT_EQ(read_text(folder.path(), of_text).has_value(),
              text_size(folder.path(), of_size).has_value())
        << made;
    EXPECT_EQ(of_text.message, of_size.message);
    const std::string start = "cannot read `" + path + "`: ";
    return of_text.message.starts_with(start) ? of_text.message.substr(start.size())
                                              : of_text.message;
  };
  const auto link_to = [](const std::string& target) {
    return [target](const std::string& path) { std::filesystem::create_symlink(target, path); };
  };
  const auto pipe = [](const std::string& path) { ASSERT_EQ(mkfifo(path.c_str(), 0600), 0); };
  EXPECT_EQ(told("a/link", link_to("nowhere")), "it is a link to nothing");
  EXPECT_EQ(told("link", link_to(elsewhere.path())),
            "it is a link to a folder, which is not followed");
  EXPECT_EQ(told("link", link_to("/dev/zero")), "it is a device");
  EXPECT_EQ(told("a/pipe", pipe), "it is a pipe, which is read only if the data line names it");
  EXPECT_EQ(told("a/link", link_to("text")), "") << "a link to a file is one";
  EXPECT_EQ(told(".link", link_to("nowhere")), "") << "what is hidden is left out";
}

// Neither an endless file nor one that is too large takes the machine's memory before it is
// refused.
TEST(Texts, WithoutEndOrTooLargeAreRefused) {
  const test::TemporaryFolder folder;
  Failure failure;
  EXPECT_FALSE(read_text("/dev/zero", failure));
  EXPECT_EQ(failure.code, kDataUnreadable);
  EXPECT_EQ(failure.message, "cannot read `/dev/zero`: it is a device");
  const std::string path = folder.write("huge", "");
  std::error_code error;
  std::filesystem::resize_file(path, std::uintmax_t{1} << 42, error);
  if (error) GTEST_SKIP() << "the disk takes no file of 4 TiB: " << error.message();
  EXPECT_FALSE(read_text(path, failure));
  EXPECT_EQ(failure.message, "cannot read `" + path + "`: it does not fit into memory");
}

// A file that the system generates on reading has bytes and reports a size of zero; the kernel's
// log is endless, and is not waited for.
TEST(Texts, SystemFilesAreReadToTheirEnd) {
  Failure of_size, of_text;
  const auto size = text_size("/proc/version", of_size);
  const auto text = read_text("/proc/version", of_text);
  ASSERT_TRUE(size && text) << of_size.message << of_text.message;
  EXPECT_GT(*size, 0u);
  EXPECT_EQ(*size, text->size());
  const test::TemporaryFolder folder;
  const std::string log = folder.path() / "log";
  std::filesystem::create_symlink("/proc/kmsg", log);
  if (!std::ifstream(log)) GTEST_SKIP() << "the log of the kernel is not for this user";
  EXPECT_FALSE(read_text(log, of_text));
  EXPECT_FALSE(text_size(log, of_size));
  EXPECT_EQ(of_text.message,
            "cannot read `" + log + "`: it gives its bytes only as they come, and has no end");
  EXPECT_EQ(of_size.message, of_text.message);
}

// A writer that comes late, or is silent for a while, is waited for; a missing writer is not, and
// data that is not text is refused.
TEST(Texts, APipeNeedsAWriter) {
  const test::TemporaryFolder folder;
  const std::string pipe = folder.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  Failure failure;
  EXPECT_EQ(text_size(pipe, failure), kUnknownSize);
  EXPECT_FALSE(read_text(pipe, failure));
  EXPECT_EQ(failure.code, kDataUnreadable);
  EXPECT_EQ(failure.message, "cannot read `" + pipe + "`: it is a pipe without a writer");
  const auto read_from = [&](std::vector<std::string> parts) {
    const std::jthread writer([&pipe, parts] {
      const int file = ::open(pipe.c_str(), O_WRONLY);
      for (const std::string& part : parts) {
        EXPECT_EQ(write(file, part.data(), part.size()), static_cast<ssize_t>(part.size()));
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
      close(file);
    });
    const auto text = read_text(pipe, failure);
    return text ? std::string(text->begin(), text->end()) : failure.message;
  };
  EXPECT_EQ(read_from({"one", "two"}), "onetwo");
  EXPECT_EQ(read_from({"", "late"}), "late");
  EXPECT_EQ(read_from({""}), "") << "an empty text is one, too short for any window";
  const std::string path = folder.path() / "socket";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  path.copy(address.sun_path, path.size());
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_FALSE(read_text(path, failure));
  EXPECT_EQ(failure.message, "cannot read `" + path + "`: it is a socket");
  EXPECT_FALSE(text_size(path, failure));
  close(listener);
}

TEST(Bigram, CountsPairs) {
  const std::string train = "abababac";
  const Bigram bigram({reinterpret_cast<const unsigned char*>(train.data()), train.size()});
  const std::string held_out = "abz";
  // a: 4 times followed, 3 times by b; b: 3 times, never by z.
  const double expected = -(std::log(4.0 / 260) + std::log(1.0 / 259)) / 2;
  EXPECT_NEAR(
      bigram.loss({reinterpret_cast<const unsigned char*>(held_out.data()), held_out.size()}),
      expected, 1e-12);
  EXPECT_TRUE(std::isnan(bigram.loss({})));
  const test::TemporaryFolder folder;
  Failure failure;
  TextFiles texts;
  EXPECT_NEAR(*bigram_loss(folder.write("a", train), folder.write("b", held_out), texts, failure),
              expected, 1e-12);
  EXPECT_FALSE(bigram_loss(folder.path() / "a", folder.write("c", "x"), texts, failure));
  EXPECT_EQ(failure.code, kDataTooShort);
}

}  // namespace
}  // namespace piper::runtime
