#include "runtime/data/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <set>
#include <span>
#include <stdexcept>

#include "runtime/crc32.h"

namespace piper::runtime {
namespace {

constexpr std::uint32_t kLocalSignature = 0x04034b50, kDirectorySignature = 0x02014b50,
                        kEndSignature = 0x06054b50, kEnd64Signature = 0x06064b50,
                        kLocator64Signature = 0x07064b50;
constexpr std::uint64_t kLocalBytes = 30, kDirectoryBytes = 46, kEndBytes = 22, kEnd64Bytes = 56,
                        kLocator64Bytes = 20;
constexpr std::uint64_t kMaxComment = 65535;
/// The maximum size of a directory: an archive of arrays has few members.
constexpr std::uint64_t kMaxDirectory = std::uint64_t{16} << 20;
/// Deflate packs at most about 1032 bytes into one.
constexpr std::uint64_t kMaxRatio = 1040;
constexpr std::uint32_t kStored = 0, kDeflated = 8;
constexpr std::uint64_t kPart = std::uint64_t{1} << 18;  // bytes that are read at once
constexpr const char* kOtherSum = "is damaged: its checksum differs";
constexpr std::uint64_t kIn64 = 0xFFFFFFFF;  // the number is in a field of ZIP64

std::uint64_t number(std::span<const unsigned char> bytes, std::size_t at, std::size_t width) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width; ++i) value |= std::uint64_t{bytes[at + i]} << (8 * i);
  return value;
}

struct Directory {
  std::uint64_t offset = 0, bytes = 0, entries = 0;
};

std::string of_member(const ZipMember& member, const std::string& reason) {
  return "its member `" + shown_text(member.name) + "` " + reason;
}

/// Reads a directory. The functions return false with the reason.
class ZipReader {
 public:
  ZipReader(const DataFile& file, std::string& reason) : file_(file), reason_(reason) {}

  bool read(std::vector<ZipMember>& out) {
    Directory directory;
    if (!find_directory(directory)) return false;
    if (directory.offset > file_.size() || directory.bytes > file_.size() - directory.offset ||
        directory.entries > directory.bytes / kDirectoryBytes)
      return fail("its directory lies beyond its end");
    if (directory.bytes > kMaxDirectory)
      return fail("its directory has more than `" + std::to_string(kMaxDirectory) + "` bytes");
    std::vector<unsigned char> bytes(static_cast<std::size_t>(directory.bytes));
    if (!read_at(directory.offset, bytes)) return false;
    std::span<const unsigned char> entries = bytes;
    std::set<std::string, std::less<>> names;
    for (std::uint64_t i = 0; i < directory.entries; ++i) {
      ZipMember member;
      if (!entry(entries, member) || !locate(member, directory.offset)) return false;
      if (!names.insert(member.name).second)
        return fail("two of its members are called `" + shown_text(member.name) + '`');
      out.push_back(std::move(member));
    }
    return true;
  }

 private:
  bool fail(std::string reason) {
    reason_ = std::move(reason);
    return false;
  }
  bool fail(const ZipMember& member, const std::string& reason) {
    return fail(of_member(member, reason));
  }
  bool read_at(std::uint64_t offset, std::span<unsigned char> out) {
    if (offset > file_.size() || out.size() > file_.size() - offset)
      return fail("it ends within a header");
    const auto failure = file_.read(offset, out.data(), out.size());
    return !failure || fail(failure->message);
  }

  /// The record at the end of an archive, which a comment may follow.
  bool find_directory(Directory& out) {
    const std::uint64_t tail = std::min(file_.size(), kEndBytes + kMaxComment);
    std::vector<unsigned char> bytes(static_cast<std::size_t>(tail));
    if (!read_at(file_.size() - tail, bytes)) return false;
    for (std::size_t at = bytes.size() < kEndBytes ? 0 : bytes.size() - kEndBytes + 1; at-- > 0;) {
      if (number(bytes, at, 4) != kEndSignature) continue;
      if (number(bytes, at + 20, 2) != bytes.size() - at - kEndBytes) continue;
      const std::uint64_t end = file_.size() - tail + at;
      const std::uint64_t disk = number(bytes, at + 4, 2);
      out.entries = number(bytes, at + 10, 2);
      out.bytes = number(bytes, at + 12, 4);
      out.offset = number(bytes, at + 16, 4);
      if (out.entries == 0xFFFF || out.bytes == kIn64 || out.offset == kIn64)
        return find_directory64(end, out);
      return disk == 0 || fail("it is split into several files");
    }
    return fail("it has no directory at its end, so it was cut short");
  }

