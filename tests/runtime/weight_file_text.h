#pragma once
// Files of weights as tests write them, and read them back.
//
//   folder.write("w.safetensors", weight_file({{"w", StoredType::f32, {2}, bytes_of<float>({1, 2})}}));

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "runtime/checkpoint/safetensors.h"

namespace piper::runtime {

struct TestTensor {
  std::string name;
  StoredType type = StoredType::f32;
  std::vector<std::int64_t> dims;
  std::string data;  // its bytes
};

/// The bytes of numbers in a type.
template <typename T>
std::string bytes_of(const std::vector<double>& numbers) {
  std::string bytes;
  for (const double number : numbers) {
    const T value = static_cast<T>(static_cast<float>(number));
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return bytes;
}
template <>
inline std::string bytes_of<double>(const std::vector<double>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(double)};
}

/// The numbers of bytes in a type.
template <typename T>
std::vector<double> numbers_of(const std::string& bytes) {
  std::vector<double> numbers;
  for (std::size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    numbers.push_back(static_cast<double>(value));
  }
  return numbers;
}

/// A whole file.
inline std::string weight_file(const std::vector<TestTensor>& tensors) {
  std::vector<StoredTensor> stored;
  std::string data;
  for (const TestTensor& tensor : tensors) {
    stored.push_back(
        {tensor.name, tensor.type, tensor.dims, data.size(), data.size() + tensor.data.size()});
    data += tensor.data;
  }
  return safetensors_header(stored) + data;
}

}  // namespace piper::runtime
