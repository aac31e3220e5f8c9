// `tokens`: files of ids in every format, hostile variants of each, and windows that equal those of
// the same bytes as text.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <numeric>

#include "runtime/data/file_text.h"
#include "runtime/data/step_data.h"
#include "runtime/data/token_file.h"
#include "tests/runtime/data_files.h"
#include "tests/support/temporary_folder.h"

namespace piper::runtime {
namespace {

using test::bytes_of_all;
using test::llm_c;
using test::megatron_index;
using test::npy;

template <typename Id>
std::string ids(std::initializer_list<Id> list) {
  return bytes_of_all(std::vector<Id>(list));
}

std::vector<std::int64_t> all_of(const TokenFile& tokens) {
  std::vector<std::int64_t> out(tokens.size());
  if (out.empty()) return out;
  const auto failure = tokens.read(0, out.size(), 1, out.data());
  EXPECT_FALSE(failure) << failure->message;
  return out;
}

struct Format {
  const char* name;
  std::string content;
  std::optional<StoredType> type = std::nullopt;
  const char* bin = nullptr;  // the content of the partner of an index
  std::vector<std::int64_t> expected = {1, 2, 300};
};

TEST(TokenFiles, FormatsGiveTheSameTokens) {
  const std::string u16 = ids<std::uint16_t>({1, 2, 300}), u32 = ids<std::uint32_t>({1, 2, 300});
  const std::vector<Format> formats = {
      {"nanogpt.bin", u16},
      {"named.bin", u16, StoredType::u16},
      {"other.dat", u16, StoredType::u16},
      {"u32.bin", u32, StoredType::u32},
      {"i32.bin", ids<std::int32_t>({1, -1, 300}), StoredType::i32, nullptr, {1, -1, 300}},
      {"u8.bin", ids<std::uint8_t>({1, 2, 255}), StoredType::u8, nullptr, {1, 2, 255}},
      {"gpt2.bin", llm_c(20240520, 1, 3, u16)},
      {"gpt2 given.bin", llm_c(20240520, 1, 3, u16), StoredType::u16},
      {"llama3.bin", llm_c(20240801, 7, 3, u32)},
      {"u1.npy", npy("|u1", "(3,)", ids<std::uint8_t>({1, 2, 3})), {}, nullptr, {1, 2, 3}},
      {"i1.npy", npy("|i1", "(3,)", ids<std::int8_t>({1, -2, 3})), {}, nullptr, {1, -2, 3}},
      {"i2.npy", npy("<i2", "(3,)", ids<std::int16_t>({1, 2, 300}))},
      {"u2.npy", npy("<u2", "(3,)", u16, 2)},
      {"i4.npy", npy("<i4", "(3,)", u32, 3)},
      {"u4.npy", npy("<u4", "( 3 , )", u32)},
      {"i8.npy", npy("<i8", "(3L,)", ids<std::int64_t>({1, 2, 300}))},
      {"u8.npy", npy("<u8", "(3)", ids<std::uint64_t>({1, 2, 300}))},
      {"no extension", npy("<u2", "(3,)", u16, 1, "True")},
      {"empty.npy", npy("<u2", "(0,)", ""), {}, nullptr, {}},
      {"empty.bin", "", {}, nullptr, {}}};
  const test::TemporaryFolder folder;
  for (const Format& format : formats) {
    Failure failure;
    const auto tokens =
        TokenFile::open(folder.write(format.name, format.content), format.type, failure);
    ASSERT_TRUE(tokens) << format.name << ": " << failure.message;
    EXPECT_EQ(all_of(*tokens), format.expected) << format.name;
  }
}

TEST(TokenFiles, AnIndexGivesItsSequencesEndToEnd) {
  const test::TemporaryFolder folder;
  Failure failure;
  const std::string bin = ids<std::uint16_t>({7, 1, 2, 3, 4, 9});
  // Side by side, apart, with an empty one between, and one that lies before the last one.
  folder.write("a.idx", megatron_index(8, {2, 0, 1}, {2, 6, 6}, {0, 1, 3}));
  folder.write("a.bin", bin);
  folder.write("b.idx", megatron_index(8, {1, 2}, {10, 0}, {0, 2}));
  folder.write("b.bin", bin);
  for (const char* name : {"a.idx", "a.bin"}) {
    const auto tokens = TokenFile::open(folder.path() / name, {}, failure);
    ASSERT_TRUE(tokens) << failure.message;
    EXPECT_EQ(all_of(*tokens), (std::vector<std::int64_t>{1, 2, 3}));
  }
  const auto apart = TokenFile::open(folder.path() / "b.bin", {}, failure);
  ASSERT_TRUE(apart) << failure.message;
  EXPECT_EQ(all_of(*apart), (std::vector<std::int64_t>{9, 7, 1}));
  EXPECT_EQ(apart->position(2).token, 2u);
  // A folder gives each pair once, and the raw files beside them.
  folder.write("c.bin", ids<std::uint16_t>({5}));
  folder.write(".hidden", "text");
  const auto all = TokenFile::open(folder.path(), {}, failure);
  ASSERT_TRUE(all) << failure.message;
  EXPECT_EQ(all_of(*all), (std::vector<std::int64_t>{1, 2, 3, 9, 7, 1, 5}));
  EXPECT_EQ(all->position(6).path, (folder.path() / "c.bin").native());
  EXPECT_EQ(all->position(6).token, 0u);
  // Parts of the text, with a stride.
  std::int64_t part[6] = {};
  EXPECT_FALSE(all->read(2, 3, 2, part));
  EXPECT_EQ(std::vector<std::int64_t>(part, part + 6),
            (std::vector<std::int64_t>{3, 0, 9, 0, 7, 0}));
}

struct Refused {
  const char* name;
  std::string content;
  std::string expected;  // code and reason, without the path
  std::optional<StoredType> type = std::nullopt;
};

std::string reason_of(const std::string& path, std::optional<StoredType> type) {
  Failure failure;
  EXPECT_FALSE(TokenFile::open(path, type, failure));
  EXPECT_FALSE(failure.hint.empty()) << failure.message;
  std::string message = failure.message;
  for (const std::string& start : {"cannot read `" + path + "`: ", "`" + path + "` "}) {
    if (message.starts_with(start)) message = message.substr(start.size());
  }
  return std::to_string(failure.code) + " " + message;
}

TEST(TokenFiles, DamagedFilesAreRefused) {
  const std::string u16 = ids<std::uint16_t>({1, 2, 300});
  const std::string good = npy("<u2", "(3,)", u16);
  const auto literal = [&](const std::string& text) {
    std::string file = "\x93NUMPY\x01" + std::string(1, '\0') +
                       test::bytes_of(static_cast<std::uint16_t>(text.size()));
    return file + text;
  };
  const std::string rule = "6060 its header describes `6` bytes of numbers, and it has ";
  const std::vector<Refused> table = {
      {"odd.bin", "abc", "6060 it has `3` bytes, no multiple of the `2` of a `u16`"},
      {"text.txt", "abcd", "6008 has no header that says how it holds token ids"},
      {"arrays.npz", "PK\x03\x04", "6008 has no header that says how it holds token ids"},
      {"v2.bin", llm_c(20240520, 2, 3, u16),
       "6060 its header of llm.c has version `2`, and Piper reads `1`"},
      {"cut.bin", llm_c(20240520, 1, 4, u16),
       "6060 its header of llm.c describes `4` tokens of `2` bytes, and it has `6` bytes of them"},
      {"minus.bin", llm_c(20240520, 1, 0xFFFFFFFF, u16),
       "6060 its header of llm.c describes `4294967295` tokens of `2` bytes, and it has `6` bytes "
       "of them"},
      {"short.bin", llm_c(20240520, 1, 3, u16).substr(0, 100),
       "6060 it ends within the header of llm.c"},
      {"eval.bin", llm_c(20240522, 1, 3, u16),
       "6060 it holds llm.c's multiple-choice examples, which are no text"},
      {"type.bin", llm_c(20240520, 1, 3, u16),
       "6008 has ids of the type `u16` by its header, and the `data` line says `dtype: u32`",
       StoredType::u32},
      {"a.npy", good.substr(0, 9), "6060 it ends within its header"},
      {"b.npy", good.substr(0, 40), "6060 it ends within its header"},
      {"c.npy", good.substr(0, good.size() - 1), rule + "`5`"},
      {"d.npy", good + "x", rule + "`7`"},
      {"e.npy", npy("<u2", "(3,)", u16, 4),
       "6060 it has version `4.0` of the `.npy` format, and Piper reads `1.0`, `2.0` and `3.0`"},
      {"f.npy", npy("<f4", "(3,)", std::string(12, '\0')),
       "6060 it has elements of the type `F32`, and token ids are integers"},
      {"g.npy", npy(">u2", "(3,)", u16), "6060 its numbers are big-endian: save `x.astype('<u2')`"},
      {"h.npy", npy("<U5", "(3,)", u16),
       "6060 it holds elements of the type `<U5`, and Piper reads integers, `bool`, `float16`, "
       "`float32` and `float64`"},
      {"i.npy", npy("<u2", "(3, 1)", u16),
       "6060 its array has `2` dimensions, and a text of tokens has `1`"},
      {"j.npy", npy("<u2", "()", "ab"),
       "6060 its array has `0` dimensions, and a text of tokens has `1`"},
      {"k.npy", npy("<u2", "(9223372036854775807, 2)", u16),
       "6060 its `shape` describes more than 2^63 - 1 bytes"},
      {"l.npy", npy("<u2", "(9223372036854775808,)", u16),
       "6060 its `shape` has a dimension that is no integer from 0 to 2^63 - 1"},
      {"m.npy", npy("<u2", "(-3,)", u16),
       "6060 its `shape` has a dimension that is no integer from 0 to 2^63 - 1"},
      {"n.npy", npy("<u2", "[3]", u16), "6060 its `shape` is no tuple"},
      {"o.npy", npy("<u2", "(3 3)", u16), "6060 its `shape` is no tuple of integers"},
      {"p.npy", npy("<u2", "(3,)", u16, 1, "Maybe"),
       "6060 its `fortran_order` is neither `True` nor `False`"},
      {"q.npy", literal("{'descr': [('a', '<u2')], 'fortran_order': False, 'shape': (3,)}"),
       "6060 it holds records: save each of their fields as an array of its own"},
      {"r.npy", literal("{'descr': '<u2', 'shape': (3,)}"),
       "6060 its header lacks `descr`, `fortran_order` or `shape`"},
      {"s.npy", literal("{'descr': '<u2', 'descr': '<u2'}"), "6060 its header has `descr` twice"},
      {"t.npy", literal("{'descr': '<u2', 'x': 1}"),
       "6060 its header has a key `x`, which no version has"},
      {"u.npy", literal("{'descr' '<u2'}"), "6060 its header has no `:` after `descr`"},
      {"v.npy", literal("{'descr': '<u2' 'shape': (3,)}"),
       "6060 its header has no `,` or `}` after `descr`"},
      {"w.npy", literal("{3: 4}"), "6060 its header has a key that is no string"},
      {"x.npy", literal("[]"), "6060 its header does not begin with `{`"},
      {"y.npy", literal("{'descr': '<u2', 'fortran_order': False, 'shape': (3,)} x"),
       "6060 its header goes on after its `}`"},
      {"z.npy", literal(std::string(60000, '{')), "6060 its header has a key that is no string"},
      {"long.npy",
       "\x93NUMPY\x02" + std::string(1, '\0') + test::bytes_of<std::uint32_t>(100000) +
           std::string(100000, ' '),
       "6060 its header has `100000` bytes, and one of numbers has at most `65536`"},
      {"huge.npy",
       "\x93NUMPY\x02" + std::string(1, '\0') + test::bytes_of<std::uint32_t>(0xFFFFFFFF) + "{",
       "6060 it ends within its header"}};
  const test::TemporaryFolder folder;
  for (const Refused& row : table)
    EXPECT_EQ(reason_of(folder.write(row.name, row.content), row.type), row.expected) << row.name;
}

TEST(TokenFiles, DamagedIndexesAreRefused) {
  struct Row {
    std::string index;
    std::string expected;
  };
  const std::string good = megatron_index(8, {2, 1}, {0, 4}, {0, 2});
  const auto with = [&](std::size_t at, const std::string& bytes) {
    std::string index = good;
    return index.replace(at, bytes.size(), bytes);
  };
  const std::string u64 = test::bytes_of<std::uint64_t>(0xFFFFFFFFFFFFFFFF);
  const test::TemporaryFolder folder;
  const std::string bin = folder.write("x.bin", ids<std::uint16_t>({1, 2, 3}));
  const std::string of_bytes = " documents, which are not its `40` bytes after the header";
  for (const Row& row : std::vector<Row>{
           {good.substr(0, 20), "6060 it ends within its header"},
           {megatron_index(8, {2, 1}, {0, 4}, {0, 2}, 2),
            "6060 its index of Megatron has version `2`, and Piper reads `1`"},
           {megatron_index(0, {2, 1}, {0, 4}, {0, 2}),
            "6060 its index of Megatron has the type number `0`, and the numbers are `1` to `8`"},
           {megatron_index(9, {2, 1}, {0, 4}, {0, 2}),
            "6060 its index of Megatron has the type number `9`, and the numbers are `1` to `8`"},
           {megatron_index(7, {2, 1}, {0, 4}, {0, 2}),
            "6060 it has elements of the type `F32`, and token ids are integers"},
           {with(18, u64),
            "6060 its header describes `18446744073709551615` sequences and `2`" + of_bytes},
           {with(26, u64),
            "6060 its header describes `2` sequences and `18446744073709551615`" + of_bytes},
           {good + "ab",
            "6060 it has a mode for each sequence, as indexes of pictures and text have"},
           {good + "abc",
            "6060 its header describes `2` sequences and `2` documents, which are not its `43` "
            "bytes after the header"},
           {megatron_index(8, {2, 2}, {0, 4}, {0, 2}),
            "6060 its sequence `1` does not lie within the `6` bytes of `" + bin + "`"},
           {megatron_index(8, {2, -1}, {0, 4}, {0, 2}),
            "6060 its sequence `1` does not lie within the `6` bytes of `" + bin + "`"},
           {megatron_index(8, {2, 1}, {0, -4}, {0, 2}),
            "6060 its sequence `1` does not lie within the `6` bytes of `" + bin + "`"},
           {megatron_index(8, {2, 1}, {0, 4}, {0, 3}),
            "6060 entry `1` of its document list is no sequence from `0` to `2`"},
           {megatron_index(8, {2, 1}, {0, 4}, {1, 0}),
            "6060 entry `1` of its document list is no sequence from `1` to `2`"},
           {megatron_index(8, {2, 1}, {0, 4}, {0, -1}),
            "6060 entry `1` of its document list is no sequence from `0` to `2`"}}) {
    EXPECT_EQ(reason_of(folder.write("x.idx", row.index), {}), row.expected);
  }
  EXPECT_EQ(reason_of(folder.write("x.index", good), {}),
            "6060 it is an index of Megatron, whose name ends in `.idx`");
  const std::string alone = folder.write("alone.idx", good);
  EXPECT_EQ(reason_of(alone, {}), "6006 cannot read `" + (folder.path() / "alone.bin").native() +
                                      "`: no such file or directory");
}

TEST(TokenFiles, OnlyRegularFilesAreRead) {
  const test::TemporaryFolder folder;
  const std::string pipe = folder.path() / "pipe.bin", loop = folder.path() / "loop.bin";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_symlink("loop.bin", loop);
  EXPECT_EQ(reason_of(pipe, {}), "6006 it is a pipe, and this data is read at positions");
  EXPECT_EQ(reason_of(loop, {}), "6006 too many levels of symbolic links");
  EXPECT_EQ(reason_of("/dev/zero", {}), "6006 it is a device");
  EXPECT_EQ(reason_of("", {}), "6006 the name of the data is empty");
  EXPECT_EQ(reason_of(folder.path() / "gone.bin", {}), "6006 no such file or directory");
  const test::TemporaryFolder empty;
  EXPECT_EQ(reason_of(empty.path(), {}), "6006 the folder holds no files");
  Failure failure;
  const std::string target = folder.write("target", ids<std::uint16_t>({4}));
  std::filesystem::create_symlink(target, folder.path() / "link.bin");
  EXPECT_TRUE(TokenFile::open(folder.path() / "link.bin", {}, failure)) << failure.message;
}

TEST(TokenFiles, AChangeIsNoticed) {
  const test::TemporaryFolder folder;
  Failure failure;
  const auto opened = [&](const char* name) {
    return TokenFile::open(folder.write(name, std::string(40000, 'x')), {}, failure);
  };
  const auto message = [&](const TokenFile& tokens, std::uint64_t first) {
    std::int64_t out[3];
    const auto change = tokens.read(first, 3, 1, out);
    return change ? std::to_string(change->code) + " " + change->message : std::string();
  };
  const auto cut = opened("cut.bin"), grown = opened("grown.bin"), written = opened("written.bin");
  const std::string path = folder.path();
  for (const auto& tokens : {cut, grown, written}) EXPECT_EQ(message(*tokens, 19000), "");
  ASSERT_EQ(truncate((path + "/cut.bin").c_str(), 30000), 0);
  EXPECT_EQ(message(*cut, 19000), "6061 `" + path +
                                      "/cut.bin` changed while the run reads it: it had `40000` "
                                      "bytes and now has `30000`");
  EXPECT_EQ(message(*cut, 0), message(*cut, 19000)) << "a change is noticed everywhere";
  ASSERT_EQ(truncate((path + "/grown.bin").c_str(), 50000), 0);
  EXPECT_EQ(message(*grown, 0), "6061 `" + path +
                                    "/grown.bin` changed while the run reads it: it had `40000` "
                                    "bytes and now has `50000`");
  // Time of modification alone; a test does not wait for the clock of a file system.
  const timespec times[2] = {{1, 0}, {1, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, (path + "/written.bin").c_str(), times, 0), 0);
  EXPECT_EQ(message(*written, 0), "6061 `" + path +
                                      "/written.bin` changed while the run reads it: it was "
                                      "written after the run had opened it");
  // A file that is replaced stays what it was.
  const auto replaced = opened("replaced.bin");
  folder.write("new", "short");
  std::filesystem::rename(folder.path() / "new", folder.path() / "replaced.bin");
  EXPECT_EQ(message(*replaced, 19000), "");
}

TEST(TokenFiles, ForeignTokensAreFoundWithTheirPosition) {
  const test::TemporaryFolder folder;
  std::vector<std::int32_t> list(9000);
  std::iota(list.begin(), list.end(), 0);
  list[100] = -7;
  Failure failure;
  const auto tokens =
      TokenFile::open(folder.write("a.bin", bytes_of_all(list)), StoredType::i32, failure);
  ASSERT_TRUE(tokens) << failure.message;
  std::optional<Failure> unread;
  const auto found = [&](std::uint64_t limit, std::int64_t bound,
                         std::optional<std::int64_t> ignored) {
    const auto at = find_token_from(*tokens, limit, bound, ignored, unread);
    EXPECT_FALSE(unread);
    return at ? std::pair(at->token, at->id) : std::pair(std::uint64_t{0}, std::int64_t{-1});
  };
  EXPECT_EQ(found(9000, 8000, {}), std::pair(std::uint64_t{100}, std::int64_t{-7}));
  EXPECT_EQ(found(9000, 8000, -7), std::pair(std::uint64_t{8000}, std::int64_t{8000}));
  EXPECT_EQ(found(8000, 8000, -7).second, -1) << "no further than the limit";
  EXPECT_EQ(found(100000, 9000, -7).second, -1);
}

TEST(TokenFiles, TheFingerprintIsThatOfTheContents) {
  const test::TemporaryFolder folder;
  Failure failure;
  const auto text = [&](const char* name, const std::string& content) {
    const auto tokens = TokenFile::open(folder.write(name, content), {}, failure);
    return tokens ? tokens->fingerprint_text() : failure.message;
  };
  const std::string first = text("a.bin", ids<std::uint16_t>({1, 2, 3}));
  EXPECT_TRUE(first.starts_with("3 tokens, u16, crc32 ")) << first;
  EXPECT_EQ(text("b.bin", ids<std::uint16_t>({1, 2, 3})), first);
  EXPECT_NE(text("c.bin", ids<std::uint16_t>({1, 2, 4})), first);
  // Files are chained in their order.
  const auto folder_of = [&](const std::vector<std::string>& contents) {
    const test::TemporaryFolder files;
    for (std::size_t i = 0; i < contents.size(); ++i)
      files.write(std::to_string(i) + ".npy", contents[i]);
    const auto tokens = TokenFile::open(files.path(), {}, failure);
    return tokens ? tokens->fingerprint_text() : failure.message;
  };
  const std::string a = npy("<u2", "(2,)", ids<std::uint16_t>({1, 2})),
                    b = npy("<u4", "(2,)", ids<std::uint32_t>({1, 2}));
  EXPECT_NE(folder_of({a, b, a}), folder_of({a, a, b}));
  EXPECT_NE(folder_of({a, b}), folder_of({b, a}));
  EXPECT_NE(folder_of({a, a}), folder_of({b, b})) << "equal files do not cancel";
  // Both ends of a large file count.
  const std::string path = folder.write("large.bin", "");
  const auto large = [&](std::uint64_t at) {
    EXPECT_EQ(truncate(path.c_str(), 0), 0);
    EXPECT_EQ(truncate(path.c_str(), off_t{80} << 20), 0);
    const int file = open(path.c_str(), O_WRONLY);
    EXPECT_EQ(pwrite(file, "x", 1, static_cast<off_t>(at)), 1);
    close(file);
    const auto tokens = TokenFile::open(path, {}, failure);
    return tokens ? tokens->fingerprint_text() : failure.message;
  };
  const std::string middle = large(40 << 20);
  EXPECT_NE(large(0), middle);
  EXPECT_NE(large((80 << 20) - 1), middle);
}

constexpr std::int64_t kDims[] = {8, 16}, kTurned[] = {16, 8};

PiperData source(std::uint32_t kind, const std::string& path, PiperSampling sampling) {
  PiperData data{};
  data.kind = kind;
  data.path = path.c_str();
  data.batch = 8;
  data.seq = 16;
  data.where = {"data", {"a.pipe", 7, 3, 7, 7}};
  data.sampling = sampling;
  data.token_type = kind == PIPER_TOKENS ? PIPER_TOKENS_U8 : PIPER_TOKENS_BY_FILE;
  return data;
}

// The same bytes as text and as ids are the same samples, in training and held out, in either order
// of dimensions.
TEST(Tokens, WindowsAreThoseOfTheText) {
  const test::TemporaryFolder folder;
  std::string content;
  for (std::size_t i = 0; i < 1000; ++i)
    content += static_cast<char>((i * 2654435761u >> 13) & 0xFF);
  const std::string path = folder.write("corpus.bin", content);
  const PiperInput inputs[] = {
      {.name = "tokens", .dtype = PIPER_I64, .num_dims = 2, .dims = kDims, .sample_dim = 0},
      {.name = "targets", .dtype = PIPER_I64, .num_dims = 2, .dims = kTurned, .sample_dim = 1}};
  for (const PiperSampling sampling : {PIPER_REPLACEMENT, PIPER_EPOCH}) {
    for (const DataUse use : {DataUse::training, DataUse::held_out}) {
      Failure failure;
      const auto text = open_data(source(PIPER_BYTES, path, sampling), inputs, 5, use, failure);
      const auto tokens = open_data(source(PIPER_TOKENS, path, sampling), inputs, 5, use, failure);
      ASSERT_TRUE(text && tokens) << failure.message;
      EXPECT_EQ(text->batches().samples, tokens->batches().samples);
      for (std::uint64_t step = 0; step < 20; ++step) {
        for (std::uint32_t input = 0; input < 2; ++input) {
          std::vector<std::int64_t> a(5 * 16), b(5 * 16, -1);
          EXPECT_FALSE(text->load(input, step, 2, 5, a.data()));
          EXPECT_FALSE(tokens->load(input, step, 2, 5, b.data()));
          EXPECT_EQ(a, b);
        }
      }
      const std::string order = use == DataUse::held_out        ? ""
                                : sampling == PIPER_REPLACEMENT ? " with replacement"
                                                                : " in epochs";
      EXPECT_TRUE(tokens->identity().starts_with("tokens, windows of 16" + order +
                                                 ", 1000 tokens, u8, crc32 "));
      EXPECT_TRUE(
          text->identity().starts_with("bytes, windows of 16" + order + ", 1000 bytes, crc32 "));
    }
  }
}

// Held-out tokens of every format are read once, in order, and the last batch is short.
TEST(Tokens, HeldOutWindowsAreThoseOfTheTextInOrder) {
  const test::TemporaryFolder folder;
  std::string u8, u16;
  std::vector<std::int64_t> text;
  for (int i = 0; i < 200; ++i) {
    text.push_back(i % 251);
    u8 += static_cast<char>(i % 251);
    u16 += ids<std::uint16_t>({static_cast<std::uint16_t>(i % 251)});
  }
  folder.write("idx.bin", u16);
  folder.write("parts/a.npy", npy("|u1", "(70,)", u8.substr(0, 70)));
  folder.write("parts/b.npy", npy("<u2", "(130,)", u16.substr(140)));
  struct Row {
    std::string path;
    std::uint32_t type = PIPER_TOKENS_BY_FILE;
  };
  for (const Row& row :
       {Row{folder.write("raw.bin", u16)}, Row{folder.write("raw.u8", u8), PIPER_TOKENS_U8},
        Row{folder.write("a.npy", npy("<u2", "(200,)", u16))},
        Row{folder.write("llm.bin", test::llm_c(20240520, 1, 200, u16))},
        Row{folder.write("idx.idx",
                         test::megatron_index(8, {50, 0, 149, 1}, {0, 100, 100, 398}, {0, 2, 4}))},
        Row{folder.path() / "parts"}}) {
    SCOPED_TRACE(row.path);
    const PiperInput input{
        .name = "tokens", .dtype = PIPER_I64, .num_dims = 2, .dims = kDims, .sample_dim = 0};
    PiperData data = source(PIPER_TOKENS, row.path, PIPER_EPOCH);
    data.token_type = row.type;
    Failure failure;
    const auto held_out = open_data(data, std::span(&input, 1), 5, DataUse::held_out, failure);
    ASSERT_TRUE(held_out) << failure.message;
    const Batches batches = held_out->batches();
    EXPECT_EQ(batches.samples, 12u) << "199 tokens have a next one: 12 windows of 16";
    EXPECT_EQ(batches.taken, 2u);
    EXPECT_EQ(batches.samples_of(1), 4u);
    std::vector<std::int64_t> read;
    for (std::uint64_t step = 0; step < batches.taken; ++step) {
      std::vector<std::int64_t> batch(8 * 16);
      ASSERT_FALSE(held_out->load(0, step, 0, 8, batch.data()));
      read.insert(read.end(), batch.begin(),
                  batch.begin() + static_cast<std::ptrdiff_t>(16 * batches.samples_of(step)));
    }
    EXPECT_EQ(read, std::vector<std::int64_t>(text.begin(), text.begin() + 12 * 16));
  }
}

// A value that no table has is named with its place, in training and held out.
TEST(Tokens, AValueIsFoundInTheBatchThatHasIt) {
  const test::TemporaryFolder folder;
  std::string content(1000, '\1');
  content[700] = '\7';  // in window 43 of 62
  const std::string path = folder.write("corpus.bin", content);
  folder.write("parts/a.bin", content.substr(0, 600));
  folder.write("parts/b.bin", content.substr(600));
  struct Row {
    std::uint32_t kind;
    std::string path, place;
  };
  const PiperInput input{
      .name = "tokens", .dtype = PIPER_I64, .num_dims = 2, .dims = kDims, .sample_dim = 0};
  for (const Row& row :
       {Row{PIPER_BYTES, path, "at byte `700` of `" + path + "`"},
        Row{PIPER_TOKENS, path, "at token `700` of `" + path + "`"},
        Row{PIPER_TOKENS, folder.path() / "parts",
            "at token `100` of `" + (folder.path() / "parts/b.bin").string() + "`"}}) {
    SCOPED_TRACE(row.place);
    Failure failure;
    const PiperData data = source(row.kind, row.path, PIPER_EPOCH);
    const auto training = open_data(data, std::span(&input, 1), 5, DataUse::training, failure);
    const auto held_out = open_data(data, std::span(&input, 1), 5, DataUse::held_out, failure);
    ASSERT_TRUE(training && held_out) << failure.message;
    for (std::uint64_t step = 0; step < 8; ++step) {
      EXPECT_EQ(held_out->places_of(7, step), step == 5 ? row.place : "") << step;
      EXPECT_EQ(held_out->places_of(9, step), "");
      // The value, and the target before it, are those of a window of the batch.
      std::vector<std::int64_t> ids(8 * 16);
      ASSERT_FALSE(training->load(0, step, 0, 8, ids.data()));
      const bool has = std::find(ids.begin(), ids.end(), 7) != ids.end();
      if (has) {
        EXPECT_EQ(training->places_of(7, step), row.place);
      }
    }
  }
}

TEST(Tokens, RefusalsNameTheSource) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("tiny.bin", "abc");
  const auto refused = [&](const PiperData& data, const PiperInput& input) {
    Failure failure;
    EXPECT_FALSE(open_data(data, std::span(&input, 1), 0, DataUse::training, failure));
    EXPECT_EQ(failure.place.line, 7u);
    return std::to_string(failure.code) + " " + failure.message;
  };
  PiperInput input{
      .name = "tokens", .dtype = PIPER_I64, .num_dims = 2, .dims = kDims, .sample_dim = 0};
  PiperData data = source(PIPER_TOKENS, path, PIPER_REPLACEMENT);
  EXPECT_EQ(refused(data, input),
            "6007 `" + path + "` has `3` tokens; a window of `seq: 16` needs `17`");
  data.token_type = PIPER_TOKENS_BY_FILE;
  EXPECT_EQ(refused(data, input),
            "6060 cannot read `" + path + "`: it has `3` bytes, no multiple of the `2` of a `u16`");
  input.name = "image";
  EXPECT_EQ(refused(data, input), "6008 `tokens` has no values for the input `image`");
  data.seq = 0;
  EXPECT_EQ(refused(data, input), "6008 `tokens` needs a positive `batch` and `seq`");
}

}  // namespace
}  // namespace piper::runtime
