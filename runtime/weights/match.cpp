#include "runtime/weights/match.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "runtime/weights/config.h"
#include "runtime/weights/strided_copy.h"

namespace piper::runtime {
namespace {

/// The maximum number of differences in a message, and of names in a line.
constexpr std::size_t kShownDifferences = 16;
constexpr std::size_t kShownNames = 8;

/// `[64, 256]`.
std::string dims_text(std::span<const std::int64_t> dims) {
  std::string text = "[";
  for (std::size_t d = 0; d < dims.size(); ++d) text += (d ? ", " : "") + std::to_string(dims[d]);
  return text + "]";
}

std::string count_text(std::size_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

/// The row-major strides of a parameter of its own tensor.
std::vector<std::int64_t> row_major(std::span<const std::int64_t> dims) {
  std::vector<std::int64_t> strides(dims.size(), 1);
  for (std::size_t k = dims.size(); k-- > 1;) strides[k - 1] = strides[k] * dims[k];
  return strides;
}

/// A product of extents; nothing if one is not positive, or it exceeds 2^62.
std::optional<std::uint64_t> product(std::span<const std::int64_t> dims) {
  std::int64_t elements = 1;
  for (const std::int64_t dim : dims) {
    if (dim < 1 || __builtin_mul_overflow(elements, dim, &elements) ||
        elements > (std::int64_t{1} << 62))
      return std::nullopt;
  }
  return static_cast<std::uint64_t>(elements);
}

/// Whether all positions of a weight are elements of its tensor; products do not overflow.
bool stays_inside(const MappedWeight& weight, std::uint64_t tensor_elements) {
  if (weight.strides.size() != weight.factors.size()) return false;
  std::uint64_t last = weight.offset;
  for (std::size_t k = 0; k < weight.factors.size(); ++k) {
    if (weight.factors[k] == 1) continue;
    std::uint64_t reach = 0;
    if (weight.strides[k] < 1 ||
        __builtin_mul_overflow(static_cast<std::uint64_t>(weight.factors[k] - 1),
                               static_cast<std::uint64_t>(weight.strides[k]), &reach) ||
        __builtin_add_overflow(last, reach, &last))
      return false;
  }
  return last < tensor_elements;
}

class Differences {
 public:
  void add(std::string text) {
    ++count_;
    if (notes_.size() < kShownDifferences) notes_.push_back({.text = std::move(text)});
  }

  std::optional<Failure> failure(const WeightFiles& files, bool lacks) && {
    if (count_ == 0) return std::nullopt;
    if (count_ > notes_.size())
      notes_.push_back({.text = std::to_string(count_ - notes_.size()) + " more differ"});
    return Failure{
        .code = kWeightsDiffer,
        .message = "the weights of `" + files.path() + "` do not fit the model",
        .hint = lacks ? "`weights(..., missing: init)` gives parameters that it lacks first values"
                      : "give the weights of this model, or the model the shapes of its weights",
        .notes = std::move(notes_)};
  }

 private:
  std::vector<Note> notes_;
  std::size_t count_ = 0;
};

/// The first names of a list: `a, b and 3 more`.
std::string names_text(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShownNames); ++i)
    text += (i ? ", " : "") + shown_name(names[i]);
  if (names.size() > kShownNames)
    text += " and " + std::to_string(names.size() - kShownNames) + " more";
  return text;
}

bool is_rearranged(const MappedWeight& weight) {
  StridedCopy copy = tensor_to_parameter(weight);
  sort_by_source(copy);
  return copy.axes.size() > 1 || (copy.axes.size() == 1 && copy.axes[0].from != copy.axes[0].to);
}

}  // namespace

std::vector<ParameterShape> shapes_of(const RankParameters& parameters) {
  std::vector<ParameterShape> shapes;
  for (const auto& [name, param] : parameters.counted())
    shapes.push_back({std::string(name), {param->dims, param->dims + param->num_dims}});
  return shapes;
}

WeightMap own_names(std::span<const ParameterShape> shapes) {
  WeightMap map;
  for (const ParameterShape& shape : shapes)
    map.weights.push_back(
        {shape.name, shape.name, shape.dims, 0, shape.dims, row_major(shape.dims)});
  return map;
}