  bool find_directory64(std::uint64_t end, Directory& out) {
    unsigned char locator[kLocator64Bytes], record[kEnd64Bytes];
    if (end < kLocator64Bytes) return fail("it has no directory of ZIP64");
    if (!read_at(end - kLocator64Bytes, locator)) return false;
    if (number(locator, 0, 4) != kLocator64Signature) return fail("it has no directory of ZIP64");
    if (!read_at(number(locator, 8, 8), record)) return false;
    if (number(record, 0, 4) != kEnd64Signature) return fail("it has no directory of ZIP64");
    out.entries = number(record, 32, 8);
    out.bytes = number(record, 40, 8);
    out.offset = number(record, 48, 8);
    return number(record, 16, 4) == 0 || fail("it is split into several files");
  }

  /// Takes one entry from the directory; `offset` is then that of its local header.
  bool entry(std::span<const unsigned char>& entries, ZipMember& out) {
    if (entries.size() < kDirectoryBytes || number(entries, 0, 4) != kDirectorySignature)
      return fail("its directory is damaged");
    const std::uint64_t flags = number(entries, 8, 2), method = number(entries, 10, 2);
    out.crc32 = static_cast<std::uint32_t>(number(entries, 16, 4));
    out.packed = number(entries, 20, 4);
    out.bytes = number(entries, 24, 4);
    out.offset = number(entries, 42, 4);
    const std::size_t name = number(entries, 28, 2), extra = number(entries, 30, 2),
                      comment = number(entries, 32, 2);
    if (entries.size() - kDirectoryBytes < name + extra + comment)
      return fail("its directory is damaged");
    const auto text = entries.subspan(kDirectoryBytes, name);
    out.name.assign(text.begin(), text.end());
    if (!wide_numbers(entries.subspan(kDirectoryBytes + name, extra), out))
      return fail(out, "has damaged fields of ZIP64");
    entries = entries.subspan(kDirectoryBytes + name + extra + comment);
    if ((flags & 1) != 0) return fail(out, "is encrypted");
    if (method != kStored && method != kDeflated)
      return fail(out, "is packed by method `" + std::to_string(method) +
                           "`, and Piper reads stored and deflated members");
    out.deflated = method == kDeflated;
    if (!out.deflated && out.packed != out.bytes) return fail(out, "has two sizes");
    if (out.deflated && out.bytes / kMaxRatio > out.packed)
      return fail(out, "says that it unpacks to more than it can");
    return true;
  }

  /// The numbers that do not fit into 32 bits, in the order of the format.
  static bool wide_numbers(std::span<const unsigned char> extra, ZipMember& out) {
    while (extra.size() >= 4) {
      const std::uint64_t id = number(extra, 0, 2), size = number(extra, 2, 2);
      if (size > extra.size() - 4) return false;
      std::span<const unsigned char> field = extra.subspan(4, size);
      extra = extra.subspan(4 + size);
      if (id != 1) continue;
      for (std::uint64_t* value : {&out.bytes, &out.packed, &out.offset}) {
        if (*value != kIn64) continue;
        if (field.size() < 8) return false;
        *value = number(field, 0, 8);
        field = field.subspan(8);
      }
      return true;
    }
    return out.bytes != kIn64 && out.packed != kIn64 && out.offset != kIn64;
  }

