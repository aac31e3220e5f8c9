#pragma once
// Several programs beside each other, the best of each figure marked.

#include <list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "frontend/pictures/picture.h"
#include "frontend/tools/session.h"
#include "llvm/Support/JSON.h"
#include "passes/simulate/timeline.h"

namespace piper::tools {

/// Of everything less is better.
struct Compared {
  std::string name;
  passes::Timeline timeline;
  double peak = 0;
  std::int64_t bytes = 0, traffic = 0;
  std::size_t lines = 0;  // of its declaration, without comments
  std::optional<pictures::Picture> picture = {};  // with `--format html`
};

/// Compiles and simulates `FILE.pipe`, `FILE.pipe:NAME` or a library schedule, as the session's arguments ask; of the overrides it gets those that it takes, which
/// are noted in `taken`. Nothing after an error.
std::optional<Compared> look_at(Session& session, const std::string& word, std::span<const lower::Override> overrides, std::vector<bool>& taken);

/// A row for each.
std::string comparison_text(const std::list<Compared>& all);
/// An object for each.
llvm::json::Array comparison_json(const std::list<Compared>& all);

}  // namespace piper::tools
