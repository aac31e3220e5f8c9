#include "runtime/checkpoint/safetensors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <span>

#include "runtime/dtypes.h"
#include "tests/support/damage.h"
#include "tests/support/temporary_folder.h"

namespace piper::runtime {
namespace {

/// The 8 bytes of a length, whatever follows them.
std::string length_bytes(std::uint64_t length) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>(length >> (8 * i) & 0xFF);
  return out;
}

std::string file_of(const std::string& json, std::uint64_t data) {
  return length_bytes(json.size()) + json + std::string(data, 'd');
}

/// A header with one tensor, whose description is `text`.
std::string one(const std::string& text) { return R"({"w":)" + text + "}"; }

/// The header of a file with these bytes, or the reason in `error`.
std::optional<SafetensorsHeader> read(const std::string& bytes, std::string& error) {
  const int file = memfd_create("m.safetensors", MFD_CLOEXEC);
  EXPECT_EQ(pwrite(file, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  Failure failure;
  auto out = read_safetensors_header(file, "m.safetensors", failure);
  EXPECT_EQ(lseek(file, 0, SEEK_CUR), 0);
  close(file);
  EXPECT_EQ(failure.code, out ? kBadJob : kCheckpointUnreadable);
  EXPECT_EQ(failure.message.empty(), out.has_value());
  error = failure.message;
  return out;
}

std::string text_of(const SafetensorsHeader& header) {
  std::string out;
  for (const StoredTensor& tensor : header.tensors) {
    out += tensor.name + ' ' + std::string(stored_type_name(tensor.type)) + " [";
    for (const std::int64_t dim : tensor.dims) out += std::to_string(dim) + ' ';
    out += "] " + std::to_string(tensor.begin) + ".." + std::to_string(tensor.end) + '\n';
  }
  for (const auto& [name, value] : header.metadata) out += name + "=" + value + '\n';
  return out + "data at " + std::to_string(header.data_offset);
}

TEST(Safetensors, TypesHaveNamesAndSizes) {
  const std::pair<std::string_view, std::uint64_t> types[] = {
      {"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8}, {"I32", 4}, {"I16", 2},
      {"I8", 1},  {"U64", 8}, {"U32", 4}, {"U16", 2},  {"U8", 1},  {"BOOL", 1}};
  ASSERT_EQ(std::size(types), kNumStoredTypes);
  for (std::size_t i = 0; i < kNumStoredTypes; ++i) {
    const auto type = static_cast<StoredType>(i);
    EXPECT_EQ(stored_type_name(type), types[i].first);
    EXPECT_EQ(stored_type_bytes(type), types[i].second) << types[i].first;
    EXPECT_EQ(find_stored_type(types[i].first), type) << types[i].first;
    EXPECT_EQ(stored_type_of(dtype_of(type).value_or(PIPER_F32)) == type,
              dtype_of(type).has_value())
        << types[i].first;
  }
  for (std::uint32_t dtype = 0; dtype_name(dtype) != nullptr; ++dtype) {
    const StoredType type = stored_type_of(dtype);
    EXPECT_EQ(dtype_of(type), static_cast<PiperDType>(dtype)) << dtype_name(dtype);
    EXPECT_EQ(stored_type_bytes(type), element_bytes(dtype)) << dtype_name(dtype);
  }
  EXPECT_EQ(dtype_of(StoredType::f16), std::nullopt);
  EXPECT_EQ(find_stored_type("f32"), std::nullopt);
  EXPECT_EQ(find_stored_type(""), std::nullopt);
}

TEST(Safetensors, BytesOfATensor) {
  const auto bytes = [](StoredType type, std::vector<std::int64_t> dims) {
    return stored_bytes(type, dims);
  };
  constexpr std::int64_t kLarge = std::int64_t{1} << 62;
  EXPECT_EQ(bytes(StoredType::f32, {}), 4u);
  EXPECT_EQ(bytes(StoredType::bf16, {3, 5}), 30u);
  EXPECT_EQ(bytes(StoredType::f64, {3, 0, 5}), 0u);
  EXPECT_EQ(bytes(StoredType::u8, {kLarge}), std::uint64_t{1} << 62);
  EXPECT_EQ(bytes(StoredType::u16, {kLarge}), std::nullopt);
  EXPECT_EQ(bytes(StoredType::u8, {0, kLarge, 2}), std::nullopt);
  EXPECT_EQ(bytes(StoredType::f32, {-1}), std::nullopt);
  EXPECT_EQ(bytes(StoredType::f32, {-1, -1}), std::nullopt);
}

TEST(Safetensors, LayOutSortsByElementSizeThenName) {
  std::vector<StoredTensor> tensors = {{"b", StoredType::f32, {2, 3}},
                                       {"c", StoredType::boolean, {3}},
                                       {"z", StoredType::f64, {1}},
                                       {"a", StoredType::i32, {}},
                                       {"e", StoredType::f32, {0}}};
  lay_out(tensors);
  EXPECT_EQ(text_of({tensors, {}, 0}),
            "z F64 [1 ] 0..8\na I32 [] 8..12\nb F32 [2 3 ] 12..36\ne F32 [0 ] 36..36\n"
            "c BOOL [3 ] 36..39\ndata at 0");
}

TEST(Safetensors, AHeaderAsText) {
  std::vector<StoredTensor> tensors = {{"gpt.wte", StoredType::f32, {2, 3}},
                                       {"a\"\n", StoredType::bf16, {}}};
  lay_out(tensors);
  const std::string json =
      R"({"__metadata__":{"format":"pt"},"gpt.wte":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("a\"\u000a":{"dtype":"BF16","shape":[],"data_offsets":[24,26]}})";
  const std::size_t padded = (json.size() + 7) / 8 * 8;
  EXPECT_EQ(safetensors_header(tensors, {{"format", "pt"}}),
            length_bytes(padded) + json + std::string(padded - json.size(), ' '));
  EXPECT_EQ(safetensors_header({}), length_bytes(8) + "{}      ");
}

TEST(Safetensors, WrittenHeadersAreReadBack) {
  for (std::size_t name_size = 1; name_size < 10; ++name_size) {
    std::vector<StoredTensor> tensors = {{std::string(name_size, 'n'), StoredType::f32, {2, 3}},
                                         {"\u00e9", StoredType::bf16, {7}},
                                         {"none", StoredType::i64, {0, 5}},
                                         {std::string(kMaxTensorName, 'x'), StoredType::u8, {}}};
    lay_out(tensors);
    const SafetensorsMetadata metadata = {{"format", "pt"}, {"", "a\\b"}};
    const std::string bytes = safetensors_header(tensors, metadata);
    EXPECT_EQ(bytes.size() % 8, 0u);
    std::string error;
    const auto header = read(bytes + std::string(tensors.back().end, 'd'), error);
    ASSERT_TRUE(header) << error;
    EXPECT_EQ(text_of(*header), text_of({tensors, metadata, bytes.size()}));
  }
}

TEST(Safetensors, LegalHeaders) {
  struct Case {
    std::string json;
    std::uint64_t data;
    std::string tensors;
  };
  const Case cases[] = {
      {"{}", 0, ""},
      {"{}   ", 0, ""},
      {"{ }", 0, ""},
      {R"({"__metadata__":{}})", 0, ""},
      {one(R"( {"shape" : [ 2 ], "data_offsets":[0,8],"dtype":"F32"} )"), 8, "w F32 [2 ] 0..8\n"},
      {one(R"({"dtype":"U8","shape":[0,9],"data_offsets":[0,0]})"), 0, "w U8 [0 9 ] 0..0\n"},
      // In the order of positions, an empty tensor between its neighbours.
      {R"({"b":{"dtype":"I8","shape":[3],"data_offsets":[2,5]},)"
       R"("e":{"dtype":"I8","shape":[0],"data_offsets":[2,2]},)"
       R"("a":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}})",
       5, "a F16 [1 ] 0..2\ne I8 [0 ] 2..2\nb I8 [3 ] 2..5\n"},
  };
  for (const Case& row : cases) {
    SCOPED_TRACE(row.json);
    std::string error;
    const auto header = read(file_of(row.json, row.data), error);
    ASSERT_TRUE(header) << error;
    EXPECT_EQ(text_of(*header), row.tensors + "data at " + std::to_string(8 + row.json.size()));
  }
}

struct Refusal {
  std::string bytes, reason;
};

void expect_refused(std::span<const Refusal> rows) {
  for (const Refusal& row : rows) {
    SCOPED_TRACE(row.bytes.substr(0, 300));
    std::string error;
    EXPECT_FALSE(read(row.bytes, error));
    EXPECT_EQ(error, "cannot read `m.safetensors`: " + row.reason);
  }
}

TEST(Safetensors, RefusesFilesWithoutAHeader) {
  const Refusal rows[] = {
      {"", "it has `0` bytes, and the length of its header needs `8`"},
      {"1", "it has `1` byte, and the length of its header needs `8`"},
      {length_bytes(0), "its header does not begin with `{`"},
      {length_bytes(2), "its header has `2` bytes, and the file ends after `0` of them"},
      {length_bytes(100'000'001),
       "its header would have `100000001` bytes, and at most `100000000` are legal"},
      {length_bytes(~std::uint64_t{0}),
       "its header would have `18446744073709551615` bytes, and at most `100000000` are legal"},
      {length_bytes(100'000'000) + "{}",
       "its header has `100000000` bytes, and the file ends after `2` of them"},
      {file_of(" {}", 0), "its header does not begin with `{`"},
      {file_of("[]", 0), "its header does not begin with `{`"},
      {file_of("{}\n", 0), "its header does not end with `}` and spaces"},
      {file_of("{", 0), "its header does not end with `}` and spaces"},
      {file_of(std::string("{}\0", 3), 0), "its header does not end with `}` and spaces"},
      {file_of("{}}", 0), "its header is no JSON: expected the end of the text at byte 2"},
      {file_of(R"({"a":{},"a":{}})", 0),
       "its header is no JSON: a name that the object has already at byte 8"},
      {file_of("{\"\xFF\":{}}", 0), "its header is no JSON: a byte that is not UTF-8 at byte 2"},
      {file_of("{}", 1), "its header describes `0` bytes of data, and the file has `1`"},
      {file_of(R"({"__metadata__":1})", 0), "`__metadata__` is no object"},
      {file_of(R"({"__metadata__":{"step":1}})", 0),
       "`__metadata__` has `step`, which is no string"},
  };
  expect_refused(rows);
}

TEST(Safetensors, RefusesWrongDescriptions) {
  const std::string parts =
                        "the tensor `w` does not have exactly `dtype`, `shape` and `data_offsets`",
                    pair =
                        "the tensor `w` has `data_offsets` that are no ascending pair of integers",
                    dim = "the tensor `w` has a dimension that is no integer from 0 to 2^63 - 1",
                    product = "the tensor `w` has dimensions whose product exceeds 2^63 - 1 bytes";
  const auto shaped = [](const std::string& shape, const std::string& offsets = "[0,4]") {
    return file_of(
        one(R"({"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}"), 4);
  };
  const Refusal rows[] = {
      {file_of(R"({"":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})", 1),
       "a tensor has an empty name"},
      {file_of("{\"" + std::string(4097, 'n') + "\":0}", 0),
       "the tensor `" + std::string(80, 'n') +
           "...` has a name of `4097` bytes, and at most `4096` are legal"},
      {file_of(R"({"\u001b[2J`":[]})", 0), "the tensor `?[2J?` is described by no object"},
      {file_of(one("{}"), 0), parts},
      {file_of(one(R"({"dtype":"U8","shape":[]})"), 0), parts},
      {file_of(one(R"({"dtype":"U8","shape":[],"data_offsets":[0,1],"scale":1})"), 1), parts},
      {file_of(one(R"({"dtype":"U8","shape":[],"Data_offsets":[0,1]})"), 1), parts},
      {file_of(one(R"({"dtype":8,"shape":[],"data_offsets":[0,1]})"), 1),
       "the tensor `w` has a `dtype` that is no string"},
      {file_of(one(R"({"dtype":"F8_E4M3","shape":[],"data_offsets":[0,1]})"), 1),
       "the tensor `w` has the type `F8_E4M3`, which Piper does not know"},
      {shaped("1"), "the tensor `w` has a `shape` that is no array"},
      {shaped("[-1]"), dim},
      {shaped("[1.0]"), dim},
      {shaped("[true]"), dim},
      {shaped("[\"1\"]"), dim},
      {shaped("[9223372036854775808]"), dim},
      {shaped("[9223372036854775807]"), product},
      {shaped("[4294967296,2147483648]"), product},
      {shaped("[0,4294967296,4294967296]", "[0,0]"), product},
      {shaped("[]", "{}"), pair},
      {shaped("[]", "[4]"), pair},
      {shaped("[]", "[0,4,4]"), pair},
      {shaped("[]", "[4,0]"), pair},
      {shaped("[]", "[-4,0]"), pair},
      {shaped("[]", "[0,4.0]"), pair},
      {shaped("[2]"), "the tensor `w` has `8` bytes by its shape, and `4` by its `data_offsets`"},
      {shaped("[0]"), "the tensor `w` has `0` bytes by its shape, and `4` by its `data_offsets`"},
  };
  expect_refused(rows);
}

TEST(Safetensors, RefusesHolesAndOverlaps) {
  const auto two = [](const std::string& a, const std::string& b, std::uint64_t data) {
    return file_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + a +
                       R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b + "}}",
                   data);
  };
  const auto begins = [](const std::string& name, const std::string& at, const std::string& end) {
    return "the tensor `" + name + "` begins at byte `" + at +
           "` of the data, and the tensor before it ends at byte `" + end + "`";
  };
  const Refusal rows[] = {
      {two("[1,5]", "[5,9]", 9), begins("a", "1", "0")},
      {two("[0,4]", "[5,9]", 9), begins("b", "5", "4")},
      {two("[0,4]", "[3,7]", 7), begins("b", "3", "4")},
      {two("[4,8]", "[4,8]", 8), begins("a", "4", "0")},
      {two("[0,4]", "[0,4]", 4), begins("b", "0", "4")},
      {two("[4,8]", "[0,4]", 7), "its header describes `8` bytes of data, and the file has `7`"},
      {two("[4,8]", "[0,4]", 9), "its header describes `8` bytes of data, and the file has `9`"},
      {two("[0,4]", "[18446744073709551611,18446744073709551615]", 8),
       begins("b", "18446744073709551611", "4")},
  };
  expect_refused(rows);
}

TEST(Safetensors, RefusesAnythingButAPlainFile) {
  const test::TemporaryFolder folder;
  const std::string pipe = folder.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, folder.path().string(), std::string("/dev/null")}) {
    const int file = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ASSERT_GE(file, 0) << path;
    Failure failure;
    EXPECT_FALSE(read_safetensors_header(file, path, failure));
    EXPECT_EQ(failure.code, kCheckpointUnreadable);
    EXPECT_EQ(failure.message, "cannot read `" + path + "`: it is no plain file");
    close(file);
  }
  Failure failure;
  EXPECT_FALSE(read_safetensors_header(-1, "gone", failure));
  EXPECT_EQ(failure.message, "cannot read `gone`: Bad file descriptor");
}

/// The laws of a header that was accepted: its tensors cover the data, and written anew it says the
/// same.
void check_accepted(const SafetensorsHeader& header, std::uint64_t file_bytes) {
  std::uint64_t position = 0;
  for (const StoredTensor& tensor : header.tensors) {
    EXPECT_EQ(tensor.begin, position);
    EXPECT_EQ(stored_bytes(tensor.type, tensor.dims), tensor.end - tensor.begin);
    EXPECT_FALSE(tensor.name.empty());
    position = tensor.end;
  }
  EXPECT_EQ(header.data_offset + position, file_bytes);
  SafetensorsHeader written = header;
  const std::string bytes = safetensors_header(header.tensors, header.metadata);
  written.data_offset = bytes.size();
  std::string error;
  const auto again = read(bytes + std::string(position, 'd'), error);
  ASSERT_TRUE(again) << error;
  EXPECT_EQ(text_of(*again), text_of(written));
}

TEST(SafetensorsFuzz, DamagedFiles) {
  const std::vector<std::string> words = {"\"F32\"", "\"I8\"", "\"w\"", "\"x\"", "[",  "]", "{",
                                          "}",       ":",      ",",     "[0,0]", "-1", " ", "{}"};
  int num_accepted = 0;
  constexpr int kCases = 2000;
  test::for_each_case(kCases, [&](test::Random& random) {
    std::vector<StoredTensor> tensors;
    for (const char* const name : {"w", "x", "y"}) {
      const auto type = static_cast<StoredType>(random.below(kNumStoredTypes));
      tensors.push_back({name, type, {random.between(0, 3), random.between(1, 2)}});
    }
    lay_out(tensors);
    std::string json = safetensors_header(tensors, {{"format", "pt"}}).substr(8);
    if (random.chance(0.9)) json = test::damaged(json, random, {.edits = 2, .words = words});
    std::string bytes = file_of(json, tensors.back().end + (random.chance(0.1) ? 1 : 0));
    if (random.chance(0.2))
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    if (random.chance(0.1)) bytes.resize(random.below(bytes.size()));
    SCOPED_TRACE(bytes);
    std::string error;
    const auto header = read(bytes, error);
    if (!header) return;
    ++num_accepted;
    check_accepted(*header, bytes.size());
  });
  if (test::case_options().count > 0) return;
  EXPECT_GT(num_accepted, kCases / 20);
  EXPECT_LT(num_accepted, kCases / 2);
}

}  // namespace
}  // namespace piper::runtime
