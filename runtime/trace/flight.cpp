#include "runtime/trace/flight.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace piper::runtime {

FlightFile::~FlightFile() {
  if (record_) munmap(record_, sizeof(PiperFlight));
}

std::optional<Failure> FlightFile::open(const std::string& path, std::uint32_t rank) {
  void* memory = MAP_FAILED;
  if (path.empty()) {
    memory = mmap(nullptr, sizeof(PiperFlight), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return Failure{.code = kOutOfMemory, .message = "there is no memory for a flight record", .hint = {}, .rank = rank};
  } else {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int error = file < 0 ? errno : posix_fallocate(file, 0, sizeof(PiperFlight));
    if (file >= 0 && error == 0) {
      memory = mmap(nullptr, sizeof(PiperFlight), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      if (memory == MAP_FAILED) error = errno;
    }
    if (file >= 0) close(file);
    if (error != 0) {
      return Failure{.code = kOutputUnwritable,
                     .message = "cannot write the flight record `" + path + "`: " + std::strerror(error),
                     .hint = "give `--out` a folder that can be written, on a disk with space left",
                     .rank = rank};
    }
  }
  record_ = static_cast<PiperFlight*>(memory);
  record_->abi_version = PIPER_ABI_VERSION;
  record_->rank = rank;
  return std::nullopt;
}

void FlightFile::begin_program(const PiperProgram& program) {
  const std::uint32_t rank = record_->rank;
  std::memset(record_, 0, sizeof(PiperFlight));
  record_->abi_version = PIPER_ABI_VERSION;
  record_->rank = rank;
  record_->num_streams = program.num_streams;
  std::snprintf(record_->hash, sizeof(record_->hash), "%s", program.hash ? program.hash : "");
}

std::string flight_path(const std::string& out_folder, std::uint32_t rank) {
  return out_folder.empty() ? std::string() : out_folder + "/flight." + std::to_string(rank);
}

std::optional<PiperFlight> read_flight(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  PiperFlight record;
  const ssize_t bytes = pread(file, &record, sizeof(record), 0);
  close(file);
  if (bytes != static_cast<ssize_t>(sizeof(record)) || record.abi_version != PIPER_ABI_VERSION) return std::nullopt;
  return record;
}

}  // namespace piper::runtime
