#include "frontend/tools/tuned_source.h"

#include <algorithm>
#include <string_view>

#include "frontend/ast/module.h"
#include "llvm/Support/Casting.h"

namespace piper::tools {
namespace {

/// Every line behind `// `; a blank line ends the comment, so that it belongs to no declaration.
std::string as_comment(std::string_view lines) {
  std::string text;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    text += "// " + std::string(lines.substr(0, end)) + "\n";
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return text + "\n";
}

}  // namespace

std::string tuned_source(const sema::Program& program, const SourceTable& files,
                         const std::map<std::string, std::string>& chosen,
                         const std::string& comment) {
  const ast::Module& module = program.modules.front()->syntax;
  const std::string_view source = files.text(module.file);
  std::string text = as_comment(comment);
  std::size_t copied = 0;
  for (const ast::Item* item : module.items) {
    const auto* const param = llvm::dyn_cast<ast::ParamItem>(item);
    if (param == nullptr) continue;
    const auto found = chosen.find(std::string(param->name.name));
    if (found == chosen.end()) continue;
    text += source.substr(copied, param->name.range.end - copied);
    text += " = " + found->second;
    copied = param->range.end;
  }
  return text += source.substr(copied);
}

}  // namespace piper::tools
