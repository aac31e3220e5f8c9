// The text of `show ast`.

#include "frontend/ast/source_text.h"

namespace piper::ast {

namespace {

class Printer {
 public:
  /// Without `files` no range is printed.
  explicit Printer(const SourceTable* files) : files_(files) {}

  std::string take() { return std::move(out_); }

  void item(const Item& item) {
    for (std::string_view doc = item.doc; !doc.empty();) {
      std::size_t end = doc.find('\n');
      out_ += "/// " + std::string(doc.substr(0, end)) + '\n';
      doc = end == std::string_view::npos ? std::string_view() : doc.substr(end + 1);
    }
    switch (item.kind) {
      case ItemKind::error: return line("error", item.range, "");
      case ItemKind::use: {
        std::string path;
        for (const Identifier& part : llvm::cast<UseItem>(item).path)
          path += (path.empty() ? "" : ".") + source_text(part);
        return line("use", item.range, path);
      }
      case ItemKind::param: {
        const auto& node = llvm::cast<ParamItem>(item);
        return line("param", item.range,
                    source_text(node.name) + (node.has_choices ? " in " : " = ") +
                        source_text(*node.value));
      }
      case ItemKind::mesh: {
        const auto& node = llvm::cast<MeshItem>(item);
        std::string view = node.is_view ? " = " + source_text(node.base) + " as " : "";
        return line("mesh", item.range,
                    source_text(node.name) + view + '(' + source_text(node.axes) + ')');
      }
      case ItemKind::function: {
        const auto& node = llvm::cast<FunctionItem>(item);
        std::string result = node.result != nullptr ? " -> " + source_text(*node.result) : "";
        line(sort_text(node.sort), item.range,
             source_text(node.name) + '(' + source_text(node.params) + ')' + result);
        return block(node.body);
      }
      case ItemKind::train: {
        const auto& node = llvm::cast<TrainItem>(item);
        line("train", item.range,
             source_text(node.name) + " = " + source_text(*node.model) + " on " +
                 source_text(node.mesh));
        return block(node.body);
      }
      case ItemKind::machine: {
        const auto& node = llvm::cast<MachineItem>(item);
        line("machine", item.range, source_text(node.name) + " on " + source_text(node.mesh));
        return block(node.body);
      }
      case ItemKind::names: {
        const auto& node = llvm::cast<NamesItem>(item);
        line("names", item.range, source_text(node.name));
        ++depth_;
        for (const NamesLine& written : node.lines) names_line(written);
        --depth_;
        return;
      }
    }
  }

 private:
  void line(std::string_view kind, SourceRange range, std::string_view text) {
    out_.append(2 * depth_, ' ');
    out_ += kind;
    if (files_ != nullptr) {
      LineColumn begin = files_->line_column(range.file, range.begin),
                 end = files_->line_column(range.file, range.end);
      out_ += " [" + std::to_string(begin.line) + ':' + std::to_string(begin.column) + '-' +
              std::to_string(end.line) + ':' + std::to_string(end.column) + ']';
    }
    if (!text.empty()) out_ += ' ';
    out_ += text;
    out_ += '\n';
  }

  void names_line(const NamesLine& node) {
    switch (node.kind) {
      case NamesLineKind::error: return line("error", node.range, "");
      case NamesLineKind::map:
        return line("map", node.range, path_text(node) + ": " + right_text(node));
      case NamesLineKind::config: return line("config", node.range, right_text(node));
      case NamesLineKind::ignore: return line("ignore", node.range, right_text(node));
    }
  }

  void block(const Block* block) {
    if (block == nullptr) return;
    ++depth_;
    for (const Stmt* statement : block->statements) stmt(*statement);
    --depth_;
  }

  static std::string op_or_blocks(const Step& step) {
    std::string out;
    for (const StepMember& member : step.members) {
      if (!out.empty()) out += " & ";
      out += member.op != nullptr ? source_text(*member.op) : "{}";
    }
    return out;
  }

  void step(std::string_view kind, SourceRange range, const std::string& before, const Step& step) {
    line(kind, range, before + op_or_blocks(step));
    for (const StepMember& member : step.members) {
      if (member.block == nullptr) continue;
      ++depth_;
      line("member", member.range, "");
      block(member.block);
      --depth_;
    }
  }

  void stmt(const Stmt& stmt);
  void directive(const DirectiveStmt& node);

