#include "frontend/repl/sources.h"

#include <algorithm>

#include "frontend/parse/parse.h"

namespace piper::repl {
namespace {

/// The name that a `use`, a param, ... declares; empty: none.
std::string name_of(const ast::Item& item) {
  if (const auto* use = llvm::dyn_cast<ast::UseItem>(&item)) {
    std::string path;
    for (const ast::Identifier& part : use->path)
      path += (path.empty() ? "" : ".") + std::string(part.name);
    return path;
  }
  if (const auto* param = llvm::dyn_cast<ast::ParamItem>(&item))
    return std::string(param->name.name);
  if (const auto* mesh = llvm::dyn_cast<ast::MeshItem>(&item)) return std::string(mesh->name.name);
  if (const auto* function = llvm::dyn_cast<ast::FunctionItem>(&item))
    return std::string(function->name.name);
  if (const auto* train = llvm::dyn_cast<ast::TrainItem>(&item))
    return std::string(train->name.name);
  if (const auto* machine = llvm::dyn_cast<ast::MachineItem>(&item))
    return std::string(machine->name.name);
  if (const auto* names = llvm::dyn_cast<ast::NamesItem>(&item))
    return std::string(names->name.name);
  return "";
}

/// The beginning of the comment lines right above a byte.
std::uint32_t with_comment(std::string_view text, std::uint32_t begin) {
  for (;;) {
    const std::size_t line = begin == 0 ? 0 : text.rfind('\n', begin - 1) + 1;
    if (line == 0) return begin;
    const std::size_t before = line >= 2 ? text.rfind('\n', line - 2) + 1 : 0;
    const std::string_view above = text.substr(before, line - 1 - before);
    const std::size_t first = above.find_first_not_of(" \t");
    if (first == std::string_view::npos || !above.substr(first).starts_with("//")) return begin;
    begin = static_cast<std::uint32_t>(before);
  }
}

}  // namespace

std::vector<Declaration> declarations_of(const std::string& text) {
  LocationTable table;
  const FileId file = table.files().add("", text);
  DiagnosticSink unread(table);
  const ast::Module module = parse::parse(table.files(), file, unread);
  std::vector<Declaration> list;
  for (const ast::Item* item : module.items) {
    if (std::string name = name_of(*item); !name.empty())
      list.push_back({std::move(name), with_comment(text, item->range.begin), item->range.end});
  }
  return list;
}

void append_glue(Composed& to, std::string_view text) { to.text += text; }

void append_fragment(Composed& to, std::string name, std::string_view text) {
  to.fragments.push_back(
      {std::move(name), std::string(text), static_cast<std::uint32_t>(to.text.size())});
  to.text += text;
  if (text.empty() || text.back() != '\n') to.text += "\n";
}

Shown::Shown(const LocationTable& locations, std::string_view path,
             const std::vector<SourceFragment>& fragments) {
  const SourceTable& files = locations.files();
  composed_ = files.find(path);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const FileId file = FileId::at(i);
    if (file == composed_) {
      files_.push_back({});
      for (const SourceFragment& fragment : fragments) {
        begins_.push_back(fragment.begin);
        lengths_.push_back(static_cast<std::uint32_t>(fragment.text.size()));
        fragment_files_.push_back(shown_.files().add(fragment.name, fragment.text));
      }
      outside_ = shown_.files().add("session", std::string(files.text(file)));
    } else if (files.has_text(file)) {
      files_.push_back(shown_.files().add(std::string(files.name(file)),
                                          std::string(files.text(file)), files.is_library(file)));
    } else {
      files_.push_back(shown_.files().add_without_text(files.name(file), files.is_library(file)));
    }
  }
  for (std::size_t i = 0; i < locations.size(); ++i) {
    const LocId loc = LocId::at(i);
    shown_.intern(of(locations.range(loc)), locations.caller(loc));
  }
}

