#include "runtime/checkpoint/manifest.h"

#include <set>

#include "runtime/checkpoint/json.h"
#include "runtime/crc32.h"

namespace piper::runtime {
namespace {

/// The numbers and texts of a manifest, by their names.
constexpr std::pair<const char*, std::uint64_t Manifest::*> kNumbers[] = {
    {"step", &Manifest::step},   {"samples", &Manifest::samples}, {"updates", &Manifest::updates},
    {"batch", &Manifest::batch}, {"seed", &Manifest::seed},
};
constexpr std::pair<const char*, std::string Manifest::*> kTexts[] = {
    {"train", &Manifest::train}, {"dtype", &Manifest::dtype}, {"optimizer", &Manifest::optimizer},
    {"rate", &Manifest::rate},   {"data", &Manifest::data},
};
constexpr std::uint64_t kSchema = 1;
constexpr std::size_t kDigits = 8;  // of a checksum

void append_file(std::string& out, const ManifestFile& file) {
  out += "{\"name\":";
  append_json_string(out, file.name);
  out += ",\"bytes\":" + std::to_string(file.bytes) + ",\"crc32\":[";
  for (std::size_t i = 0; i < file.crc32.size(); ++i) {
    out += (i ? ",\"" : "\"") + crc32_text(file.crc32[i]) + '"';
  }
  out += "]}";
}

std::optional<std::uint32_t> parse_checksum(const JsonValue& value) {
  const std::string* const text = value.as_string();
  if (text == nullptr || text->size() != kDigits ||
      text->find_first_not_of("0123456789abcdef") != std::string::npos)
    return std::nullopt;
  return static_cast<std::uint32_t>(std::stoul(*text, nullptr, 16));
}

/// The last member: the checksum of all text before it.
std::string seal_of(std::string_view text) {
  return ",\"crc32\":\"" + crc32_text(crc32_of(text.data(), text.size())) + "\"}\n";
}

bool is_sealed(std::string_view text) {
  const std::size_t bytes = seal_of({}).size();
  if (text.size() < bytes) return false;
  const std::string_view sealed = text.substr(0, text.size() - bytes);
  return text.substr(sealed.size()) == seal_of(sealed);
}

bool is_file_name(const std::string& name) {
  return !name.empty() && name.size() <= 255 && name[0] != '.' &&
         name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") ==
             std::string::npos;
}

class Reader {
 public:
  explicit Reader(std::string& error) : error_(error) {}

  std::optional<Manifest> read(const JsonValue& value) {
    const auto schema = number(value, "schema");
    if (schema && *schema != kSchema)
      wrong("its schema is `" + std::to_string(*schema) + "`, and this version reads `" +
            std::to_string(kSchema) + "`");
    Manifest manifest;
    for (const auto& [name, member] : kNumbers) manifest.*member = number(value, name).value_or(0);
    for (const auto& [name, member] : kTexts) {
      const JsonValue* const found = value.find(name);
      if (found == nullptr || found->as_string() == nullptr) {
        wrong("it has no text `" + std::string(name) + "`");
      } else {
        manifest.*member = *found->as_string();
      }
    }
    if (const JsonValue* const loss = value.find("held_out_loss")) {
      manifest.held_out_loss = loss->as_double();
      if (!manifest.held_out_loss) wrong("its `held_out_loss` is no number");
    }
    files(value, manifest);
    if (!error_.empty()) return std::nullopt;
    return manifest;
  }

 private:
  /// Keeps the first reason.
  void wrong(std::string reason) {
    if (error_.empty()) error_ = std::move(reason);
  }

  std::optional<std::uint64_t> number(const JsonValue& value, const char* name) {
    const JsonValue* const found = value.find(name);
    const auto number = found ? found->as_unsigned() : std::nullopt;
    if (!number) wrong("it has no number `" + std::string(name) + "`");
    return number;
  }

  void files(const JsonValue& value, Manifest& manifest) {
    const JsonValue* const found = value.find("files");
    const JsonValue::Array* const list = found ? found->as_array() : nullptr;
    if (list == nullptr) return wrong("it has no list `files`");
    std::set<std::string> names;
    for (const JsonValue& entry : *list) {
      ManifestFile& file = manifest.files.emplace_back();
      const JsonValue* const name = entry.find("name");
      if (name == nullptr || name->as_string() == nullptr || !is_file_name(*name->as_string()))
        return wrong("one of its `files` has no legal name");
      file.name = *name->as_string();
      if (!names.insert(file.name).second) return wrong("it has `" + file.name + "` twice");
      file.bytes = number(entry, "bytes").value_or(0);
      checksums(entry, file);
    }
  }

  void checksums(const JsonValue& entry, ManifestFile& file) {
    const JsonValue* const found = entry.find("crc32");
    const JsonValue::Array* const list = found ? found->as_array() : nullptr;
    const std::uint64_t pieces = file.bytes / kCheckedBytes + (file.bytes % kCheckedBytes ? 1 : 0);
    if (list == nullptr || list->size() != pieces)
      return wrong("`" + file.name + "` has not one checksum for every 4 MiB");
    for (const JsonValue& value : *list) {
      const auto checksum = parse_checksum(value);
      if (!checksum) return wrong("a checksum of `" + file.name + "` is not 8 hexadecimal digits");
      file.crc32.push_back(*checksum);
    }
  }

  std::string& error_;
};

}  // namespace

std::string manifest_json(const Manifest& manifest) {
  std::string out = "{\"schema\":" + std::to_string(kSchema);
  for (const auto& [name, member] : kNumbers)
    out += ",\"" + std::string(name) + "\":" + std::to_string(manifest.*member);
  for (const auto& [name, member] : kTexts) {
    out += ",\"" + std::string(name) + "\":";
    append_json_string(out, manifest.*member);
  }
  if (manifest.held_out_loss) {
    out += ",\"held_out_loss\":";
    append_json_number(out, *manifest.held_out_loss);
  }
  out += ",\"files\":[";
  for (std::size_t i = 0; i < manifest.files.size(); ++i) {
    out += i ? "," : "";
    append_file(out, manifest.files[i]);
  }
  out += ']';
  return out + seal_of(out);
}

std::optional<Manifest> parse_manifest(std::string_view text, std::string& error) {
  error.clear();
  const auto value = parse_json(text, error);
  if (!value) return std::nullopt;
  auto manifest = Reader(error).read(*value);
  if (manifest && !is_sealed(text)) {
    error = "it does not have the checksum that it says";
    return std::nullopt;
  }
  return manifest;
}

}  // namespace piper::runtime
