#include "tests/laws/library_cases.h"

#include <algorithm>
#include <ostream>
#include <utility>
#include <variant>

#include "frontend/lower/lower.h"
#include "tests/support/compile.h"
#include "tests/support/library_declarations.h"

namespace piper::test {

void PrintTo(const LibraryCase& each, std::ostream* to) { *to << each.call; }

std::string gpt_source(const LibraryCase& each, const std::string& cut) {
  return std::string("use std.models.gpt\nuse std.schedules.") + each.schedule +
         "\nmesh cluster(pp: " + std::to_string(each.devices) + R"(, dp: 2)
train small = gpt(layers: 6, dim: 8, heads: 2, vocab: 11, tied: true) on cluster {
    data:  synthetic(batch: 16, seq: 3, classes: 11)
    optim: adamw(lr: 1e-2, eps: 1e-4, weight_decay: 0.1, clip: 0.1)
    steps: 3
    )" + each.call +
         R"(
    )" + (each.replicates ? "" : "replicate model over dp with bucket: 1KiB, " + cut) +
         R"(
}
)";
}

bool compiles(const std::string& text, std::string& why, bool* offloads) {
  source::MemoryFileSystem files;
  files.add("small.pipe", text);
  Context context;
  DiagnosticSink sink(context.locations);
  const auto file = source::open("small.pipe", {}, files, context.locations.files(), sink);
  const sema::Program analysed = sema::analyse(*file, files, context, sink);
  auto lowered = analysed.ok
                     ? lower::lower_train(analysed, analysed.find_train("small"), {}, context, sink)
                     : std::nullopt;
  const bool good =
      lowered && test::compile(lowered->model, lowered->strategy, sink, {}).has_value();
  if (good && offloads != nullptr) {
    *offloads =
        std::any_of(lowered->strategy.directives.begin(), lowered->strategy.directives.end(),
                    [](const directive::Directive& each) {
                      return std::holds_alternative<directive::Offload>(each);
                    });
  }
  if (!good) why += text + render_text(sink.sorted(), context.locations.files());
  return good;
}

namespace {

/// Every schedule at the first of these pairs of devices and microbatches that it accepts.
std::vector<LibraryCase> cases_at(const std::vector<std::pair<int, int>>& sizes) {
  std::vector<LibraryCase> found;
  for (const LibraryDeclaration& schedule : library_schedules()) {
    LibraryCase each{schedule.name, "", 0};
    for (const auto& [devices, number] : sizes) {
      std::string arguments, why;
      const char* axis = "pp";
      for (const LibraryParam& param : schedule.params)
        arguments += (arguments.empty() ? "" : ", ") +
                     (param.axis ? std::string(std::exchange(axis, "dp")) : std::to_string(number));
      each.call = schedule.name + "(" + arguments + ")";
      each.devices = devices;
      if (compiles(gpt_source(each), why, &each.offloads)) break;
      each.replicates = true;
      if (compiles(gpt_source(each), why, &each.offloads)) break;
      each.replicates = false;
      each.devices = 0;
    }
    found.push_back(each);
  }
  return found;
}

}  // namespace

std::vector<LibraryCase> library_cases() {
  return cases_at({{3, 4}, {2, 4}, {2, 8}, {4, 8}, {4, 16}, {2, 3}});
}

std::vector<LibraryCase> library_cases_on(int devices) {
  return cases_at({{devices, 2 * devices}, {devices, 4 * devices}, {devices, 3}});
}

}  // namespace piper::test
