#include "frontend/sema/load.h"

#include <algorithm>
#include <map>

#include "frontend/parse/parse.h"
#include "ir/diagnostics/forward.h"
#include "ir/diagnostics/suggestion.h"
#include "llvm/ADT/StringRef.h"

namespace piper::sema {

namespace {

class Loader {
 public:
  Loader(const source::FileSystem& file_system, Context& context, DiagnosticSink& sink,
         Program& program, std::size_t shown_errors)
      : file_system_(file_system),
        files_(context.locations.files()),
        sink_(sink),
        program_(program),
        shown_errors_(shown_errors) {}

  /// Loads a file of the library, unless it is a module already.
  void load_library(const std::string& name) {
    const std::optional<FileId> file = open_library(name, files_);
    if (file && !modules_.contains(*file)) load(*file, name);
  }

  ModuleId load(FileId file, std::string name) {
    const ModuleId id = ModuleId::at(program_.modules.size());
    modules_.emplace(file, id);
    auto owned = std::make_unique<Module>();
    Module& module = *owned;
    program_.modules.push_back(std::move(owned));
    module.name = std::move(name);
    module.syntax = parse::parse(files_, file, sink_);
    open_.push_back({id, {}});
    DiagnosticSink unread(sink_.locations());
    std::size_t failed = 0;
    SourceRange last_failed;
    for (const ast::Item* item : module.syntax.items) {
      const auto* use = llvm::dyn_cast<ast::UseItem>(item);
      if (use == nullptr || use->path.empty()) continue;
      if (std::any_of(use->path.begin(), use->path.end(),
                      [](const ast::Identifier& part) { return part.missing(); }))
        continue;
      const SourceRange at = cover(use->path.front().range, use->path.back().range);
      open_.back().use = at;
      const bool reported = !says_use(at);
      if (const std::optional<ModuleId> used =
              follow(*use, file, at, !reported && failed < shown_errors_ ? sink_ : unread)) {
        if (std::find(module.uses.begin(), module.uses.end(), *used) == module.uses.end())
          module.uses.push_back(*used);
      } else {
        module.lacks_uses = true;
        if (reported) continue;
        ++failed;
        last_failed = at;
      }
    }
    report_not_shown(sink_, last_failed, failed - std::min(failed, shown_errors_), "file");
    open_.pop_back();
    return id;
  }

 private:
  struct Open {
    ModuleId module;
    SourceRange use;  // the one that is being followed
  };

  /// Whether `use` is before the path. A word of another language in its place was reported, and
  /// the path may be one of that language.
  bool says_use(SourceRange path) const {
    const llvm::StringRef before =
        llvm::StringRef(files_.text(path.file)).take_front(path.begin).rtrim();
    return before.ends_with("use");
  }
  /// Errors of the `use` itself go to `reported`.
  std::optional<ModuleId> follow(const ast::UseItem& use, FileId from, SourceRange at,
                                 DiagnosticSink& reported) {
    std::string dotted;
    for (const ast::Identifier& part : use.path)
      dotted += (dotted.empty() ? "" : ".") + std::string(part.name);
    const std::optional<FileId> file = find(use, dotted, from, at, reported);
    if (!file) return std::nullopt;
    const auto known = modules_.find(*file);
    if (known == modules_.end()) {
      return load(*file, files_.is_library(*file) ? dotted : std::string(files_.name(*file)));
    }
    const auto open = std::find_if(open_.begin(), open_.end(), [&](const Open& entry) {
      return entry.module == known->second;
    });
    if (open == open_.end()) return known->second;
    auto diagnostic = reported.report(Code::module_cycle, at, "`{}` uses itself",
                                      program_.modules[known->second.index()]->name);
    for (auto step = open; step + 1 < open_.end(); ++step) {
      diagnostic.related(step->use, "`{}` is used here",
                         program_.modules[(step + 1)->module.index()]->name);
    }
    diagnostic.hint("move what both files need to a third one");
    return std::nullopt;
  }

  std::optional<FileId> find(const ast::UseItem& use, const std::string& dotted, FileId from,
                             SourceRange at, DiagnosticSink& reported) {
    if (use.path.front().name == "std" || files_.is_library(from)) {
      if (const std::optional<FileId> file = open_library(dotted, files_)) return file;
      const std::vector<std::string> names = library_modules();
      const std::vector<std::string_view> views(names.begin(), names.end());
      auto diagnostic =
          reported.report(Code::unknown_module, at, "the standard library has no `{}`", dotted);
      std::string_view best = nearest_name(dotted, views);
      for (std::string_view name : views) {
        if (best.empty() && name.substr(name.rfind('.') + 1) == use.path.back().name) best = name;
      }
      std::string inside;
      for (std::string_view name : views) {
        if (name.starts_with(dotted + "."))
          inside += (inside.empty() ? "`" : ", `") + std::string(name) + "`";
      }
      if (!inside.empty()) {
        diagnostic.hint("a `use` names one file: {}", inside);
      } else if (!best.empty()) {
        diagnostic.did_you_mean(best, dotted);
      }
      return std::nullopt;
    }
    const std::string_view user = files_.name(from);
    const std::size_t slash = user.rfind('/');
    std::string path(slash == std::string_view::npos ? std::string_view()
                                                     : user.substr(0, slash + 1));
    for (std::size_t i = 0; i < use.path.size(); ++i)
      path += (i == 0 ? "" : "/") + std::string(use.path[i].name);
    path += ".pipe";
    return source::open(path, at, file_system_, files_, reported);
  }

  const source::FileSystem& file_system_;
  SourceTable& files_;
  DiagnosticSink& sink_;
  Program& program_;
  const std::size_t shown_errors_;
  std::map<FileId, ModuleId> modules_;
  std::vector<Open> open_;
};

}  // namespace

void load_modules(FileId entry, const source::FileSystem& file_system, Context& context,
                  DiagnosticSink& sink, Program& program, std::size_t shown_errors,
                  std::span<const std::string> beside) {
  const SourceTable& files = context.locations.files();
  Loader loader(file_system, context, sink, program, shown_errors);
  loader.load(entry, std::string(files.name(entry)));
  for (const std::string& name : beside) loader.load_library(name);
}

}  // namespace piper::sema
