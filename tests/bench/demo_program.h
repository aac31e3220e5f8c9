#pragma once
// The program of examples/gpt/gpt.pipe on a text of random bytes, through the phases of
// `piper train`.
//
//   DemoProgram demo;
//   if (!demo.open()) return state.SkipWithError(demo.error().c_str());
//   std::unique_ptr<tools::TrainJob> job = tools::make_train_job(demo.session(), demo.subject(), false, options, nullptr);

#include <optional>
#include <sstream>
#include <string>

#include "frontend/tools/session.h"
#include "tests/bench/measure.h"

namespace piper::bench {

class DemoProgram {
 public:
  DemoProgram();

  /// Lowers the program; false: `error` says why. The working directory is the project's root.
  bool open();
  /// The same model and settings on one device, neither sharded, split nor ordered.
  void use_one_device();

  tools::Session& session() { return *session_; }
  tools::Session::Subject& subject() { return *subject_; }
  /// All diagnostics of the session as text, or a message if there are none.
  std::string error();

 private:
  ScratchFolder folder_;
  std::ostringstream out_, err_;
  source::RealFileSystem disk_;
  tools::Console console_{out_, err_, disk_, {}};
  tools::Arguments arguments_;
  std::optional<tools::Session> session_;
  std::optional<tools::Session::Subject> subject_;
};

}  // namespace piper::bench
