#include "runtime/read_at.h"

#include <unistd.h>

#include <cerrno>

namespace piper::runtime {

ReadCount read_at(int file, std::uint64_t position, std::uint64_t bytes, void* to) {
  ReadCount read;
  while (read.bytes < bytes) {
    const ssize_t count = pread(file, static_cast<unsigned char*>(to) + read.bytes,
                                bytes - read.bytes, static_cast<off_t>(position + read.bytes));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) read.error = errno;
    if (count <= 0) break;
    read.bytes += static_cast<std::uint64_t>(count);
  }
  return read;
}

}  // namespace piper::runtime
