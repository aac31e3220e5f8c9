#include "frontend/lsp/protocol.h"

#include <filesystem>

#include "llvm/ADT/StringExtras.h"

namespace piper::lsp {

namespace {

constexpr std::string_view kScheme = "file://";
constexpr std::string_view kElsewhere = "/untitled:/";  // the folder of URIs that are not files

bool stays(char c) {
  return llvm::isAlnum(c) || c == '/' || c == '-' || c == '_' || c == '.' || c == '~';
}

std::string decoded(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && llvm::isHexDigit(text[i + 1]) &&
        llvm::isHexDigit(text[i + 2])) {
      result.push_back(static_cast<char>(llvm::hexDigitValue(text[i + 1]) * 16 +
                                         llvm::hexDigitValue(text[i + 2])));
      i += 2;
    } else {
      result.push_back(text[i]);
    }
  }
  return result;
}

std::string encoded(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (stays(c)) {
      result.push_back(c);
    } else {
      result.push_back('%');
      result.push_back(llvm::hexdigit(static_cast<unsigned char>(c) >> 4));
      result.push_back(llvm::hexdigit(static_cast<unsigned char>(c) & 15));
    }
  }
  return result;
}

}  // namespace

json::Value text(std::string_view bytes) {
  const llvm::StringRef view(bytes.data(), bytes.size());
  // Owned: a view would be kept as one.
  return json::isUTF8(view) ? json::Value(view.str()) : json::Value(json::fixUTF8(view));
}

json::Object markdown(std::string_view bytes) {
  return json::Object{{"kind", "markdown"}, {"value", text(bytes)}};
}

std::optional<LineColumn> position_of(const json::Value* value) {
  const json::Object* object = value != nullptr ? value->getAsObject() : nullptr;
  if (object == nullptr) return std::nullopt;
  const auto line = object->getInteger("line"), character = object->getInteger("character");
  if (!line || !character || *line < 0 || *character < 0 || *line >= UINT32_MAX ||
      *character >= UINT32_MAX)
    return std::nullopt;
  return LineColumn{static_cast<std::uint32_t>(*line) + 1,
                    static_cast<std::uint32_t>(*character) + 1};
}

json::Object to_json(LineColumn position) {
  return json::Object{{"line", static_cast<std::int64_t>(position.line) - 1},
                      {"character", static_cast<std::int64_t>(position.column) - 1}};
}

json::Object to_json(const SourceTable& files, SourceRange range, ColumnUnit unit) {
  return json::Object{{"start", to_json(files.line_column(range.file, range.begin, unit))},
                      {"end", to_json(files.line_column(range.file, range.end, unit))}};
}

std::string path_of(std::string_view uri) {
  if (!uri.starts_with(kScheme)) return std::string(kElsewhere) + encoded(uri) + ".pipe";
  uri.remove_prefix(kScheme.size());
  const std::size_t slash = uri.find('/');  // behind the host, which is this one
  return std::filesystem::path(decoded(slash == std::string_view::npos ? uri : uri.substr(slash)))
      .lexically_normal()
      .generic_string();
}

std::string uri_of(std::string_view path) {
  if (path.starts_with(kElsewhere) && path.ends_with(".pipe")) {
    return decoded(path.substr(kElsewhere.size(), path.size() - kElsewhere.size() - 5));
  }
  const std::string absolute =
      path.starts_with('/') ? std::string(path)
                            : std::filesystem::absolute(path).lexically_normal().generic_string();
  return std::string(kScheme) + encoded(absolute);
}

}  // namespace piper::lsp
