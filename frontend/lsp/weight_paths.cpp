#include "frontend/lsp/weight_paths.h"

#include <algorithm>
#include <map>

#include "frontend/ast/walk.h"

namespace piper::lsp {

namespace {

/// Calls multiply in a model that is no tree.
constexpr std::size_t kMaxPaths = 2000;

/// The calls of models in one body, and its weights.
struct Contents {
  std::map<std::uint32_t, std::size_t> calls;  // how often, by function; twice in a loop
  std::vector<std::uint32_t> order;            // of their first calls
  std::vector<const ast::WeightDecl*> weights;
};

class Walk {
 public:
  explicit Walk(const sema::Program& program) : program_(program) {}

  void model(std::uint32_t function) {
    const Contents& contents = known_contents(function);
    for (const ast::WeightDecl* weight : contents.weights) {
      if (paths_.size() == kMaxPaths) return;
      paths_.push_back({parts_, weight});
    }
    for (const std::uint32_t callee : contents.order) {
      if (paths_.size() == kMaxPaths) return;
      if (!has_weights(callee)) continue;  // so every call that is followed adds a path
      if (std::find(open_.begin(), open_.end(), callee) != open_.end()) continue;  // an error
      open_.push_back(callee);
      parts_.push_back(
          {std::string(program_.functions[callee].name()), contents.calls.at(callee) > 1});
      model(callee);
      parts_.pop_back();
      open_.pop_back();
    }
  }
  std::vector<WeightPath> take() { return std::move(paths_); }

  Contents contents_of(std::uint32_t function) const {
    Contents contents;
    std::vector<SourceRange> loops;
    ast::NameVisitor visitor;
    visitor.statements = [&](const ast::Stmt& stmt) {
      if (llvm::isa<ast::ForStmt>(stmt) || llvm::isa<ast::RepeatStmt>(stmt))
        loops.push_back(stmt.range);
      if (const auto* weight = llvm::dyn_cast<ast::WeightStmt>(&stmt)) {
        for (const ast::WeightDecl& decl : weight->weights) contents.weights.push_back(&decl);
      }
    };
    visitor.calls = [&](const ast::CallExpr& call) {
      if (call.referent != ast::Referent::function ||
          program_.functions[call.target].sort() != ast::FunctionSort::model)
        return;
      const bool in_loop = std::any_of(loops.begin(), loops.end(), [&](SourceRange loop) {
        return touches(loop, call.range.begin);
      });
      std::size_t& count = contents.calls[call.target];
      if (count == 0) contents.order.push_back(call.target);
      count += in_loop ? 2 : 1;
    };
    ast::walk_names(*program_.functions[function].syntax, visitor);
    return contents;
  }

 private:
  const Contents& known_contents(std::uint32_t function) {
    const auto [known, added] = contents_.try_emplace(function);
    if (added) known->second = contents_of(function);
    return known->second;
  }
  /// Whether the model or one that it calls has a weight.
  bool has_weights(std::uint32_t function) {
    // Models that call themselves, an error, may count as without weights.
    const auto [known, added] = has_weights_.try_emplace(function, false);
    if (!added) return known->second;
    const Contents& contents = known_contents(function);
    const bool found = !contents.weights.empty() ||
                       std::any_of(contents.order.begin(), contents.order.end(),
                                   [&](std::uint32_t callee) { return has_weights(callee); });
    return has_weights_[function] = found;
  }

  const sema::Program& program_;
  std::vector<WeightPath::Part> parts_;
  std::vector<std::uint32_t> open_;
  std::map<std::uint32_t, Contents> contents_;  // by function
  std::map<std::uint32_t, bool> has_weights_;   // by function
  std::vector<WeightPath> paths_;
};

}  // namespace

std::vector<WeightPath> weight_paths(const sema::Program& program) {
  Walk walk(program);
  std::vector<std::uint32_t> roots;
  const auto add = [&](std::uint32_t function) {
    if (std::find(roots.begin(), roots.end(), function) == roots.end()) roots.push_back(function);
  };
  for (const sema::Train& train : program.trains) {
    if (train.model.valid()) add(train.model.value());
  }
  if (roots.empty()) {
    std::vector<bool> called(program.functions.size(), false);
    for (std::uint32_t f = 0; f < program.functions.size(); ++f) {
      if (program.functions[f].sort() != ast::FunctionSort::model) continue;
      for (const std::uint32_t callee : walk.contents_of(f).order) called[callee] = true;
    }
    for (std::uint32_t f = 0; f < program.functions.size(); ++f) {
      if (program.functions[f].sort() == ast::FunctionSort::model && !called[f]) add(f);
    }
  }
  for (const std::uint32_t root : roots) walk.model(root);
  return walk.take();
}

std::string text_of(const WeightPath& path) {
  std::string text;
  char index = 'l';
  for (const WeightPath::Part& part : path.parts) {
    text += part.name;
    if (part.repeated) text += std::string("[") + index + "]";
    if (part.repeated && index < 'z') ++index;
    text += ".";
  }
  return text + std::string(path.weight->name.name);
}

}  // namespace piper::lsp
