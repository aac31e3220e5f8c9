#pragma once
// Text to tensor graph and strategy, with everything that must outlive them.
//
//   Lowered lowered(test::read_text("a.pipe").value(), "a.pipe");
//   lowered.train("small");                                  // or .schedule("zbv", {{"p", "4"}, {"m", "8"}})
//   ASSERT_TRUE(lowered.result) << lowered.report();

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/lower/lower.h"
#include "frontend/sema/program.h"
#include "ir/directive/print.h"

namespace piper::test {

struct Lowered {
  Context context;
  DiagnosticSink sink{context.locations};
  FileId file;
  sema::Program program;
  std::optional<lower::Lowered> result;

  explicit Lowered(std::string text, const std::string& name = "test.pipe",
                   const source::FileSystem& file_system = source::MemoryFileSystem())
      : file(context.locations.files().add(name, std::move(text))),
        program(sema::analyse(file, file_system, context, sink)) {}

  /// Opens a library schedule: `zbv` stands in `std.schedules.zbv`.
  static std::string use(std::string_view schedule) {
    return "use std.schedules." + std::string(schedule) + "\n";
  }

  bool train(sema::TrainId id, std::vector<lower::Override> overrides = {}) {
    result = lower::lower_train(program, id, overrides, context, sink);
    return result.has_value();
  }
  bool train(std::string_view name, std::vector<lower::Override> overrides = {}) {
    return program.ok && program.find_train(name).valid() &&
           train(program.find_train(name), std::move(overrides));
  }
  bool schedule(sema::FunctionId id, std::vector<lower::Override> overrides = {}) {
    result = lower::lower_schedule(program, id, overrides, context, sink);
    return result.has_value();
  }
  /// A schedule of the entry file or of a file that it uses.
  bool schedule(std::string_view name, std::vector<lower::Override> overrides = {}) {
    for (std::size_t i = 0; program.ok && i < program.functions.size(); ++i) {
      const sema::Function& function = program.functions[i];
      if (function.sort() == ast::FunctionSort::schedule && function.name() == name)
        return schedule(sema::FunctionId::at(i), std::move(overrides));
    }
    return false;
  }

  std::string report() const { return render_text(sink.sorted(), context.locations.files()); }
  std::vector<Code> codes() const {
    std::vector<Code> list;
    for (const Diagnostic& diagnostic : sink.sorted()) list.push_back(diagnostic.code);
    return list;
  }
  /// The directives as text, one after the other, without locations.
  std::string strategy() const {
    std::string text;
    const directive::Surroundings surroundings{context, result->strategy.mesh,
                                               result->strategy.device_sets};
    for (const directive::Directive& directive : result->strategy.directives)
      text += directive::print(directive, surroundings);
    return text;
  }
};

}  // namespace piper::test
