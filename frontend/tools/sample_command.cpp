#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/decode/token_run.h"
#include "backend/device_program/abi_types.h"
#include "backend/dtypes.h"
#include "frontend/tools/commands.h"
#include "frontend/tools/initial_weights.h"
#include "frontend/tools/next_token.h"
#include "frontend/tools/prompt.h"
#include "frontend/tools/sampled_text.h"
#include "frontend/tools/train_job.h"
#include "ir/diagnostics/counted.h"
#include "llvm/Support/JSON.h"
#include "passes/decode/token_program.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/device/library_api.h"
#include "runtime/launch/interrupt.h"
#include "runtime/weights/whole_parameters.h"

namespace piper::tools {
namespace {

/// The end of a text.
enum class TextEnd { tokens, positions, interrupted, failed };

/// A model with its weights.
struct SampledModel {
  dag::TokenProgram program;
  std::unique_ptr<runtime::WholeParameters> parameters;
  std::string checkpoint;  // its folder; empty: the first values of the train
  LocId train;
  bool bytes = false;  // tokens are the bytes of texts
};

/// A text, and the tokens that were drawn after its prompt.
struct Drawn {
  std::vector<std::int64_t> prompt, tokens;
  TextEnd end = TextEnd::tokens;
};

std::vector<runtime::InitialisedParameter> initialised_parameters(const tensor::Graph& model) {
  std::vector<runtime::InitialisedParameter> parameters;
  for (const tensor::Param& param : model.params) {
    const tensor::Type& type = model.type(param.value);
    runtime::InitialisedParameter& added = parameters.emplace_back();
    added.name = model.context().text(param.name);
    for (const tensor::Dim& dim : type.dims) added.dims.push_back(dim.extent);
    added.dtype = backend::abi_dtype(type.dtype);
    added.init = backend::abi_init(param.init.kind);
    added.scale = param.init.scale;
  }
  return parameters;
}

/// Reads the parameters of a checkpoint.
bool take_checkpoint(Session& session, const std::string& from, SampledModel& model) {
  runtime::Failure failure;
  const auto found = runtime::find_checkpoint(from, failure);
  const auto checkpoint = found ? runtime::Checkpoint::open(found->folder, failure) : nullptr;
  const runtime::StateMemory memory = model.parameters->memory();
  std::optional<runtime::Failure> refused;
  if (!checkpoint) {
    refused = failure;
  } else {
    refused =
        checkpoint->compare(runtime::RankParameters(memory.ranks), {}, runtime::Restored::weights);
    if (refused) refused->hint = "give the program with the model of the checkpoint";
    if (!refused) refused = checkpoint->load(memory, runtime::Restored::weights);
    model.checkpoint = checkpoint->folder();
  }
  if (refused) report_failure(session, *refused, {});
  return !refused;
}

/// Reads the weights of `init`. False after a diagnostic, or an interrupt.
bool take_initial(Session& session, const directive::InitialWeights& init,
                  const tensor::Graph& graph, SampledModel& model,
                  const runtime::Interrupt& interrupt) {
  runtime::Failure failure;
  const auto weights = open_weights(shapes_of(graph), init, failure);
  std::optional<runtime::Failure> refused;
  if (!weights) {
    refused = failure;
  } else {
    session.console().err << runtime::report_text(weights->report);
    refused =
        take_weights(*weights, model.parameters->memory(), [&] { return interrupt.requested(); });
  }
  if (refused) report_failure(session, *refused, init.path_loc);
  return !refused && !interrupt.requested();
}

/// Nothing, and a diagnostic, if it cannot be loaded; nothing after an interrupt.
bool load_weights(Session& session, const lower::Lowered& lowered, SampledModel& model,
                  const runtime::Interrupt& interrupt) {
  const directive::Settings& settings = lowered.strategy.settings;
  runtime::Failure failure;
  model.parameters = runtime::WholeParameters::create(initialised_parameters(lowered.model),
                                                      settings.seed, failure);
  if (!model.parameters) {
    report_failure(session, failure, settings.loc);
    return false;
  }
  const std::string& from = session.arguments().from;
  if (!from.empty()) return take_checkpoint(session, from, model);
  return !settings.init || take_initial(session, *settings.init, lowered.model, model, interrupt);
}

/// The tokens that may be drawn: those of the logits that the model can read again, and bytes of a
/// model of bytes.
std::int64_t drawable(const SampledModel& model) {
  const std::int64_t both = std::min(model.program.classes, model.program.vocabulary);
  return model.bytes ? std::min<std::int64_t>(both, 256) : both;
}

TokenChoice choice_of(const Arguments& arguments) {
  TokenChoice choice;
  if (arguments.temperature) choice.temperature = *arguments.temperature;
  if (arguments.top_p) choice.top_p = *arguments.top_p;
  choice.top_k = arguments.top_k;
  choice.seed = arguments.seed.value_or(0);
  return choice;
}

/// Draws tokens after the prompt. `add` receives all tokens in order, and says whether to go on.
class Drawing {
 public:
  Drawing(Session& session, const SampledModel& model, const runtime::LibraryCalls& library)
      : session_(session),
        model_(model),
        calls_(library),
        run_(model.program, {&runtime::DirectCalls::api(), &calls_, [this](tensor::ParamId param) {
                               return model_.parameters->values(param.index());
                             }}) {}