SourceRange Shown::of(SourceRange range) const {
  if (!range.file.valid()) return range;
  if (range.file != composed_) return {files_[range.file.index()], range.begin, range.end};
  const auto above = std::upper_bound(begins_.begin(), begins_.end(), range.begin);
  const SourceRange between{outside_, range.begin, range.end};
  if (above == begins_.begin()) return between;
  const auto fragment = static_cast<std::size_t>(above - begins_.begin()) - 1;
  if (range.end > begins_[fragment] + lengths_[fragment]) return between;
  return {fragment_files_[fragment], range.begin - begins_[fragment],
          range.end - begins_[fragment]};
}

Diagnostic Shown::of(Diagnostic diagnostic) const {
  diagnostic.range = of(diagnostic.range);
  for (auto& related : diagnostic.related) related.range = of(related.range);
  for (Fix& fix : diagnostic.fixes) {
    for (Edit& edit : fix.edits) edit.range = of(edit.range);
  }
  return diagnostic;
}

void Sources::load(std::string path, std::string text) {
  const std::vector<Declaration> before =
      path == file_ ? declarations_of(file_text_) : std::vector<Declaration>();
  for (const Declaration& declaration : declarations_of(text)) {
    const auto same = std::find_if(before.begin(), before.end(), [&](const Declaration& other) {
      return other.name == declaration.name &&
             file_text_.compare(other.begin, other.end - other.begin, text, declaration.begin,
                                declaration.end - declaration.begin) == 0;
    });
    if (same == before.end())
      std::erase_if(typed_, [&](const Typed& typed) { return typed.name == declaration.name; });
  }
  file_ = std::move(path);
  file_text_ = std::move(text);
}

void Sources::define(const std::string& name, std::string text) {
  const auto known = std::find_if(typed_.begin(), typed_.end(),
                                  [&](const Typed& typed) { return typed.name == name; });
  if (known != typed_.end()) {
    known->text = std::move(text);
  } else {
    typed_.push_back({name, std::move(text)});
  }
}

bool Sources::is_typed(const std::string& name) const {
  return std::any_of(typed_.begin(), typed_.end(),
                     [&](const Typed& typed) { return typed.name == name; });
}

std::optional<std::string> Sources::definition(const std::string& name) const {
  for (const Typed& typed : typed_) {
    if (typed.name == name) return typed.text;
  }
  for (const Declaration& declaration : declarations_of(file_text_)) {
    if (declaration.name == name)
      return file_text_.substr(declaration.begin, declaration.end - declaration.begin);
  }
  return std::nullopt;
}

std::string Sources::saved() const {
  std::string text = file_text_;
  std::vector<Declaration> declarations = declarations_of(file_text_);
  std::vector<const Typed*> added;
  for (const Typed& typed : typed_) {
    if (std::none_of(declarations.begin(), declarations.end(), [&](const Declaration& declaration) {
          return declaration.name == typed.name;
        }))
      added.push_back(&typed);
  }
  for (auto declaration = declarations.rbegin(); declaration != declarations.rend();
       ++declaration) {
    if (is_typed(declaration->name))
      text.replace(declaration->begin, declaration->end - declaration->begin,
                   *definition(declaration->name));
  }
  for (const Typed* typed : added) {
    if (!text.empty() && text.back() != '\n') text += "\n";
    text += typed->text + "\n";
  }
  return text;
}

Composed Sources::composed() const {
  Composed made;
  if (has_file()) {
    std::string text = file_text_;
    // Retyped items are blanked out, so that the rest keeps its place, by which it is found in the
    // file.
    for (const Declaration& declaration : declarations_of(file_text_)) {
      if (is_typed(declaration.name))
        std::fill(text.begin() + declaration.begin, text.begin() + declaration.end, ' ');
    }
    made.fragments.push_back({file_, file_text_, 0});
    made.text = std::move(text);
    if (!made.text.empty() && made.text.back() != '\n') made.text += "\n";
  }
  for (const Typed& typed : typed_) append_fragment(made, typed.name, typed.text);
  return made;
}

}  // namespace piper::repl
