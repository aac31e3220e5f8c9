#include "runtime/weights/match.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "runtime/weights/config.h"
#include "runtime/weights/coverage.h"
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

/// Whether all positions along the factors are elements of a tensor; products do not overflow.
bool stays_inside(std::uint64_t offset, std::span<const std::int64_t> factors,
                  std::span<const std::int64_t> strides, std::uint64_t elements) {
  if (strides.size() != factors.size()) return false;
  std::uint64_t last = offset;
  for (std::size_t k = 0; k < factors.size(); ++k) {
    if (factors[k] == 1) continue;
    std::uint64_t reach = 0;
    if (strides[k] < 1 ||
        __builtin_mul_overflow(static_cast<std::uint64_t>(factors[k] - 1),
                               static_cast<std::uint64_t>(strides[k]), &reach) ||
        __builtin_add_overflow(last, reach, &last))
      return false;
  }
  return last < elements;
}

/// Whether a weight lies in its parameter. With factors and without strides it is all of it.
bool is_part_of(const MappedWeight& weight, std::uint64_t elements) {
  const auto mapped = product(weight.factors);
  if (!mapped) return false;
  if (weight.parameter_strides.empty() && !weight.factors.empty())
    return weight.parameter_offset == 0 && mapped == elements;
  return stays_inside(weight.parameter_offset, weight.factors, weight.parameter_strides, elements);
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
  for (const ParameterShape& shape : shapes) {
    std::vector<std::int64_t> strides(shape.dims.size(), 1);
    for (std::size_t k = strides.size(); k-- > 1;) strides[k - 1] = strides[k] * shape.dims[k];
    map.weights.push_back({shape.name, shape.name, shape.dims, 0, shape.dims, std::move(strides)});
  }
  return map;
}

std::optional<Failure> check_map(const WeightMap& map, std::span<const ParameterShape> shapes) {
  const auto wrong = [](const std::string& reason) {
    return Failure{.code = kBadJob, .message = "a map of weights is wrong: " + reason};
  };
  struct Expected {
    std::uint64_t elements;
    Coverage coverage;
    bool named = false;
  };
  std::map<std::string_view, Expected> expected;
  for (const ParameterShape& shape : shapes) {
    const auto elements = product(shape.dims);
    if (!elements) return wrong(shown_name(shape.name) + " has no elements");
    expected.try_emplace(shape.name, Expected{*elements, Coverage(*elements)});
  }
  std::map<std::string_view, const MappedWeight*> tensors;
  for (const MappedWeight& weight : map.weights) {
    const auto found = expected.find(weight.parameter);
    if (found == expected.end())
      return wrong("there is no parameter " + shown_name(weight.parameter));
    if (!is_part_of(weight, found->second.elements))
      return wrong("the factors of " + shown_name(weight.parameter) + " are not its dimensions");
    const auto stored = product(weight.tensor_dims);
    if (!stored || !stays_inside(weight.offset, weight.factors, weight.strides, *stored))
      return wrong(shown_name(weight.parameter) + " is not inside of " + shown_name(weight.tensor));
    const auto [tensor, is_new] = tensors.emplace(weight.tensor, &weight);
    if (!is_new && tensor->second->tensor_dims != weight.tensor_dims)
      return wrong(shown_name(weight.tensor) + " has two shapes");
    found->second.coverage.add(tensor_to_parameter(weight), weight.tensor);
    found->second.named = true;
  }
  for (auto& [name, parameter] : expected) {
    if (!parameter.named) return wrong("it lacks " + shown_name(name));
    if (const auto fault = parameter.coverage.fault())
      return wrong("it does not have " + shown_name(name) + " exactly once: " + *fault);
  }
  return std::nullopt;
}

namespace {

/// The parts of a parameter that the files have, and those that they lack.
struct FoundParts {
  std::vector<const MappedWeight*> found, missing;
  bool rearranged = false;
};

class Matching {
 public:
  Matching(const WeightFiles& files, Missing missing, WeightsReport& report)
      : files_(files), missing_(missing), report_(report) {}

  void look_for(const MappedWeight& weight) {
    const auto tensor = files_.tensors().find(weight.tensor);
    FoundParts& parts = parameters_[weight.parameter];
    if (tensor == files_.tensors().end()) {
      parts.missing.push_back(&weight);
      if (missing_ == Missing::refused) add_missing(weight);
      return;
    }
    parts.found.push_back(&weight);
    parts.rearranged = parts.rearranged || is_rearranged(weight);
    const StoredTensor& stored = tensor->second.stored;
    if (stored.dims == weight.tensor_dims && is_weight_type(stored.type)) {
      read_.insert(weight.tensor);
    } else if (refused_.insert(weight.tensor).second) {  // of several parameters: one difference
      differences_.add(shown_name(weight.tensor) + " is " +
                       std::string(stored_type_name(stored.type)) + dims_text(stored.dims) +
                       (is_weight_type(stored.type)
                            ? ", and that of this model is " + dims_text(weight.tensor_dims)
                            : ", and weights are F64, F32, F16 or BF16"));
    }
  }

  void finish_parameters() {
    for (const auto& [name, parts] : parameters_) {
      if (parts.found.empty()) {
        report_.missing.emplace_back(name);
        lacks_ = lacks_ || missing_ == Missing::refused;
      } else if (parts.missing.empty()) {
        ++report_.parameters;
        if (parts.rearranged) ++report_.rearranged;
      } else if (missing_ == Missing::initialised) {
        for (const MappedWeight* const weight : parts.missing) add_missing(*weight);
      }
    }
    report_.tensors = read_.size();
  }

  std::optional<Failure> compare_facts(const WeightMap& map) {
    if (map.config.empty()) return std::nullopt;
    Failure failure;
    const auto config = compare_config(files_, map.config, report_, failure);
    if (!config) return failure;
    for (const std::string& difference : *config) differences_.add(difference);
    return std::nullopt;
  }

  std::optional<Failure> failure() && { return std::move(differences_).failure(files_, lacks_); }

 private:
  void add_missing(const MappedWeight& weight) {
    differences_.add("it has no " + shown_name(weight.tensor) +
                     (weight.tensor == weight.parameter
                          ? ""
                          : ", which has values of " + shown_name(weight.parameter)));
  }

  const WeightFiles& files_;
  const Missing missing_;
  WeightsReport& report_;
  Differences differences_;
  std::map<std::string_view, FoundParts> parameters_;
  std::set<std::string_view> read_, refused_;
  bool lacks_ = false;
};

}  // namespace

std::optional<Failure> match_weights(const WeightFiles& files, const WeightMap& map,
                                     Missing missing, WeightsReport& report) {
  report = {};
  report.path = files.path();
  Matching matching(files, missing, report);
  std::set<std::string_view> known(map.ignored.begin(), map.ignored.end());
  for (const MappedWeight& weight : map.weights) {
    known.insert(weight.tensor);
    matching.look_for(weight);
  }
  matching.finish_parameters();
  for (const auto& [name, tensor] : files.tensors()) {
    if (!known.contains(name)) report.not_read.push_back(name);
  }
  if (auto unread = matching.compare_facts(map)) return unread;
  return std::move(matching).failure();
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
    text += (report.has_config ? "not compared, because its `config.json` lacks them: "
                               : "not compared, because no `config.json` is beside it: ") +
            names_text(report.unchecked) + "\n";
  return text;
}

}  // namespace piper::runtime
