#pragma once
// Data files as other programs write them, written by hand: `.npy`, `.npz`, safetensors, llm.c's
// and Megatron's.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace piper::test {

/// The bytes of a number, the lowest first.
template <typename Number>
std::string bytes_of(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}
template <typename Number>
std::string bytes_of_all(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

/// A `.npy` file: `{'descr': '<u2', 'fortran_order': False, 'shape': (5,), }` and data.
std::string npy(std::string_view descr, std::string_view shape, std::string_view data,
                int version = 1, std::string_view order = "False");

struct NamedFile {
  std::string name, content;
  bool deflated = false;
};
/// A ZIP archive, as `numpy.savez` and `numpy.savez_compressed` write it; `wide`: with the fields of
/// ZIP64.
std::string zip(const std::vector<NamedFile>& files, bool wide = false);

/// A file of llm.c; `count`: tokens by its header.
std::string llm_c(std::uint32_t magic, std::uint32_t version, std::uint32_t count,
                  std::string_view data);

/// An index of Megatron; `code`: of the type.
std::string megatron_index(std::uint8_t code, const std::vector<std::int32_t>& lengths,
                           const std::vector<std::int64_t>& offsets,
                           const std::vector<std::int64_t>& documents, std::uint64_t version = 1);

/// A safetensors file with the JSON text of its header.
std::string safetensors(std::string_view header, std::string_view data);

}  // namespace piper::test
