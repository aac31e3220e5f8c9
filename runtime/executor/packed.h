#pragma once
// Packed: lists of plain values as the bytes that processes on one machine type send each other.

#include <string>
#include <type_traits>
#include <vector>

namespace piper::runtime {

template <typename T>
std::string packed(const std::vector<T>& list) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const char*>(list.data()), list.size() * sizeof(T)};
}

/// The values of the bytes. Left-over bytes that make no value are dropped.
template <typename T>
std::vector<T> unpacked(const std::string& bytes) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> list(bytes.size() / sizeof(T));
  // `copy` takes a null pointer for no bytes, `memcpy` does not.
  bytes.copy(reinterpret_cast<char*>(list.data()), list.size() * sizeof(T));
  return list;
}

}  // namespace piper::runtime
