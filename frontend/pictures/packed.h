#pragma once
// Columns of numbers and texts as one short text for a page: differences of numbers as
// variable-length integers, deflated if zlib is there, in base64.
//
//   Packer packer;
//   header["mb"] = packer.add(mbs);              // {"at": 0, "count": 393216}
//   header["start"] = packer.add_times(starts);  // and "tick": what 1 means
//   header["names"] = packer.add_texts(names);   // {"at": 393300, "size": 1200}: UTF-8 with a zero behind each
//   page["blob"] = packer.text(); page["encoding"] = packer.encoding();
//
// A difference d is written as 2d, or -2d - 1 if it is negative, in groups of seven bits, the
// lowest first; the top bit of a byte says that another one follows. The first difference is to 0.
// Reading is exact for integers below 2^53.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "llvm/Support/JSON.h"

namespace piper::pictures {

class Packer {
 public:
  llvm::json::Object add(std::span<const std::int64_t> column);
  llvm::json::Object add(std::span<const std::uint32_t> column);
  /// Numbers as multiples of the largest tick that keeps them exact, or of one that is fine enough
  /// to draw them.
  llvm::json::Object add_times(std::span<const double> column);

  /// Texts have no zeros.
  llvm::json::Object add_texts(std::span<const std::string> texts);

  /// `deflate` or `raw`.
  const char* encoding() const;
  std::string text() const;

 private:
  void put(std::int64_t difference);
  std::vector<std::uint8_t> bytes_;
};

}  // namespace piper::pictures
