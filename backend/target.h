#pragma once
// The target of programs.

#include <cstdint>

namespace piper::backend {

enum class Target : std::uint8_t {
  cpu,
  // With LibTorch for CUDA: its attention for the shapes that it supports
  // (backend/cuda/attention.h).
  cuda,
  cuda_own,  // without LibTorch: all attention is built-in
};

}  // namespace piper::backend
