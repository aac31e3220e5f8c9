#pragma once
// The flight record of a rank: a fixed-size file in shared memory, written by plain stores, so that
// it outlives the process.
//
//   FlightFile file;
//   if (auto failure = file.open("out/flight.0", 0)) ...;    // empty path: memory without a name
//   file.begin_program(program);
//   std::optional<PiperFlight> record = read_flight("out/flight.0");

#include <memory>
#include <optional>
#include <string>

#include "runtime/abi.h"
#include "runtime/failure.h"

namespace piper::runtime {

class FlightFile {
 public:
  FlightFile() = default;
  FlightFile(const FlightFile&) = delete;
  FlightFile& operator=(const FlightFile&) = delete;
  ~FlightFile();

  /// Reserves the whole file, so that a full disk is noticed here and not as a signal in the step
  /// loop.
  std::optional<Failure> open(const std::string& path, std::uint32_t rank);
  /// Starts the counts of a program at zero.
  void begin_program(const PiperProgram& program);
  PiperFlight* record() const { return record_; }

 private:
  PiperFlight* record_ = nullptr;
};

/// `OUT/flight.3`; empty for an empty folder.
std::string flight_path(const std::string& out_folder, std::uint32_t rank);
/// Removes the records of an earlier run, which may have had more ranks.
std::optional<Failure> remove_flights(const std::string& out_folder);
/// Empty if the file is missing, too short, or of another version.
std::optional<PiperFlight> read_flight(const std::string& path);

}  // namespace piper::runtime