  /// From the local header to the bytes behind it, which end before the directory.
  bool locate(ZipMember& member, std::uint64_t directory) {
    unsigned char header[kLocalBytes];
    if (member.offset > directory || directory - member.offset < kLocalBytes)
      return fail(member, "lies beyond the end");
    if (!read_at(member.offset, header)) return false;
    if (number(header, 0, 4) != kLocalSignature) return fail(member, "has a damaged header");
    const std::uint64_t before = kLocalBytes + number(header, 26, 2) + number(header, 28, 2);
    if (directory - member.offset < before || member.packed > directory - member.offset - before)
      return fail(member, "lies beyond the end");
    member.offset += before;
    return true;
  }

  const DataFile& file_;
  std::string& reason_;
};

/// Inflates a member into memory of its size.
bool inflate_into(const DataFile& file, const ZipMember& member, std::span<unsigned char> out,
                  std::string& reason) {
  z_stream stream{};
  const auto damaged = [&](const std::string& why) {
    inflateEnd(&stream);
    reason = of_member(member, why);
    return false;
  };
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  std::vector<unsigned char> packed(static_cast<std::size_t>(std::min(member.packed, kPart)));
  std::uint64_t taken = 0, filled = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    if (stream.avail_in == 0 && taken < member.packed) {
      const std::uint64_t part = std::min<std::uint64_t>(packed.size(), member.packed - taken);
      if (const auto failure = file.read(member.offset + taken, packed.data(), part))
        return damaged("cannot be read: " + failure->message);
      stream.next_in = packed.data();
      stream.avail_in = static_cast<uInt>(part);
      taken += part;
    }
    const std::uint64_t room = std::min<std::uint64_t>(out.size() - filled, 1 << 30);
    unsigned char spare = 0;  // one byte more than the member has
    stream.next_out = room > 0 ? out.data() + filled : &spare;
    stream.avail_out = room > 0 ? static_cast<uInt>(room) : 1;
    const uInt before = stream.avail_out;
    status = inflate(&stream, Z_NO_FLUSH);
    if (room == 0 && stream.avail_out != before)
      return damaged("unpacks to more bytes than its directory says");
    filled += before - stream.avail_out;
  }
  if (status != Z_STREAM_END || filled != out.size() || taken != member.packed ||
      stream.avail_in != 0)
    return damaged("is damaged");
  inflateEnd(&stream);
  return true;
}

}  // namespace

bool begins_as_zip(std::string_view bytes) {
  return bytes.starts_with("PK\x03\x04") || bytes.starts_with("PK\x05\x06");
}

std::optional<std::vector<ZipMember>> read_zip(const DataFile& file, std::string& reason) {
  std::vector<ZipMember> members;
  if (ZipReader(file, reason).read(members)) return members;
  return std::nullopt;
}

bool verify_stored(const DataFile& file, const ZipMember& member, std::string& reason) {
  std::vector<unsigned char> part(static_cast<std::size_t>(std::min(member.bytes, kPart)));
  std::uint32_t crc = 0;
  for (std::uint64_t at = 0; at < member.bytes;) {
    const std::uint64_t count = std::min(member.bytes - at, kPart);
    if (const auto failure = file.read(member.offset + at, part.data(), count)) {
      reason = of_member(member, "cannot be read: " + failure->message);
      return false;
    }
    crc = crc32_joined(crc, crc32_of(part.data(), count), count);
    at += count;
  }
  if (crc != member.crc32) reason = of_member(member, kOtherSum);
  return crc == member.crc32;
}

std::optional<std::vector<unsigned char>> inflated(const DataFile& file, const ZipMember& member,
                                                   std::string& reason) {
  try {
    std::vector<unsigned char> bytes(static_cast<std::size_t>(member.bytes));
    if (!inflate_into(file, member, bytes, reason)) return std::nullopt;
    if (crc32_of(bytes.data(), bytes.size()) == member.crc32) return bytes;
    reason = of_member(member, kOtherSum);
  } catch (const std::bad_alloc&) {
    reason = of_member(member, "does not fit into memory");
  } catch (const std::length_error&) {
    reason = of_member(member, "does not fit into memory");
  }
  return std::nullopt;
}

}  // namespace piper::runtime
