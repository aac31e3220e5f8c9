#include "tests/bench/demo_program.h"

#include <fstream>
#include <random>

namespace piper::bench {

DemoProgram::DemoProgram() {
  const std::string text = folder_.path() + "/corpus";
  std::ofstream file(text, std::ios::binary);
  std::mt19937 random(1);
  for (int i = 0; i < 1 << 20; ++i) file.put(static_cast<char>(random() & 0xFF));
  arguments_.command = tools::Command::train;
  arguments_.overrides = {{"corpus", text}, {"held_out", text}};
  session_.emplace(console_, arguments_);
}

bool DemoProgram::open() {
  if (!session_->open("examples/gpt/gpt.pipe")) return false;
  subject_ = session_->subject("", true);
  return subject_.has_value();
}

void DemoProgram::use_one_device() {
  directive::Strategy& strategy = subject_->lowered.strategy;
  strategy.directives.clear();
  strategy.device_sets = {};
  strategy.mesh.axes = {{session_->context().symbol("device"), 1}};
}

std::string DemoProgram::error() {
  session_->finish();
  return err_.str().empty() ? "the demo's program could not be made" : err_.str();
}

}  // namespace piper::bench
