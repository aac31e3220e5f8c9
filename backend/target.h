#pragma once
// What programs are made for.

#include <cstdint>

namespace piper::backend {

enum class Target : std::uint8_t {
  cpu,
  cuda,      // with LibTorch for CUDA: its attention where it takes the shape (backend/cuda/attention.h)
  cuda_own,  // without: all attention is by a kernel of ours
};

}  // namespace piper::backend
