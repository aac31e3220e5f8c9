#include "frontend/service/clean_checks.h"

#include <algorithm>
#include <set>

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

namespace piper::service {

namespace {

std::string_view name_of(const ast::Item& item) {
  if (const auto* function = llvm::dyn_cast<ast::FunctionItem>(&item)) return function->name.name;
  if (const auto* train = llvm::dyn_cast<ast::TrainItem>(&item)) return train->name.name;
  return {};
}

/// Calls `each` with the words of a text, those of comments too: one too many only means that more
/// is checked.
template <typename Each>
void for_each_word(std::string_view text, const Each& each) {
  const auto of_word = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  for (std::size_t at = 0; at < text.size();) {
    if (!of_word(text[at])) {
      ++at;
      continue;
    }
    const std::size_t begin = at;
    while (at < text.size() && of_word(text[at])) ++at;
    each(text.substr(begin, at - begin));
  }
}

/// The state of a declaration beside its text: it may use an unsound one, and text after an error
/// may be parsed differently.
std::string state_of(const sema::Program& program, const ast::Item& item) {
  std::string state;
  const auto flags = [&](const auto& declared) {
    if (declared.syntax == &item)
      state += std::string(declared.sound ? "sound" : "unsound") +
               (declared.runnable ? " " : " refused ");
  };
  for (const sema::Function& function : program.functions) flags(function);
  for (const sema::Train& train : program.trains) flags(train);
  for (const std::uint32_t fault : program.modules.front()->syntax.faults) {
    if (fault >= item.range.begin && fault <= item.range.end)
      state += std::to_string(fault - item.range.begin) + " ";
  }
  return state;
}

/// With its length, so that pairs of texts with the same concatenation differ.
void append(std::string& all, std::string_view text) {
  all += std::to_string(text.size()) + ":";
  all += text;
}

}  // namespace

std::optional<std::vector<Diagnostic>> CleanCheck::moved(std::span<const SourceRange> items_now,
                                                         const SourceTable& files_now) const {
  bool everywhere = items.size() == items_now.size();
  const auto move = [&](SourceRange& range) {
    if (!range.valid()) return;
    if (range.file == items.front().file) {
      const auto around = std::find_if(items.begin(), items.end(), [&](SourceRange item) {
        return item.begin <= range.begin && range.end <= item.end;
      });
      if (around == items.end()) {
        everywhere = false;
        return;
      }
      const SourceRange now = items_now[static_cast<std::size_t>(around - items.begin())];
      range = {now.file, now.begin + (range.begin - around->begin),
               now.begin + (range.end - around->begin)};
      return;
    }
    const auto file = range.file.index() < files.size() ? files_now.find(files[range.file.index()])
                                                        : std::nullopt;
    everywhere = everywhere && file.has_value();
    if (file) range.file = *file;
  };
  std::vector<Diagnostic> list = diagnostics;
  for (std::size_t i = 0; i < list.size() && everywhere; ++i) {
    move(list[i].range);
    for (Related& related : list[i].related) move(related.range);
    for (Fix& fix : list[i].fixes) {
      for (Edit& edit : fix.edits) move(edit.range);
    }
  }
  return everywhere ? std::optional(std::move(list)) : std::nullopt;
}

std::optional<CleanCheck> CleanChecks::find(const Key& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(key);
  if (found == known_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->second;
}

void CleanChecks::add(const Key& key, CleanCheck check) {
  const std::lock_guard lock(mutex_);
  if (const auto found = known_.find(key); found != known_.end()) {
    entries_.erase(found->second);
    known_.erase(found);
  } else if (known_.size() >= max_entries_) {
    known_.erase(entries_.back().first);
    entries_.pop_back();
  }
  entries_.emplace_front(key, std::move(check));
  known_[key] = entries_.begin();
}

DeclarationTexts::DeclarationTexts(const sema::Program& program, const SourceTable& files) {
  std::map<std::string_view, std::vector<std::size_t>> by_name;
  for (const auto& module : program.modules) {
    const FileId file = module->syntax.file;
    // Which stands in hints.
    if (&module == &program.modules.front()) append(read_by_all_, files.name(file));
    if (&module != &program.modules.front()) {
      append(read_by_all_, files.name(file));
      append(read_by_all_, files.text(file));
      continue;
    }
    for (const ast::Item* item : module->syntax.items) {
      const std::string_view text =
          files.text(file).substr(item->range.begin, item->range.end - item->range.begin);
      const std::string_view name = name_of(*item);
      if (name.empty()) {
        // Other declarations cannot read text that did not parse.
        if (item->kind == ast::ItemKind::error) continue;
        append(read_by_all_, text);
        items_read_by_all_.push_back(item->range);
        continue;
      }
      by_name[name].push_back(declarations_.size());
      declarations_.push_back({item->range, text, state_of(program, *item), {}});
    }
  }
  append(read_by_all_, program.complete ? "complete" : "incomplete");
  for (Declaration& declaration : declarations_) {
    for_each_word(declaration.text, [&](std::string_view word) {
      const auto found = by_name.find(word);
      if (found == by_name.end()) return;
      for (const std::size_t named : found->second) {
        if (std::find(declaration.named.begin(), declaration.named.end(), named) ==
            declaration.named.end())
          declaration.named.push_back(named);
      }
    });
  }
}

DeclarationTexts::Scope DeclarationTexts::scope_of(SourceRange range,
                                                   std::span<const lower::Override> values) const {
  std::string all = read_by_all_;
  for (const lower::Override& value : values) {
    append(all, value.name);
    append(all, value.value);
  }
  // In the order of the file, whatever names them first: an order of declarations means nothing,
  // but it costs nothing to keep it.
  std::set<std::size_t> read;
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < declarations_.size(); ++i) {
    if (declarations_[i].range.begin == range.begin) open.push_back(i);
  }
  // Which one it is that is checked.
  if (!open.empty()) append(all, declarations_[open.front()].text);
  while (!open.empty()) {
    const std::size_t next = open.back();
    open.pop_back();
    if (!read.insert(next).second) continue;
    open.insert(open.end(), declarations_[next].named.begin(), declarations_[next].named.end());
  }
  std::vector<SourceRange> items = items_read_by_all_;
  for (const std::size_t each : read) {
    append(all, declarations_[each].text);
    append(all, declarations_[each].state);
    items.push_back(declarations_[each].range);
  }
  const llvm::XXH128_hash_t hash = llvm::xxh3_128bits(
      llvm::ArrayRef(reinterpret_cast<const std::uint8_t*>(all.data()), all.size()));
  return {{hash.high64, hash.low64}, std::move(items)};
}

}  // namespace piper::service
