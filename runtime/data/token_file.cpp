#include "runtime/data/token_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <new>

#include "runtime/abi.h"
#include "runtime/crc32.h"
#include "runtime/data/file_text.h"
#include "runtime/data/token_formats.h"

namespace piper::runtime {
namespace {

/// Converts `count` ids to to[0], to[stride], and so on.
template <typename Id>
void widen(const unsigned char* from, std::uint64_t count, std::uint64_t stride, std::int64_t* to) {
  for (std::uint64_t i = 0; i < count; ++i) {
    Id id{};
    std::memcpy(&id, from + i * sizeof(Id), sizeof(Id));
    to[i * stride] = static_cast<std::int64_t>(id);
  }
}

void widen(StoredType type, const unsigned char* from, std::uint64_t count, std::uint64_t stride,
           std::int64_t* to) {
  switch (type) {
    case StoredType::u8: return widen<std::uint8_t>(from, count, stride, to);
    case StoredType::i8: return widen<std::int8_t>(from, count, stride, to);
    case StoredType::u16: return widen<std::uint16_t>(from, count, stride, to);
    case StoredType::i16: return widen<std::int16_t>(from, count, stride, to);
    case StoredType::u32: return widen<std::uint32_t>(from, count, stride, to);
    case StoredType::i32: return widen<std::int32_t>(from, count, stride, to);
    case StoredType::u64: return widen<std::uint64_t>(from, count, stride, to);
    case StoredType::i64: return widen<std::int64_t>(from, count, stride, to);
    case StoredType::f64:
    case StoredType::f32:
    case StoredType::f16:
    case StoredType::bf16:
    case StoredType::boolean: break;  // refused when a file is opened
  }
}

/// The files of a text: an index stands for its data.
std::optional<std::vector<std::string>> token_files(const std::string& path, Failure& failure) {
  auto files = files_below(path, failure);
  if (!files) return files;
  const auto has_index = [&](const std::string& file) {
    const std::string index = index_of(file);
    return !index.empty() && std::binary_search(files->begin(), files->end(), index);
  };
  std::vector<std::string> texts;
  std::remove_copy_if(files->begin(), files->end(), std::back_inserter(texts), has_index);
  return texts;
}

}  // namespace

std::optional<StoredType> token_type_of(std::uint32_t type) {
  switch (static_cast<PiperTokenType>(type)) {
    case PIPER_TOKENS_BY_FILE: return std::nullopt;
    case PIPER_TOKENS_U8: return StoredType::u8;
    case PIPER_TOKENS_U16: return StoredType::u16;
    case PIPER_TOKENS_U32: return StoredType::u32;
    case PIPER_TOKENS_I32: return StoredType::i32;
  }
  return std::nullopt;
}

std::shared_ptr<const TokenFile> TokenFile::open(const std::string& path,
                                                 std::optional<StoredType> type, Failure& failure) {
  const auto unreadable = [&](const std::string& reason) {
    failure = {.code = kDataUnreadable,
               .message = "cannot read `" + path + "`: " + reason,
               .hint = "name a file of token ids that can be read, or a folder of such files"};
    return nullptr;
  };
  try {
    auto tokens = std::make_shared<TokenFile>();
    std::error_code error;
    const bool folder = std::filesystem::is_directory(path, error);
    if (!folder) {
      if (!append_tokens(path, type, true, tokens->runs_, tokens->files_, failure)) return nullptr;
    } else {
      const auto files = token_files(path, failure);
      if (!files) return nullptr;
      for (const std::string& file : *files) {
        if (!append_tokens(file, type, false, tokens->runs_, tokens->files_, failure))
          return nullptr;
      }
    }
    if (!tokens->runs_.empty())
      tokens->size_ = tokens->runs_.back().first + tokens->runs_.back().count;
    return tokens;
  } catch (const std::bad_alloc&) {
    return unreadable("its index does not fit into memory");
  } catch (const std::filesystem::filesystem_error& error) {
    return unreadable(error_text(error.code().value()));
  }
}

std::vector<TokenRun>::const_iterator TokenFile::run_of(std::uint64_t token) const {
  const auto after =
      std::upper_bound(runs_.begin(), runs_.end(), token,
                       [](std::uint64_t t, const TokenRun& run) { return t < run.first; });
  return std::prev(after);
}

std::optional<Failure> TokenFile::read(std::uint64_t first, std::uint64_t count,
                                       std::uint64_t stride, std::int64_t* to) const {
  constexpr std::uint64_t kPart = 8192;  // bytes, a multiple of every type
  unsigned char part[kPart];
  const DataFile* last = nullptr;
  for (auto run = run_of(first); count > 0; ++run) {
    const std::uint64_t width = stored_type_bytes(run->type);
    std::uint64_t skipped = first - run->first;
    for (; skipped < run->count && count > 0;) {
      const std::uint64_t taken = std::min({count, run->count - skipped, kPart / width});
      if (auto failure = run->file->read(run->offset + skipped * width, part, taken * width))
        return failure;
      widen(run->type, part, taken, stride, to);
      for (std::uint64_t i = 0; run->type == StoredType::u64 && i < taken; ++i) {
        if (to[i * stride] >= 0) continue;
        return Failure{.code = kDataMismatch,
                       .message = '`' + run->file->path() + "` has the id `" +
                                  std::to_string(static_cast<std::uint64_t>(to[i * stride])) +
                                  "`, and ids are below 2^63",
                       .hint = "give ids below the size of the vocabulary"};
      }
      to += taken * stride;
      skipped += taken;
      first += taken;
      count -= taken;
    }
    // Many runs may lie in one file.
    if (run->file.get() != last) {
      if (auto change = run->file->find_change()) return change;
      last = run->file.get();
    }
  }
  return std::nullopt;
}

void TokenFile::read_ahead(std::uint64_t first, std::uint64_t count) const {
  for (auto run = run_of(first); count > 0; ++run) {
    const std::uint64_t width = stored_type_bytes(run->type), skipped = first - run->first,
                        taken = std::min(count, run->count - skipped);
    run->file->read_ahead(run->offset + skipped * width, taken * width);
    first += taken;
    count -= taken;
  }
}

std::string TokenFile::fingerprint_text() const {
  std::uint32_t crc = 0;
  for (const auto& file : files_) {
    const auto file_crc = file->fingerprint(0, file->size());
    if (!file_crc) return std::to_string(size_) + " tokens, which can no longer be read";
    crc = crc32_joined(crc, *file_crc, file->size());
  }
  std::string types;
  for (const TokenRun& run : runs_) {
    const std::string type = token_type_name(run.type) + ", ";
    if (types.find(type) == std::string::npos) types += type;
  }
  return std::to_string(size_) + " tokens, " + types + "crc32 " + crc32_text(crc);
}

TokenFile::Position TokenFile::position(std::uint64_t token) const {
  const auto run = run_of(token);
  // The position among the tokens of the file, whatever header it has.
  std::uint64_t before = token - run->first;
  for (auto earlier = run; earlier != runs_.begin();) {
    --earlier;
    if (earlier->file != run->file) break;
    before += earlier->count;
  }
  return {run->file->path(), before};
}

std::optional<ForeignToken> find_token_from(const TokenFile& tokens, std::uint64_t limit,
                                            std::int64_t bound, std::optional<std::int64_t> ignored,
                                            std::optional<Failure>& failure) {
  constexpr std::uint64_t kPart = 4096;
  std::vector<std::int64_t> ids(kPart);
  limit = std::min(limit, tokens.size());
  for (std::uint64_t first = 0; first < limit; first += kPart) {
    const std::uint64_t count = std::min(kPart, limit - first);
    failure = tokens.read(first, count, 1, ids.data());
    if (failure) return std::nullopt;
    for (std::uint64_t i = 0; i < count; ++i) {
      if ((ids[i] < 0 || ids[i] >= bound) && ids[i] != ignored)
        return ForeignToken{first + i, ids[i]};
    }
  }
  return std::nullopt;
}

std::shared_ptr<const TokenFile> TextFiles::tokens(const std::string& path,
                                                   std::optional<StoredType> type,
                                                   Failure& failure) {
  const std::string key = path + '\n' + (type ? token_type_name(*type) : "");
  std::shared_ptr<const TokenFile>& tokens = tokens_[key];
  if (!tokens) tokens = TokenFile::open(path, type, failure);
  return tokens;
}

}  // namespace piper::runtime