std::optional<Failure> check_map(const WeightMap& map, std::span<const ParameterShape> shapes) {
  const auto wrong = [](const std::string& reason) {
    return Failure{.code = kBadJob, .message = "a map of weights is wrong: " + reason};
  };
  std::map<std::string_view, const ParameterShape*> expected;
  for (const ParameterShape& shape : shapes) expected.emplace(shape.name, &shape);
  std::map<std::string_view, const MappedWeight*> tensors;
  for (const MappedWeight& weight : map.weights) {
    const auto found = expected.find(weight.parameter);
    if (found == expected.end())
      return wrong("there is no parameter " + shown_name(weight.parameter) + ", or it has two");
    const auto elements = product(found->second->dims), mapped = product(weight.factors),
               stored = product(weight.tensor_dims);
    if (!elements || elements != mapped)
      return wrong("the factors of " + shown_name(weight.parameter) + " are not its dimensions");
    if (!stored || !stays_inside(weight, *stored))
      return wrong(shown_name(weight.parameter) + " is not inside of " + shown_name(weight.tensor));
    const auto [tensor, is_new] = tensors.emplace(weight.tensor, &weight);
    if (!is_new && tensor->second->tensor_dims != weight.tensor_dims)
      return wrong(shown_name(weight.tensor) + " has two shapes");
    expected.erase(found);
  }
  if (!expected.empty()) return wrong("it lacks " + shown_name(expected.begin()->first));
  return std::nullopt;
}

std::optional<Failure> match_weights(const WeightFiles& files, const WeightMap& map,
                                     Missing missing, WeightsReport& report) {
  report = {};
  report.path = files.path();
  Differences differences;
  bool lacks = false;
  std::set<std::string_view> known(map.ignored.begin(), map.ignored.end()), read, refused;
  for (const MappedWeight& weight : map.weights) {
    known.insert(weight.tensor);
    const auto found = files.tensors().find(weight.tensor);
    if (found == files.tensors().end()) {
      report.missing.push_back(weight.parameter);
      if (missing == Missing::initialised) continue;
      lacks = true;
      differences.add("it has no " + shown_name(weight.tensor) +
                      (weight.tensor == weight.parameter
                           ? ""
                           : ", which has values of " + shown_name(weight.parameter)));
      continue;
    }
    const StoredTensor& stored = found->second.stored;
    if (stored.dims != weight.tensor_dims || !is_weight_type(stored.type)) {
      // A tensor of several parameters is one difference.
      if (refused.insert(weight.tensor).second)
        differences.add(shown_name(weight.tensor) + " is " +
                        std::string(stored_type_name(stored.type)) + dims_text(stored.dims) +
                        (is_weight_type(stored.type)
                             ? ", and that of this model is " + dims_text(weight.tensor_dims)
                             : ", and weights are F64, F32, F16 or BF16"));
      continue;
    }
    ++report.parameters;
    read.insert(weight.tensor);
    if (is_rearranged(weight)) ++report.rearranged;
  }
  report.tensors = read.size();
  for (const auto& [name, tensor] : files.tensors()) {
    if (!known.contains(name)) report.not_read.push_back(name);
  }
  std::sort(report.missing.begin(), report.missing.end());
  if (!map.config.empty()) {
    Failure failure;
    const auto config = compare_config(files, map.config, report.unchecked, failure);
    if (!config) return failure;
    for (const std::string& difference : *config) differences.add(difference);
  }
  return std::move(differences).failure(files, lacks);
}

std::string report_text(const WeightsReport& report) {
  std::string text = "weights of " + report.path + ": " +
                     count_text(report.parameters, "parameter") + " from " +
                     count_text(report.tensors, "tensor");
  if (report.rearranged > 0) text += ", " + std::to_string(report.rearranged) + " rearranged";
  text += "\n";
  if (!report.missing.empty())
    text += "not in it, with first values: " + names_text(report.missing) + "\n";
  if (!report.not_read.empty())
    text += "not read, because no parameter has them: " + names_text(report.not_read) + "\n";
  if (!report.unchecked.empty())
    text += "not compared, because no `config.json` is beside it: " + names_text(report.unchecked) +
            "\n";
  return text;
}

}  // namespace piper::runtime
