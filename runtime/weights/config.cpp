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
  const std::size_t slash = files.path().rfind('/');
  const std::string folder = slash == std::string::npos ? "" : files.path().substr(0, slash + 1),
                    name = files.path().substr(folder.size());
  if (!files.is_folder() && name != "model.safetensors") return {};
  const std::string path =
      files.is_folder() ? files.path() + "/config.json" : folder + "config.json";
  struct stat status{};
  // A link that leads nowhere is one that cannot be read.
  return lstat(path.c_str(), &status) == 0 ? path : std::string();
}

/// Calls `visit` with every member of a config, at any depth, and with the name of the config's own
/// member that holds it; empty for these themselves.
template <typename Visit>
void for_each_member(const JsonValue& value, std::string_view outer, const Visit& visit) {
  if (value.as_object() == nullptr) return;
  for (const JsonMember& member : *value.as_object()) {
    visit(outer, member);
    for_each_member(member.value, outer.empty() ? std::string_view(member.name) : outer, visit);
  }
}

/// Programs keep the numbers of rotary positions in the config, in an object of it, or in both.
bool is_rotary(std::string_view outer) { return outer.starts_with("rope_"); }

/// The values of a fact: that of the config and those of its rotary objects, else the first in
/// another object.
std::vector<const JsonValue*> values_of(const JsonValue& config, std::string_view key) {
  std::vector<const JsonValue*> stated, elsewhere;
  for_each_member(config, {}, [&](std::string_view outer, const JsonMember& member) {
    if (member.name == key)
      (outer.empty() || is_rotary(outer) ? stated : elsewhere).push_back(&member.value);
  });
  if (stated.empty() && !elsewhere.empty()) stated.push_back(elsewhere.front());
  return stated;
}

/// Members of a config that change the values of a model in a way that no operation of Piper has,
/// unless they, or all elements of them, have this value or are null.
struct Feature {
  bool rotary;  // in a rotary object only
  const char* key;
  const char* plain;  // JSON
  const char* meaning;
};
constexpr Feature kFeatures[] = {
    {false, "rope_type", "\"default\"", "scaled rotary positions"},
    {true, "type", "\"default\"", "scaled rotary positions"},
    {false, "partial_rotary_factor", "1", "rotary positions of a part of the width"},
    {false, "sliding_window", "null", "attention to a window of positions"},
    {false, "layer_types", "\"full_attention\"", "attention to a window of positions"},
};

bool is_plain(const JsonValue& value, const JsonValue& plain) {
  if (const auto* const array = value.as_array())
    return std::all_of(array->begin(), array->end(),
                       [&](const JsonValue& element) { return equal(element, plain); });
  return value.is_null() || equal(value, plain);
}

/// A rotary object of a config, which stands for null if its features are plain.
bool is_judged_by_features(std::string_view key, const JsonValue& value) {
  return is_rotary(key) && (value.find("rope_type") != nullptr || value.find("type") != nullptr);
}

/// Whether a file says that it has no windows, whatever their size.
bool is_switched_off(const JsonValue& config, std::string_view key) {
  const JsonValue* const used = config.find("use_" + std::string(key));
  return used != nullptr && used->as_bool() == false;
}

/// Adds the features of a config, except those that a fact of the map has compared.
void add_features(const JsonValue& config, std::span<const ConfigFact> facts,
                  std::vector<std::string>& differences) {
  for (const Feature& feature : kFeatures) {
    const bool stated = std::any_of(facts.begin(), facts.end(), [&](const ConfigFact& fact) {
      return fact.key == feature.key;
    });
    if (stated || is_switched_off(config, feature.key)) continue;
    std::string reason;
    const JsonValue plain = *parse_json(feature.plain, reason);
    for_each_member(config, {}, [&](std::string_view outer, const JsonMember& member) {
      if (member.name != feature.key || (feature.rotary && !is_rotary(outer)) ||
          is_plain(member.value, plain))
        return;
      differences.push_back(shown_name(feature.key) + " of its `config.json` is " +
                            value_text(member.value) + ", and Piper does not have " +
                            feature.meaning);
    });
  }
}

}  // namespace

std::optional<std::vector<std::string>> compare_config(const WeightFiles& files,
                                                       std::span<const ConfigFact> facts,
                                                       WeightsReport& report, Failure& failure) {
  std::vector<std::string> differences;
  const std::string path = config_path(files);
  report.has_config = !path.empty();
  if (path.empty()) {
    for (const ConfigFact& fact : facts) report.unchecked.push_back(fact.key);
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
    const std::vector<const JsonValue*> values = values_of(*config, fact.key);
    if (values.empty() && !wanted->is_null()) report.unchecked.push_back(fact.key);
    for (const JsonValue* const found : values) {
      if (equal(*wanted, *found) || (wanted->is_null() && is_judged_by_features(fact.key, *found)))
        continue;
      differences.push_back(shown_name(fact.key) + " of its `config.json` is " +
                            value_text(*found) + ", and that of this model is " +
                            value_text(*wanted));
    }
  }
  add_features(*config, facts, differences);
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
