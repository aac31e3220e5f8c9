#include "runtime/trace/flight.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

namespace piper::runtime {
namespace {

constexpr std::string_view kName = "flight.";  // and the rank

Failure cannot_write(const std::string& path, int error) {
  return {.code = kOutputUnwritable,
          .message = "cannot write the flight record `" + path + "`: " + std::strerror(error),
          .hint = "give `--out` a folder that can be written, on a disk with space left"};
}

}  // namespace

FlightFile::~FlightFile() {
  if (record_) munmap(record_, sizeof(PiperFlight));
}

std::optional<Failure> FlightFile::open(const std::string& path, std::uint32_t rank) {
  void* memory = MAP_FAILED;
  if (path.empty()) {
    memory = mmap(nullptr, sizeof(PiperFlight), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                  -1, 0);
    if (memory == MAP_FAILED)
      return Failure{.code = kOutOfMemory,
                     .message = "there is no memory for a flight record",
                     .hint = {},
                     .rank = rank};
  } else {
    // A new file: truncating one that another process has mapped would end that process.
    unlink(path.c_str());
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    int error = file < 0 ? errno : posix_fallocate(file, 0, sizeof(PiperFlight));
    if (file >= 0 && error == 0) {
      memory = mmap(nullptr, sizeof(PiperFlight), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      if (memory == MAP_FAILED) error = errno;
    }
    if (file >= 0) close(file);
    if (error != 0) {
      Failure failure = cannot_write(path, error);
      failure.rank = rank;
      return failure;
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
  return out_folder.empty() ? std::string()
                            : out_folder + "/" + std::string(kName) + std::to_string(rank);
}

std::optional<Failure> remove_flights(const std::string& out_folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<fs::path> records;
  fs::directory_iterator it(out_folder, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    const std::string name = it->path().filename().native();
    if (name.starts_with(kName) && name.size() > kName.size() &&
        name.find_first_not_of("0123456789", kName.size()) == std::string::npos)
      records.push_back(it->path());
  }
  for (std::size_t i = 0; !error && i < records.size(); ++i) {
    if (unlink(records[i].c_str()) != 0 && errno != ENOENT) return cannot_write(records[i], errno);
  }
  if (error) return cannot_write(out_folder, error.value());
  return std::nullopt;
}

std::optional<PiperFlight> read_flight(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  PiperFlight record;
  const ssize_t bytes = pread(file, &record, sizeof(record), 0);
  close(file);
  if (bytes != static_cast<ssize_t>(sizeof(record)) || record.abi_version != PIPER_ABI_VERSION)
    return std::nullopt;
  return record;
}

}  // namespace piper::runtime
