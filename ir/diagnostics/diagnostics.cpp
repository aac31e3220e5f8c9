#include "ir/diagnostics/diagnostics.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>

#include "embedded/diagnostic_pages.h"

namespace piper {

namespace {

constexpr std::array kCodes = {
#define DIAGNOSTIC(number, name, severity) CodeInfo{Code::name, #name, Severity::severity},
#include "ir/diagnostics/diagnostics.def"
#undef DIAGNOSTIC
};

consteval bool ascending() {
  for (std::size_t i = 1; i < kCodes.size(); ++i) {
    if (kCodes[i - 1].code >= kCodes[i].code) return false;
  }
  return true;
}
static_assert(ascending(), "diagnostics.def is not sorted by number, or a number stands twice");

const CodeInfo* find_code(Code code) {
  auto found = std::lower_bound(kCodes.begin(), kCodes.end(), code,
                                [](const CodeInfo& info, Code c) { return info.code < c; });
  return found != kCodes.end() && found->code == code ? &*found : nullptr;
}

}  // namespace

std::string_view severity_name(Severity severity) {
  switch (severity) {
    case Severity::error: return "error";
    case Severity::warning: return "warning";
    case Severity::note: return "note";
  }
  return "error";
}

std::span<const CodeInfo> all_codes() { return kCodes; }

std::string code_text(Code code) { return "P" + std::to_string(static_cast<unsigned>(code)); }

std::optional<Code> parse_code(std::string_view text) {
  if (text.starts_with('P') || text.starts_with('p')) text.remove_prefix(1);
  std::uint16_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  const CodeInfo* info = find_code(static_cast<Code>(number));
  if (info == nullptr) return std::nullopt;
  return info->code;
}

Severity severity_of(Code code) {
  const CodeInfo* info = find_code(code);
  return info != nullptr ? info->severity : Severity::error;
}

std::string_view page(Code code) {
  std::string path = code_text(code) + ".md";
  for (const embedded::File& file : embedded::diagnostic_pages()) {
    if (file.path == path) return file.text;
  }
  return {};
}

MessageArg::MessageArg(double value) {
  char buffer[32];
  auto [end, error] =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, 6);
  if (error == std::errc()) text_.assign(buffer, end);
}

std::string format_message(std::string_view pattern, std::span<const MessageArg> args) {
  std::string out;
  for (const MessageArg& arg : args) {
    std::size_t hole = pattern.find("{}");
    out += pattern.substr(0, hole);
    out += arg.text();
    pattern.remove_prefix(hole + 2);
  }
  return out += pattern;
}

DiagnosticBuilder& DiagnosticBuilder::narrow_to(std::string_view text) {
  SourceRange& range = sink_->diagnostics_[index_].range;
  const SourceTable& files = sink_->locations_->files();
  if (range.valid() && files.has_text(range.file) &&
      files.text(range.file).substr(range.begin, range.end - range.begin).starts_with(text)) {
    range.end = range.begin + static_cast<std::uint32_t>(text.size());
  }
  return *this;
}

DiagnosticBuilder& DiagnosticBuilder::add_related(SourceRange range, std::string message) {
  sink_->diagnostics_[index_].related.push_back({range, std::move(message)});
  return *this;
}

DiagnosticBuilder& DiagnosticBuilder::add_related(LocId loc, std::string message) {
  return add_related(sink_->locations_->primary(loc), std::move(message));
}

DiagnosticBuilder& DiagnosticBuilder::set_hint(std::string text) {
  sink_->diagnostics_[index_].hint = std::move(text);
  return *this;
}

DiagnosticBuilder& DiagnosticBuilder::fix(std::string text) {
  return fix(sink_->diagnostics_[index_].range, std::move(text));
}

