#include "passes/plan/memory_advice.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "passes/plan/requirements.h"
#include "passes/selectors/select.h"

namespace piper::passes {

using namespace dag;

namespace {

/// Lines that would save memory and are not there, each with the strategy that has it.
std::vector<std::pair<std::string, directive::Strategy>> savings(const Context& context, const directive::Strategy& strategy) {
  directive::Strategy without = strategy;
  std::erase_if(without.directives, [](const directive::Directive& line) { return std::holds_alternative<directive::Require>(line); });
  std::vector<std::pair<std::string, directive::Strategy>> savings;
  const auto is_recompute = [](const directive::Directive& line) { return std::holds_alternative<directive::Recompute>(line); };
  if (std::none_of(without.directives.begin(), without.directives.end(), is_recompute)) {
    directive::Selector target;  // what the program is cut into, else all of it
    for (const directive::Directive& line : without.directives) {
      if (const auto* partition = std::get_if<directive::Partition>(&line)) target.coordinates.assign(1, {partition->into.name, true, {}, {}});
    }
    savings.emplace_back("recompute " + print_selector(target, context.symbols), without);
    // Made in place: the compiler takes a moved variant's other forms for read.
    directive::Directive& line = savings.back().second.directives.emplace_back(std::in_place_type<directive::Recompute>);
    std::get<directive::Recompute>(line).targets.push_back(std::move(target));
  }
  directive::Strategy shared = without;
  const auto cuts = [](const directive::Directive& line) { return std::holds_alternative<directive::Replicate>(line) && std::get<directive::Replicate>(line).zero > 0; };
  const bool cut = std::any_of(without.directives.begin(), without.directives.end(), cuts);
  bool any = false;
  for (directive::Directive& line : shared.directives) {
    auto* replicate = std::get_if<directive::Replicate>(&line);
    if (replicate == nullptr || replicate->zero == 3 || (cut && replicate->zero == 0)) continue;
    replicate->zero = 3;
    replicate->reduce.reset();
    any = true;
  }
  if (any) savings.emplace_back("zero: 3", std::move(shared));
  return savings;
}

}  // namespace

std::string memory_advice(tensor::Graph& model, const directive::Strategy& strategy, const Options& options) {
  Options quiet = options;
  quiet.after = nullptr;
  quiet.verify_each = false;
  quiet.memory_advice = [] { return std::string(); };  // the lines compiled here require nothing
  std::string advice;
  for (const auto& [line, with] : savings(model.context(), strategy)) {
    DiagnosticSink unread(model.context().locations);
    const std::optional<Dag> dag = compile(model, with, unread, quiet);
    if (dag) advice += (advice.empty() ? "it would be " : ", ") + bytes_text(static_cast<double>(measure(*dag).peak_memory)) + " with `" + line + "`";
  }
  return advice.empty() ? advice : advice + "; more stages or microbatches make the parts smaller, too";
}

}  // namespace piper::passes
