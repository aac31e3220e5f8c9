// `arrays` from `.npz`, `.npy` and safetensors files: numbers of every type, refusals, and hostile
// archives.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <limits>

#include "runtime/data/array_file.h"
#include "runtime/data/step_data.h"
#include "runtime/data/zip.h"
#include "tests/runtime/data_files.h"
#include "tests/support/temporary_folder.h"

namespace piper::runtime {
namespace {

using test::bytes_of;
using test::bytes_of_all;
using test::npy;
using test::zip;

template <typename Number>
std::string numbers(std::initializer_list<Number> list) {
  return bytes_of_all(std::vector<Number>(list));
}

constexpr std::int64_t kPlane[] = {2, 2, 2}, kLine[] = {2};
constexpr PiperInput kInputs[] = {
    {.name = "x", .dtype = PIPER_F32, .num_dims = 3, .dims = kPlane, .sample_dim = 1},
    {.name = "label", .dtype = PIPER_I64, .num_dims = 1, .dims = kLine, .sample_dim = 0}};

PiperData arrays(const std::string& path, PiperSampling sampling = PIPER_REPLACEMENT) {
  PiperData data{};
  data.kind = PIPER_ARRAYS;
  data.path = path.c_str();
  data.batch = 2;
  data.where = {"data", {"a.pipe", 7, 3, 7, 7}};
  data.sampling = sampling;
  return data;
}

/// Row r has the numbers 10 r to 10 r + 3 and the label r.
std::string plane_data() { return numbers<float>({0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23}); }
std::string plane() { return npy("<f4", "(3, 2, 2)", plane_data()); }
std::string labels() { return npy("<i4", "(3,)", numbers<std::int32_t>({0, 1, 2})); }

std::string tensors() {
  return test::safetensors(R"({"x":{"dtype":"F32","shape":[3,4],"data_offsets":[0,48]},)"
                           R"("label":{"dtype":"I64","shape":[3],"data_offsets":[48,72]}})",
                           plane_data() + numbers<std::int64_t>({0, 1, 2}));
}

TEST(ArrayFiles, EveryFormatGivesTheSameSamples) {
  const std::vector<test::NamedFile> stored = {{"label.npy", labels()}, {"x.npy", plane()}};
  const std::vector<test::NamedFile> deflated = {
      {"x.npy", plane(), true}, {"other.npy", "no array"}, {"label.npy", labels(), true}};
  const test::TemporaryFolder folder;
  const std::vector<std::pair<const char*, std::string>> files = {
      {"a.npz", zip(stored)},
      {"b.npz", zip(stored, true)},
      {"c.npz", zip(deflated)},
      {"d.npz", zip(deflated, true)},
      {"e", zip(stored)},
      {"f.safetensors", tensors()},
      {"g", tensors()},
      {"h.csv", "label,x.0,x.1,x.2,x.3\n0,0,1,2,3\n1,10,11,12,13\n2,20,21,22,23\n"}};
  for (const auto& [name, content] : files) {
    const std::string path = folder.write(name, content);
    Failure failure;
    const auto held_out = open_data(arrays(path), kInputs, 5, DataUse::held_out, failure);
    ASSERT_TRUE(held_out) << name << ": " << failure.message;
    EXPECT_EQ(held_out->batches().samples, 3u);
    for (const PiperSampling sampling : {PIPER_REPLACEMENT, PIPER_EPOCH}) {
      const auto data = open_data(arrays(path, sampling), kInputs, 5, DataUse::training, failure);
      ASSERT_TRUE(data) << name << ": " << failure.message;
      std::vector<int> drawn(3);
      for (std::uint64_t step = 0; step < 3; ++step) {
        float x[2][2][2];  // [outer][sample][inner]
        std::int64_t label[2];
        ASSERT_FALSE(data->load(0, step, 0, 2, x));
        ASSERT_FALSE(data->load(1, step, 0, 2, label));
        for (int s = 0; s < 2; ++s) {
          for (int o = 0; o < 2; ++o) {
            for (int i = 0; i < 2; ++i)
              EXPECT_EQ(x[o][s][i], static_cast<float>(10 * label[s] + 2 * o + i)) << name;
          }
          ++drawn[static_cast<std::size_t>(label[s])];
        }
      }
      if (sampling == PIPER_EPOCH) {
        EXPECT_EQ(drawn, (std::vector<int>{2, 2, 2})) << "two epochs of three samples";
      }
    }
    std::int64_t label[2];
    EXPECT_FALSE(held_out->load(1, 1, 0, 2, label));
    EXPECT_EQ(label[0], 2);
    EXPECT_TRUE(held_out->identity().starts_with("arrays, 3 rows, crc32 ")) << name;
  }
}

// A run resumes with equal data: equal columns of the same inputs, in the same order of samples.
TEST(ArrayFiles, TheIdentityIsThatOfTheColumnsAndTheOrder) {
  const test::TemporaryFolder folder;
  constexpr std::int64_t kRow[] = {2};
  const PiperInput ab[] = {
      {.name = "a", .dtype = PIPER_F32, .num_dims = 1, .dims = kRow, .sample_dim = 0},
      {.name = "b", .dtype = PIPER_F32, .num_dims = 1, .dims = kRow, .sample_dim = 0}};
  const auto identity = [&](const std::string& name, const std::string& content,
                            PiperSampling sampling = PIPER_EPOCH) {
    Failure failure;
    const std::string path = folder.write(name, content);
    const auto data = open_data(arrays(path, sampling), ab, 5, DataUse::training, failure);
    return data ? data->identity() : failure.message;
  };
  const std::string csv = identity("a.csv", "a,b\n1,2\n3,4\n");
  EXPECT_TRUE(csv.starts_with("arrays in epochs, 2 rows, crc32 ")) << csv;
  EXPECT_EQ(identity("b.csv", "other b a\n9 2 1\n9 4 3\n"), csv) << "columns may move in the file";
  struct Row {
    const char* name;
    std::string content;
  };
  for (const Row& row :
       {Row{"values of two columns are swapped", "b,a\n1,2\n3,4\n"},
        Row{"rows are swapped", "a,b\n3,4\n1,2\n"}, Row{"one number differs", "a,b\n1,2\n3,5\n"},
        Row{"equal columns, which cancel under xor", "a,b\n7,7\n8,8\n"},
        Row{"other equal columns", "a,b\n9,9\n5,5\n"}})
    EXPECT_NE(identity("c.csv", row.content), csv) << row.name;
  EXPECT_NE(identity("d.csv", "a,b\n7,7\n8,8\n"), identity("e.csv", "a,b\n9,9\n5,5\n"));
  const std::string drawn = identity("a.csv", "a,b\n1,2\n3,4\n", PIPER_REPLACEMENT);
  EXPECT_TRUE(drawn.starts_with("arrays with replacement, 2 rows, crc32 ")) << drawn;
  EXPECT_EQ(drawn.substr(drawn.size() - 8), csv.substr(csv.size() - 8)) << "the same contents";
  // The same bits of another type are other numbers.
  const auto typed = [&](const char* descr) {
    return identity("a.npz", zip({{"a.npy", npy(descr, "(2,)", bytes_of(1.5f) + bytes_of(2.5f))},
                                  {"b.npy", npy(descr, "(2,)", bytes_of(3.5f) + bytes_of(4.5f))}}));
  };
  EXPECT_TRUE(typed("<f4").starts_with("arrays in epochs, 2 rows")) << typed("<f4");
  EXPECT_NE(typed("<f4"), typed("<i4"));
}

// The rows of a batch that have a value, for each input of integers.
TEST(ArrayFiles, AValueIsFoundInTheBatchThatHasIt) {
  const test::TemporaryFolder folder;
  const std::string path =
      folder.write("a.npz", zip({{"label.npy", labels()}, {"x.npy", plane()}}));
  Failure failure;
  const auto held_out = open_data(arrays(path), kInputs, 5, DataUse::held_out, failure);
  ASSERT_TRUE(held_out) << failure.message;
  EXPECT_EQ(held_out->places_of(1, 0), "in row `1` of `label`, counted from 0, of `" + path + "`");
  EXPECT_EQ(held_out->places_of(2, 0), "");
  EXPECT_EQ(held_out->places_of(2, 1), "in row `2` of `label`, counted from 0, of `" + path + "`");
  EXPECT_EQ(held_out->places_of(13, 0), "") << "`x` has no integers";
}

struct Number {
  const char* descr;
  std::string data;  // one number
  double expected;
};

TEST(ArrayFiles, NumbersOfEveryType) {
  const std::vector<Number> table = {
      {"<f8", bytes_of(1.5), 1.5},
      {"<f4", bytes_of(-2.25f), -2.25},
      {"<f2", bytes_of<std::uint16_t>(0x3C00), 1},
      {"<f2", bytes_of<std::uint16_t>(0xC500), -5},
      {"<f2", bytes_of<std::uint16_t>(0x0001), std::ldexp(1, -24)},
      {"<f2", bytes_of<std::uint16_t>(0x03FF), std::ldexp(1023, -24)},
      {"<f2", bytes_of<std::uint16_t>(0x7BFF), 65504},
      {"|i1", bytes_of<std::int8_t>(-3), -3},
      {"<i2", bytes_of<std::int16_t>(-300), -300},
      {"<i4", bytes_of<std::int32_t>(-70000), -70000},
      {"<i8", bytes_of<std::int64_t>(-5000000000), -5000000000},
      {"|u1", bytes_of<std::uint8_t>(200), 200},
      {"<u2", bytes_of<std::uint16_t>(65535), 65535},
      {"<u4", bytes_of<std::uint32_t>(4294967295u), 4294967295.0},
      {"<u8", bytes_of<std::uint64_t>(1), 1},
      {"|b1", bytes_of<std::uint8_t>(1), 1},
      {">i1", bytes_of<std::int8_t>(4), 4}};
  const test::TemporaryFolder folder;
  for (const Number& row : table) {
    const std::string path = folder.write("a.npy", npy(row.descr, "(1,)", row.data));
    Failure failure;
    const TableInput floating{.name = "x"};
    const auto rows = read_arrays(path, std::span(&floating, 1), failure);
    ASSERT_TRUE(rows) << row.descr << failure.message;
    double value = 0;
    EXPECT_FALSE(rows->read(0, 0, {.dtype = PIPER_F64, .to = &value}));
    EXPECT_EQ(value, row.expected) << row.descr;
    const TableInput integer{.name = "x", .integers = true};
    const auto integers = read_arrays(path, std::span(&integer, 1), failure);
    EXPECT_EQ(integers == nullptr, row.descr[1] == 'f') << row.descr;
    if (!integers) continue;
    std::int64_t id = 0;
    EXPECT_FALSE(integers->read(0, 0, {.dtype = PIPER_I64, .to = &id}));
    EXPECT_EQ(static_cast<double>(id), row.expected) << row.descr;
  }
}

TEST(ArrayFiles, NumbersThatDoNotFitAreRefused) {
  const test::TemporaryFolder folder;
  const auto refused = [&](const char* descr, const std::string& data, std::uint32_t dtype) {
    const std::string path = folder.write("a.npy", npy(descr, "(1, 2)", data));
    Failure failure;
    const TableInput input{.name = "x", .numbers = 2, .integers = dtype == PIPER_I64};
    const auto rows = read_arrays(path, std::span(&input, 1), failure);
    EXPECT_TRUE(rows) << failure.message;
    double out[2];
    const auto found = rows->read(0, 0, {.inner = 2, .dtype = dtype, .to = out});
    return found ? std::to_string(found->code) + " " +
                       found->message.substr(0, found->message.find(" of the array")) +
                       found->message.substr(found->message.rfind(": "))
                 : "fits";
  };
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(refused("<f8", numbers<double>({1, infinite}), PIPER_F64),
            "6008 row `0`: number `1` of the row");
  EXPECT_EQ(refused("<f8", numbers<double>({std::nan(""), 1}), PIPER_F64),
            "6008 row `0`: number `0` of the row");
  EXPECT_EQ(refused("<f8", numbers<double>({1, 1e39}), PIPER_F64), "fits");
  EXPECT_EQ(refused("<f8", numbers<double>({1, 1e39}), PIPER_F32),
            "6008 row `0`: number `1` of the row");
  EXPECT_EQ(refused("<f8", numbers<double>({1, 3.4e38}), PIPER_BF16),
            "6008 row `0`: number `1` of the row");
  EXPECT_EQ(refused("<u8", numbers<std::uint64_t>({1, std::uint64_t{1} << 63}), PIPER_I64),
            "6008 row `0`: number `1` of the row");
}

/// The bytes of a file with another first byte of a part of it.
std::string flipped(std::string file, const std::string& part) {
  char& first = file.at(file.find(part));
  first = static_cast<char>(first ^ 1);
  return file;
}

TEST(ArrayFiles, ArraysThatDoNotFitTheModelAreRefused) {
  const auto archive = [](const std::string& x, const std::string& label) {
    return zip({{"x.npy", x}, {"label.npy", label}});
  };
  const test::TemporaryFolder folder;
  struct Row {
    const char* name;
    std::string content;
    std::string expected;
  };
  const std::string of = " of `" + folder.path().native() + "/";
  for (const Row& row : std::vector<Row>{
           {"a.npz", zip({{"x.npy", plane()}, {"y.npy", labels()}}),
            "6008 `" + folder.path().native() + "/a.npz` has no array `label`: it has `x`, `y`"},
           {"b.npz", zip({}),
            "6008 `" + folder.path().native() + "/b.npz` has no array `x`: it has none"},
           {"c.npz", archive(plane(), npy("<f4", "(3,)", std::string(12, '\0'))),
            "6008 the array `label`" + of +
                "c.npz` has elements of the type `F32`, and the input `label` takes integers"},
           {"d.npz", archive(npy("<f4", "(6, 2)", plane_data()), labels()),
            "6008 the array `x`" + of +
                "d.npz` has the shape `[6, 2]`, `2` numbers per sample, and the input `x` has "
                "`4`"},
           {"e.npz", archive(plane(), npy("<i8", "(2,)", numbers<std::int64_t>({0, 1}))),
            "6008 the array `label`" + of + "e.npz` has `2` samples, and `x` has `3`"},
           {"f.npz", archive(npy("<f4", "(0, 4)", ""), npy("<i8", "(0,)", "")),
            "6007 the array `x`" + of + "f.npz` has no sample"},
           {"g.npz", archive(plane(), npy("<i8", "()", bytes_of<std::int64_t>(1))),
            "6008 the array `label`" + of +
                "g.npz` is a single number, and the first dimension of an array is that of the "
                "samples"},
           {"h.npz", archive(npy("<f4", "(3, 4)", plane_data(), 1, "True"), labels()),
            "6060 cannot read `" + folder.path().native() +
                "/h.npz`: in its member `x.npy`, its numbers lie column by column: save "
                "`numpy.ascontiguousarray(x)`, whose rows lie side by side"},
           {"i.npy", plane(),
            "6008 `" + folder.path().native() +
                "/i.npy` has one array without a name, and the model has `2` "
                "inputs"},
           {"j.safetensors", std::string("\x05\0\0\0\0\0\0\0{\"x\"", 12),
            "6060 cannot read `" + folder.path().native() +
                "/j.safetensors`: its header has `5` bytes, and the file ends after `4` of them"},
           {"l.npz", flipped(archive(plane(), labels()), plane_data()),
            "6060 cannot read `" + folder.path().native() +
                "/l.npz`: its member `x.npy` is damaged: its checksum differs"},
           {"k.npz", "no archive",
            "6060 cannot read `" + folder.path().native() +
                "/k.npz`: it has no directory at its end, so it was cut "
                "short"}}) {
    Failure failure;
    const std::string path = folder.write(row.name, row.content);
    EXPECT_FALSE(open_data(arrays(path), kInputs, 0, DataUse::training, failure)) << row.name;
    EXPECT_EQ(std::to_string(failure.code) + " " + failure.message, row.expected);
    EXPECT_EQ(failure.place.line, 7u);
    EXPECT_FALSE(failure.hint.empty());
  }
  const std::string pipe = folder.path() / "pipe.npz";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  Failure failure;
  EXPECT_FALSE(open_data(arrays(pipe), kInputs, 0, DataUse::training, failure));
  EXPECT_EQ(failure.message,
            "cannot read `" + pipe + "`: it is a pipe, and this data is read at positions");
}

/// The contents of all members, end to end; empty with the reason.
std::optional<std::string> unpacked(const std::string& path, std::string& reason) {
  Failure failure;
  const auto file = DataFile::open(path, failure);
  EXPECT_TRUE(file) << failure.message;
  const auto members = read_zip(*file, reason);
  if (!members) return std::nullopt;
  std::string contents;
  for (const ZipMember& member : *members) {
    std::vector<unsigned char> bytes(member.deflated ? 0 : member.bytes);
    if (member.deflated) {
      auto held = inflated(*file, member, reason);
      if (!held) return std::nullopt;
      bytes = std::move(*held);
    } else if (!verify_stored(*file, member, reason) ||
               file->read(member.offset, bytes.data(), bytes.size())) {
      return std::nullopt;
    }
    contents.append(bytes.begin(), bytes.end());
  }
  return contents;
}

TEST(Archives, DamagedOnesAreRefused) {
  const test::TemporaryFolder folder;
  const std::string text(300, 'a');
  const std::string good = zip({{"a", text, true}, {"b", "bytes"}});
  std::string reason;
  EXPECT_EQ(unpacked(folder.write("good", good), reason), text + "bytes");
  EXPECT_EQ(unpacked(folder.write("good", zip({{"a", text, true}}, true)), reason), text);
  EXPECT_EQ(unpacked(folder.write("good", zip({{"a", "", true}, {"b", ""}})), reason), "");
  const std::size_t end = good.size() - 22, directory = good.find("PK\x01\x02");
  const auto with = [&](std::size_t at, const std::string& bytes) {
    std::string changed = good;
    return changed.replace(at, bytes.size(), bytes);
  };
  const auto u16 = [](int number) { return bytes_of(static_cast<std::uint16_t>(number)); };
  const auto u32 = [](std::uint32_t number) { return bytes_of(number); };
  struct Row {
    std::string content, expected;
  };
  for (const Row& row : std::vector<Row>{
           {"", "it has no directory at its end, so it was cut short"},
           {good.substr(0, good.size() - 1), "it has no directory at its end, so it was cut short"},
           {good + "tail", "it has no directory at its end, so it was cut short"},
           {with(end + 4, u16(1)), "it is split into several files"},
           {with(end + 10, u16(0xFFFF)), "it has no directory of ZIP64"},
           {with(end + 10, u16(2000)), "its directory lies beyond its end"},
           {with(end + 12, u32(0xFFFFFF)), "its directory lies beyond its end"},
           {with(end + 16, u32(0xFFFFFF)), "its directory lies beyond its end"},
           {with(end + 10, u16(3)), "its directory lies beyond its end"},
           {with(end + 16, u32(0)), "its directory is damaged"},
           {with(directory + 8, u16(1)), "its member `a` is encrypted"},
           {with(directory + 10, u16(12)),
            "its member `a` is packed by method `12`, and Piper reads stored and deflated members"},
           {with(directory + 10, u16(0)), "its member `a` has two sizes"},
           {with(directory + 16, u32(5)), "its member `a` is damaged: its checksum differs"},
           {with(directory + 20, u32(0xFFFFFFFF)), "its member `a` has damaged fields of ZIP64"},
           {with(directory + 20, u32(0x7FFFFFFF)), "its member `a` lies beyond the end"},
           {with(directory + 24, u32(0x7FFFFFFF)),
            "its member `a` says that it unpacks to more than it can"},
           {with(directory + 24, u32(299)),
            "its member `a` unpacks to more bytes than its directory says"},
           {with(directory + 24, u32(301)), "its member `a` is damaged"},
           {with(directory + 28, u16(0xFFFF)), "its directory is damaged"},
           {with(directory + 42, u32(0x7FFFFFFF)), "its member `a` lies beyond the end"},
           {with(directory + 42, u32(1)), "its member `a` has a damaged header"},
           {with(26, u16(0xFFFF)), "its member `a` lies beyond the end"},
           {with(51, "\xFF\xFF\xFF"), "its member `a` is damaged"},
           {with(good.find("bytes"), "B"), "its member `b` is damaged: its checksum differs"},
           {zip({{"a", "x"}, {"a", "y"}}), "two of its members are called `a`"}}) {
    EXPECT_FALSE(unpacked(folder.write("bad", row.content), reason)) << row.expected;
    EXPECT_EQ(reason, row.expected);
  }
  // No change of a byte leads out of the file or is taken for other contents.
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string changed = good;
    changed[at] = static_cast<char>(changed[at] ^ (at % 2 == 0 ? '\x80' : '\x01'));
    const auto contents = unpacked(folder.write("flipped", changed), reason);
    EXPECT_TRUE(!contents || *contents == text + "bytes") << at;
  }
}

TEST(ArrayFiles, AChangeIsNoticed) {
  const test::TemporaryFolder folder;
  const std::string path =
      folder.write("a.npz", zip({{"x.npy", plane()}, {"label.npy", labels()}}));
  Failure failure;
  const auto data = open_data(arrays(path), kInputs, 0, DataUse::training, failure);
  ASSERT_TRUE(data) << failure.message;
  float x[8];
  EXPECT_FALSE(data->load(0, 0, 0, 2, x));
  ASSERT_EQ(truncate(path.c_str(), 20), 0);
  const auto change = data->load(0, 0, 0, 2, x);
  ASSERT_TRUE(change);
  EXPECT_EQ(change->code, kDataChanged);
  EXPECT_TRUE(
      change->message.starts_with("`" + path + "` changed while the run reads it: it had `"))
      << change->message;
}

}  // namespace
}  // namespace piper::runtime
