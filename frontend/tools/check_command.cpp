#include "frontend/tools/commands.h"
#include "frontend/tools/initial_weights.h"
#include "frontend/tools/large_heap.h"
#include "frontend/tools/token_check.h"
#include "frontend/tools/train_job.h"
#include "ir/parallel.h"
#include "ir/verify/verify.h"
#include "runtime/data/file_text.h"

namespace piper::tools {
namespace {

/// A pipe can be read once, by `train`; if it were opened here, its writer would find the reader
/// gone.
void report_pipe(Session& session, const directive::Data& data) {
  session.sink()
      .report(Code::data_not_here, data.path_loc, "`{}` is a pipe, which is not looked into",
              data.path)
      .hint("`train` reads it: somebody has to write to it then");
}

/// An error that `train` would report.
void report_missing(Session& session, const directive::Data& data,
                    const runtime::Failure& failure) {
  const std::string line = failure.place.line > 0 ? "`" + failure.place.file + "` line " +
                                                        std::to_string(failure.place.line) + ": "
                                                  : "";
  session.sink()
      .report(Code::data_not_here, data.path_loc, "{}", line + failure.message)
      .hint("`train` needs it: {}", failure.hint);
}

/// A plan does not depend on the text, and it may run on another machine: an error of `train` is a
/// warning here.
void look_for_data(Session& session, const lower::Lowered& lowered) {
  const directive::Settings& settings = lowered.strategy.settings;
  for (const auto* data : {&settings.data, &settings.held_out}) {
    if (!*data || (*data)->kind == directive::Data::Kind::synthetic) continue;
    runtime::Failure failure;
    if ((*data)->kind == directive::Data::Kind::tokens) {
      if (const auto windows = open_tokens(session, lowered.model, **data, failure)) {
        batches_fit(session, lowered, **data, *windows, Code::data_not_here);
        continue;
      }
      report_missing(session, **data, failure);
      continue;
    }
    if ((*data)->kind == directive::Data::Kind::arrays) {
      const auto size = runtime::text_size((*data)->path, failure);
      if (size == runtime::kUnknownSize) {
        report_pipe(session, **data);
        continue;
      }
      if (const auto rows =
              size ? read_arrays(session, lowered.model, **data, failure) : std::nullopt) {
        batches_fit(session, lowered, **data, *rows, Code::data_not_here);
        continue;
      }
      report_missing(session, **data, failure);
      continue;
    }
    const std::optional<std::uint64_t> bytes = runtime::text_size((*data)->path, failure);
    if (bytes == runtime::kUnknownSize) {
      report_pipe(session, **data);
      continue;
    }
    if (bytes &&
        runtime::holds_window((*data)->path, *bytes, window_of(session, **data), failure)) {
      const auto text = runtime::read_text((*data)->path, failure, kTextLookedThrough);
      if (text) look_for_bytes(session, lowered.model, **data, *text);
      batches_fit(session, lowered, **data, (*bytes - 1) / window_of(session, **data),
                  Code::data_not_here);
      continue;
    }
    report_missing(session, **data, failure);
  }
}

/// A lower bound of the tables of a plan for each operation of an order, which is a node, with
/// messages, edges, actions and buffers.
constexpr std::size_t kBytesPerOperation = 640;

std::size_t count_operations(const directive::Strategy& strategy) {
  std::size_t operations = 0;
  for (const directive::Directive& directive : strategy.directives) {
    if (const auto* order = std::get_if<directive::Order>(&directive))
      operations += order->ops.size();
  }
  return operations;
}

}  // namespace

int run_check(Console& console, const Arguments& arguments) {
  use_large_heap();
  HeapFiller filler;
  Session session(console, arguments);
  if (!session.open(arguments.positional[0])) return session.finish();
  if (const dag::Dag* plan = session.compilation().pir()) {
    verify::lint(*plan, session.sink());
    return session.finish();
  }
  const std::string name = arguments.positional.size() > 1 ? arguments.positional[1] : "";
  if (name.empty()) session.check_file();
  for (Session::Subject& subject : session.subjects(name)) {
    const std::size_t operations = count_operations(subject.lowered.strategy);
    start_workers(operations);
    filler.fill(operations * kBytesPerOperation);
    session.check(subject);
    look_for_data(session, subject.lowered);
    weights_fit(session, subject.lowered, Code::data_not_here);
  }
  return session.finish();
}

}  // namespace piper::tools