DiagnosticBuilder& DiagnosticBuilder::fix(std::vector<Edit> edits) {
  if (edits.empty()) return *this;
  const SourceTable& files = sink_->locations_->files();
  const auto quoted = [](std::string_view text) {
    return text.size() == 1 && text[0] == '\n' ? std::string("a line break")
                                               : "`" + std::string(text) + "`";
  };
  Fix fix;
  for (const Edit& edit : edits) {
    const SourceRange& range = edit.range;
    if (!range.valid() || !files.has_text(range.file) || files.is_library(range.file)) return *this;
    const std::string_view written =
        files.text(range.file).substr(range.begin, range.end - range.begin);
    fix.title += fix.title.empty() ? "" : ", ";
    if (written.empty()) {
      fix.title += "insert " + quoted(edit.text);
    } else if (edit.text.empty()) {
      fix.title += "remove " + quoted(written);
    } else {
      fix.title += "replace " + quoted(written) + " by " + quoted(edit.text);
    }
  }
  fix.edits = std::move(edits);
  return this->fix(std::move(fix));
}

DiagnosticBuilder& DiagnosticBuilder::fix(Fix fix) {
  sink_->diagnostics_[index_].fixes.push_back(std::move(fix));
  return *this;
}

DiagnosticBuilder& DiagnosticBuilder::did_you_mean(std::string_view name,
                                                   std::string_view written) {
  set_hint(format_args("did you mean `{}`?", name));
  const SourceRange& range = sink_->diagnostics_[index_].range;
  const SourceTable& files = sink_->locations_->files();
  if (!range.valid() || !files.has_text(range.file) ||
      files.text(range.file).substr(range.begin, range.end - range.begin) != written)
    return *this;
  return fix(std::string(name));
}

DiagnosticBuilder DiagnosticSink::add(Code code, SourceRange range, std::string message) {
  Diagnostic& diagnostic = diagnostics_.emplace_back();
  diagnostic.code = code;
  diagnostic.severity = severity_of(code);
  diagnostic.message = std::move(message);
  diagnostic.range = range;
  if (diagnostic.severity == Severity::error) ++errors_;
  return {*this, diagnostics_.size() - 1};
}

DiagnosticBuilder DiagnosticSink::add(Code code, LocId loc, std::string message) {
  constexpr std::size_t kFirst = 4, kLast = 2;  // of a chain of calls
  SourceRange primary = locations_->primary(loc);
  DiagnosticBuilder builder = add(code, primary, std::move(message));
  std::vector<SourceRange> callers;
  // Frames before the primary one lie in the library, those behind it called it.
  bool inside = true;
  for (SourceRange frame : locations_->frames(loc)) {
    if (frame == primary && inside) {
      inside = false;
    } else if (frame.valid() && inside) {
      builder.add_related(frame, "by this line of the standard library");
    } else if (frame.valid()) {
      callers.push_back(frame);
    }
  }
  for (std::size_t i = 0; i < callers.size(); ++i) {
    const std::size_t left = callers.size() - i;
    const bool skips = i == kFirst && left > kLast + 1;
    if (skips) i = callers.size() - kLast;
    builder.add_related(callers[i],
                        skips ? format_args("called from here, through {} more calls", left - kLast)
                              : "called from here");
  }
  return builder;
}

bool DiagnosticSink::reported(Code code) const {
  return std::any_of(diagnostics_.begin(), diagnostics_.end(),
                     [&](const Diagnostic& diagnostic) { return diagnostic.code == code; });
}

std::vector<Diagnostic> DiagnosticSink::sorted() const {
  std::vector<Diagnostic> result = diagnostics_;
  const SourceTable& files = locations_->files();
  auto key = [&](const Diagnostic& d) {
    bool placed = d.range.valid();
    return std::tuple(placed, placed ? d.range.file.value() : 0u,
                      placed ? files.line_column(d.range.file, d.range.begin) : LineColumn{},
                      placed ? files.line_column(d.range.file, d.range.end) : LineColumn{});
  };
  std::stable_sort(result.begin(), result.end(),
                   [&](const Diagnostic& a, const Diagnostic& b) { return key(a) < key(b); });
  // Equal diagnostics share a place, so it is enough to look back to where that place began.
  std::vector<Diagnostic> unique;
  for (Diagnostic& diagnostic : result) {
    bool repeated = false;
    for (auto before = unique.rbegin();
         before != unique.rend() && before->range == diagnostic.range && !repeated; ++before) {
      repeated = *before == diagnostic;
    }
    if (!repeated) unique.push_back(std::move(diagnostic));
  }
  return unique;
}

}  // namespace piper
