#pragma once
// An event file in OUT/tensorboard, which `tensorboard --logdir OUT` draws.
//
//   TensorboardLog log;
//   if (auto failure = log.open("out", {"gpt.loss.0"}, std::nullopt)) ...;
//   log.write(record); log.write_held_out(50, 2.61);
//
// Curves: `loss`, `losses/NAME`, `lr`, `norm` if there is one, `tokens_per_second` or
// `samples_per_second`, and `held_out/loss`, at steps that count from 1.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/launch/log_file.h"
#include "runtime/launch/step_log.h"

namespace piper::runtime {

inline constexpr std::string_view kEventFilePrefix = "events.out.tfevents.";

class TensorboardLog : public StepLog {
 public:
  /// Makes the folder and OUT/tensorboard/events.out.tfevents.SECONDS.HOST.PROCESS. TensorBoard
  /// reads the files of a folder in the order of their names, so the name of this one is the last.
  /// `goes_on_after`: a run that goes on after so many steps; later ones in earlier files are void.
  std::optional<Failure> open(const std::string& out_folder, std::vector<std::string> loss_names,
                              std::optional<std::uint64_t> goes_on_after);
  std::optional<Failure> write(const StepRecord& step, std::uint64_t after = 0) override;
  std::optional<Failure> write_held_out(std::uint64_t after, double loss) override;

  const std::string& path() const { return file_.path(); }

 private:
  LogFile file_;
  std::vector<std::string> loss_names_;
};

}  // namespace piper::runtime
