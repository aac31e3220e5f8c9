#include "runtime/weights/config.h"

#include <sys/stat.h>

#include <algorithm>

#include "runtime/checkpoint/json.h"

namespace piper::runtime {
namespace {

constexpr std::uint64_t kMaxConfig = std::uint64_t{16} << 20;

bool equal(const JsonValue& a, const JsonValue& b);

bool equal_objects(const JsonValue::Object& a, const JsonValue& b) {
  return std::all_of(a.begin(), a.end(), [&](const JsonMember& member) {
    const JsonValue* const other = b.find(member.name);
    return other != nullptr && equal(member.value, *other);
  });
}

/// Numbers are equal if their values are: `10000` and `1e4`.
bool equal(const JsonValue& a, const JsonValue& b) {
  if (const auto number = a.as_double()) return number == b.as_double();
  if (const auto* const array = a.as_array()) {
    const auto* const other = b.as_array();
    return other != nullptr &&
           std::equal(array->begin(), array->end(), other->begin(), other->end(), equal);
  }
  if (const auto* const object = a.as_object()) {
    const auto* const other = b.as_object();
    return other != nullptr && object->size() == other->size() && equal_objects(*object, b);
  }
  if (const auto* const text = a.as_string()) {
    const auto* const other = b.as_string();
    return other != nullptr && *text == *other;
  }
  return a.is_null() ? b.is_null() : a.as_bool() == b.as_bool();
}

/// A value for a message; objects and arrays are not printed.
std::string value_text(const JsonValue& value) {
  std::string text;
  if (const auto number = value.as_double()) {
    append_json_number(text, *number);
  } else if (const auto* const string = value.as_string()) {
    text = *string;
  } else if (const auto boolean = value.as_bool()) {
    text = *boolean ? "true" : "false";
  } else {
    text = value.is_null() ? "null" : value.as_array() ? "[...]" : "{...}";
  }
  return shown_name(text);
}

/// The path of the `config.json`; empty if the files have none.
std::string config_path(const WeightFiles& files) {
  if (files.is_folder()) return files.path() + "/config.json";
  const std::size_t slash = files.path().rfind('/');
  const std::string name =
                        slash == std::string::npos ? files.path() : files.path().substr(slash + 1),
                    beside = (slash == std::string::npos ? "" : files.path().substr(0, slash + 1)) +
                             "config.json";
  struct stat status{};
  return name == "model.safetensors" && stat(beside.c_str(), &status) == 0 ? beside : std::string();
}

}  // namespace

std::optional<std::vector<std::string>> compare_config(const WeightFiles& files,
                                                       std::span<const ConfigFact> facts,
                                                       std::vector<std::string>& unchecked,
                                                       Failure& failure) {
  std::vector<std::string> differences;
  const std::string path = config_path(files);
  if (path.empty()) {
    for (const ConfigFact& fact : facts) unchecked.push_back(fact.key);
    return differences;
  }
  std::string reason;
  const auto text = read_plain_file(path, kMaxConfig, reason);
  const auto config = text ? parse_json(*text, reason) : std::nullopt;
  if (!config || config->as_object() == nullptr) {
    failure = unreadable_weights(path, !text     ? reason
                                       : !config ? "it is no JSON: " + reason
                                                 : "it is no object");
    failure.hint = "the map of names needs the `config.json` that belongs to the weights";
    return std::nullopt;
  }
  for (const ConfigFact& fact : facts) {
    const auto wanted = parse_json(fact.value, reason);
    if (!wanted) {
      failure = {.code = kBadJob, .message = "the fact " + shown_name(fact.key) + " is no JSON"};
      return std::nullopt;
    }
    const JsonValue* const found = config->find(fact.key);
    if (found == nullptr && wanted->is_null()) continue;
    if (found == nullptr) {
      differences.push_back("its `config.json` has no " + shown_name(fact.key) +
                            ", and that of this model is " + value_text(*wanted));
    } else if (!equal(*wanted, *found)) {
      differences.push_back(shown_name(fact.key) + " of its `config.json` is " +
                            value_text(*found) + ", and that of this model is " +
                            value_text(*wanted));
    }
  }
  return differences;
}

std::string config_json(std::span<const ConfigFact> facts) {
  std::string text = "{";
  for (std::size_t i = 0; i < facts.size(); ++i) {
    text += i ? ",\n  " : "\n  ";
    append_json_string(text, facts[i].key);
    text += ": " + facts[i].value;
  }
  return text + "\n}\n";
}

}  // namespace piper::runtime