  template <typename Add>
  TextEnd run(Drawn& text, const runtime::Interrupt& interrupt, const Add& add) {
    const Arguments& arguments = session_.arguments();
    const TokenChoice choice = choice_of(arguments);
    for (const std::int64_t token : text.prompt) {
      if (interrupt.requested()) return TextEnd::interrupted;
      if (!read(token)) return TextEnd::failed;
    }
    const std::uint64_t wanted = arguments.tokens.value_or(kTokens);
    while (text.tokens.size() < wanted) {
      if (interrupt.requested()) return TextEnd::interrupted;
      const auto token = draw_token(run_.logits(), drawable(model_), choice, run_.position());
      if (!token) {
        report_failure(session_,
                       {.code = runtime::kNonFinite,
                        .message = "a logit after position " + std::to_string(run_.position()) +
                                   " is not finite",
                        .hint = "the weights are those of a training that diverged, or they do "
                                "not fit the type of training"},
                       model_.train);
        return TextEnd::failed;
      }
      text.tokens.push_back(*token);
      if (!add(*token)) return TextEnd::tokens;
      if (text.tokens.size() == wanted) break;
      if (run_.position() == model_.program.positions) return TextEnd::positions;
      if (!read(*token)) return TextEnd::failed;
    }
    return TextEnd::tokens;
  }

 private:
  static constexpr std::uint64_t kTokens = 200;

  bool read(std::int64_t token) {
    if (run_.step(token)) return true;
    report_failure(session_, {.code = runtime::kLibraryFailed, .message = calls_.failure()},
                   model_.train);
    return false;
  }

  Session& session_;
  const SampledModel& model_;
  runtime::DirectCalls calls_;
  backend::TokenRun run_;
};

const char* name_of(TextEnd end) {
  switch (end) {
    case TextEnd::tokens: return "tokens";
    case TextEnd::positions: return "positions";
    case TextEnd::interrupted: return "interrupted";
    case TextEnd::failed: return "failed";
  }
  return "";
}

llvm::json::Value utf8(const std::string& text) {
  return llvm::json::isUTF8(text) ? text : llvm::json::fixUTF8(text);
}

void print_json(std::ostream& out, const std::string& train, const SampledModel& model,
                const Drawn& text) {
  llvm::json::Object object{{"schema", 1},
                            {"train", train},
                            {"prompt", llvm::json::Array(text.prompt)},
                            {"tokens", llvm::json::Array(text.tokens)},
                            {"ended", name_of(text.end)}};
  if (!model.checkpoint.empty()) object["checkpoint"] = utf8(model.checkpoint);
  if (model.bytes) {
    std::string bytes;
    for (const std::int64_t token : text.tokens) bytes += static_cast<char>(token);
    object["text"] = utf8(bytes);
  }
  std::string printed;
  llvm::raw_string_ostream(printed) << llvm::json::Value(std::move(object));
  out << printed << "\n";
}

/// The words for an end before the last token that was asked for.
std::string end_text(const SampledModel& model, const Drawn& text) {
  if (text.end == TextEnd::interrupted)
    return "stopped after " + counted(text.tokens.size(), "token") + "\n";
  if (text.end != TextEnd::positions) return {};
  return "stopped after " + counted(text.tokens.size(), "token") + ": the model has " +
         counted(model.program.positions, "position") + "\n";
}

int write_text(Session& session, const std::string& train, const SampledModel& model,
               std::vector<std::int64_t> prompt, const runtime::LibraryCalls& library,
               const runtime::Interrupt& interrupt) {
  Console& console = session.console();
  Drawn text{std::move(prompt), {}, TextEnd::tokens};
  const bool json = session.arguments().format == "json";
  const bool terminal = console.out_columns && console.out_columns() > 0;
  SampledText shown(console.out,
                    session.arguments().prompt_ids.empty()
                        ? terminal ? SampledText::Form::terminal : SampledText::Form::bytes
                        : SampledText::Form::ids);
  Drawing drawing(session, model, library);
  if (!json) {
    for (const std::int64_t token : text.prompt) shown.add(token);
  }
  text.end = drawing.run(text, interrupt, [&](std::int64_t token) {
    if (!json) shown.add(token);
    return static_cast<bool>(console.out);
  });
  if (json && text.end != TextEnd::failed) print_json(console.out, train, model, text);
  if (!json) shown.finish();
  console.err << end_text(model, text);
  const int code = session.finish();
  return text.end == TextEnd::interrupted ? static_cast<int>(kInterrupted) : code;
}

}  // namespace

int run_sample(Console& console, const Arguments& arguments) {
  Session session(console, arguments);
  const std::vector<std::string>& words = arguments.positional;
  if (!session.open(words[0])) return session.finish();
  const auto subject = session.subject(words.size() > 1 ? words[1] : "", true);
  if (!subject) return session.finish();
  const auto options = runtime_options(session);
  if (!options) return session.finish();
  const directive::Settings& settings = subject->lowered.strategy.settings;
  auto program = passes::make_token_program(subject->lowered.model, settings.loc, session.sink());
  if (!program) return session.finish();
  SampledModel model{std::move(*program), nullptr, {}, settings.loc, false};
  model.bytes = settings.data && settings.data->kind == directive::Data::Kind::bytes;
  auto prompt = read_prompt(session, model.program, model.bytes);
  if (!prompt) return session.finish();
  const runtime::Interrupt interrupt;
  if (!load_weights(session, subject->lowered, model, interrupt)) {
    const int code = session.finish();
    return interrupt.requested() && code == kClean ? static_cast<int>(kInterrupted) : code;
  }
  runtime::Failure failure;
  runtime::LibrarySwitch library(*options);
  const runtime::LibraryCalls* const calls = library.get(failure);
  if (calls == nullptr) {
    report_failure(session, failure, settings.loc);
    return session.finish();
  }
  calls->begin_thread(options->threads);
  session.show_warnings();
  return write_text(session, subject->name, model, std::move(*prompt), *calls, interrupt);
}

}  // namespace piper::tools