  const SourceTable* files_;
  std::string out_;
  std::size_t depth_ = 0;
};

void Printer::stmt(const Stmt& stmt) {
  SourceRange range = stmt.range;
  switch (stmt.kind) {
    case StmtKind::error: return line("error", range, "");
    case StmtKind::let: {
      const auto& node = llvm::cast<LetStmt>(stmt);
      return line("let", range, source_text(node.names) + " = " + source_text(*node.value));
    }
    case StmtKind::var: {
      const auto& node = llvm::cast<VarStmt>(stmt);
      return line("var", range, source_text(node.name) + " = " + source_text(*node.value));
    }
    case StmtKind::assign: {
      const auto& node = llvm::cast<AssignStmt>(stmt);
      return line("assign", range, source_text(node.name) + " = " + source_text(*node.value));
    }
    case StmtKind::expr: return line("call", range, source_text(*llvm::cast<ExprStmt>(stmt).value));
    case StmtKind::for_loop: {
      const auto& node = llvm::cast<ForStmt>(stmt);
      line("for", range, source_text(node.bindings));
      return block(node.body);
    }
    case StmtKind::repeat: {
      const auto& node = llvm::cast<RepeatStmt>(stmt);
      line("repeat", range, source_text(*node.count));
      return block(node.body);
    }
    case StmtKind::conditional: {
      const auto& node = llvm::cast<IfStmt>(stmt);
      bool first = true;
      for (const Branch& branch : node.branches) {
        line(first ? "if" : "else if", first ? range : branch.body->range,
             source_text(*branch.condition));
        first = false;
        block(branch.body);
      }
      if (node.otherwise != nullptr) line("else", node.otherwise->range, "");
      return block(node.otherwise);
    }
    case StmtKind::return_value:
      return line("return", range, source_text(*llvm::cast<ReturnStmt>(stmt).value));
    case StmtKind::require: {
      const auto& node = llvm::cast<RequireStmt>(stmt);
      return line("require", range,
                  source_text(*node.condition) +
                      (node.message != nullptr ? " else " + source_text(*node.message) : ""));
    }
    case StmtKind::setting:
      return line("setting", range, source_text(llvm::cast<SettingStmt>(stmt).setting));
    case StmtKind::input:
      return line("input", range, source_text(llvm::cast<InputStmt>(stmt).inputs));
    case StmtKind::weight: {
      const auto& node = llvm::cast<WeightStmt>(stmt);
      std::string text;
      for (const WeightDecl& decl : node.weights)
        text += (text.empty() ? "" : ", ") + source_text(decl.name) + source_text(decl.dims);
      return line("weight", range,
                  text + (node.init != nullptr ? " = " + source_text(*node.init) : ""));
    }
    case StmtKind::region: {
      const auto& node = llvm::cast<RegionStmt>(stmt);
      line("region", range, source_text(node.name));
      return block(node.body);
    }
    case StmtKind::loss: return line("loss", range, source_text(*llvm::cast<LossStmt>(stmt).value));
    case StmtKind::order: {
      const auto& node = llvm::cast<OrderStmt>(stmt);
      line("order", range, node.value != nullptr ? source_text(*node.value) : "");
      return block(node.body);
    }
    case StmtKind::rank: {
      const auto& node = llvm::cast<RankStmt>(stmt);
      line("rank", range, source_text(node.bindings));
      return block(node.body);
    }
    case StmtKind::cursor: {
      const auto& node = llvm::cast<CursorStmt>(stmt);
      return line("cursor", range,
                  source_text(node.name) + " = " + source_text(*node.forward) +
                      (node.backward != nullptr ? " backward " + source_text(*node.backward) : ""));
    }
    case StmtKind::at: {
      const auto& node = llvm::cast<AtStmt>(stmt);
      return step("at", range, source_text(*node.slot) + ": ", node.step);
    }
    case StmtKind::step: return step("step", range, "", llvm::cast<StepStmt>(stmt).step);
    case StmtKind::directive: return directive(llvm::cast<DirectiveStmt>(stmt));
  }
}

/// The part of a directive between its keyword and its clauses.
std::string subject_text(const DirectiveStmt& node) {
  switch (node.row().subject) {
    case directive::Subject::region: return source_text(*node.region);
    case directive::Subject::dimension: return source_text(node.name);
    case directive::Subject::targets: return source_text(node.targets);
    case directive::Subject::named:
      return source_text(node.name) + ": " + source_text(node.targets);
  }
  return "";
}

std::string clause_text(const DirectiveStmt& node, directive::Clause clause) {
  switch (clause) {
    case directive::Clause::into: return source_text(node.into);
    case directive::Clause::in: return source_text(node.in);
    case directive::Clause::on: return node.devices != nullptr ? source_text(*node.devices) : "";
    case directive::Clause::over: return source_text(node.axes);
    case directive::Clause::by: return source_text(node.dims);
    case directive::Clause::with: return source_text(node.settings);
  }
  return "";
}

void Printer::directive(const DirectiveStmt& node) {
  std::string text = subject_text(node);
  for (std::size_t i = 0; i < std::size(directive::kClauseWords); ++i) {
    const auto clause = static_cast<directive::Clause>(i);
    const std::string words = clause_text(node, clause);
    if (!words.empty() || node.row().clauses.needs(clause))
      text += " " + std::string(directive::kClauseWords[i]) + " " + words;
  }
  line(node.row().keyword, node.range, text);
}

}  // namespace

static std::string print(const Module& module, Printer printer) {
  for (const Item* item : module.items) printer.item(*item);
  return printer.take();
}

std::string print(const Module& module, const SourceTable& files) {
  return print(module, Printer(&files));
}

std::string print_without_ranges(const Module& module) { return print(module, Printer(nullptr)); }

}  // namespace piper::ast
