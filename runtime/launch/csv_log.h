#pragma once
// OUT/metrics.csv: a row per step of training, and a row per evaluation.
//
//   CsvLog log;
//   if (auto failure = log.open("out", {"gpt.loss.0"}, "tokens", LogFile::Begin::fresh)) ...;
//   log.write(record); log.write_held_out(50, 2.61);
//
//   step,loss,losses/gpt.loss.0,norm,lr,seconds,samples,tokens_per_second,held_out_loss
//   50,2.5,2.5,0.83,0.0019,0.41,32,9990,
//   50,,,,,,,,2.61
//
// A field is empty where the row has no such number. Numbers are the shortest decimals that give
// the same double, or `nan`, `inf`, `-inf`. Lines end in `\n`.

#include <span>
#include <string>

#include "runtime/launch/log_file.h"
#include "runtime/launch/step_log.h"

namespace piper::runtime {

/// The first line, with its newline. `unit`: of the speed, `tokens` or `samples`.
std::string csv_header(std::span<const std::string> loss_names, const std::string& unit);
/// The row of a training step, with its newline.
std::string csv_row(const StepRecord& step);

/// Whether a line of a metrics.csv describes the first `steps` steps of training or an evaluation
/// after at most so many.
bool csv_row_is_within(const std::string& line, std::uint64_t steps);

class CsvLog : public StepLog {
 public:
  /// The folder must exist. Refuses an earlier file with other columns than those of this run.
  std::optional<Failure> open(const std::string& out_folder,
                              std::span<const std::string> loss_names, const std::string& unit,
                              LogFile::Begin begin);
  std::optional<Failure> write(const StepRecord& step, std::uint64_t after = 0) override;
  std::optional<Failure> write_held_out(std::uint64_t after, double loss) override;

 private:
  LogFile file_;
  std::size_t losses_ = 0;  // columns
};

}  // namespace piper::runtime
