#include "frontend/lower/names/resolve_names.h"

#include <algorithm>
#include <map>
#include <set>

#include "frontend/ast/source_text.h"
#include "frontend/lower/names/config_facts.h"
#include "frontend/lower/names/parameter_paths.h"
#include "frontend/lower/names/reports.h"
#include "frontend/lower/names/tensor_layout.h"
#include "ir/diagnostics/counted.h"
#include "ir/diagnostics/suggestion.h"

namespace piper::lower {

namespace {

using Indices = std::vector<std::uint32_t>;

/// The most tensors that a map may have: holes multiply.
constexpr std::uint64_t kMaxTensors = std::uint64_t{1} << 20;

/// The parameters that a line puts into one tensor, or into one per position of its holes; by the
/// values of its indices. A parameter that the model lacks is nothing.
using Instances = std::map<Indices, std::vector<std::optional<std::size_t>>>;

class Resolver {
 public:
  Resolver(const sema::Names& item, const tensor::Graph& model,
           std::span<const ModelArgument> arguments, SourceRange mention, DiagnosticSink& sink)
      : item_(*item.syntax), model_(model), reports_(sink, mention) {
    facts_.arguments = arguments;
    for (std::size_t p = 0; p < model.params.size(); ++p) {
      paths_.push_back(parameter_path(model.context().text(model.params[p].name)));
      for (const NamedShape::Dim& dim : shape_of(p).dims)
        facts_.extents[std::string(dim.name)].insert(dim.extent);
    }
    named_by_.resize(model.params.size(), nullptr);
  }

  std::optional<WeightMap> run() {
    map_.name = std::string(item_.name.name);
    std::vector<Instances> instances;
    for (const ast::NamesLine& line : item_.lines) instances.push_back(instances_of(line));
    for (std::size_t i = 0; i < instances.size(); ++i) {
      if (item_.lines[i].kind == ast::NamesLineKind::map) line(item_.lines[i], instances[i]);
    }
    require_all_named();
    for (std::size_t i = 0; i < instances.size(); ++i) {
      const ast::NamesLine& written = item_.lines[i];
      if (written.optional) ignore_others(written, instances[i]);
      for (const ast::FileName& name : written.ignored) ignore(name, indices_in(name));
    }
    map_.config = config_facts(item_, facts_, reports_);
    if (reports_.errors() > 0) return std::nullopt;
    std::stable_sort(slices_.begin(), slices_.end(),
                     [](const Slice& a, const Slice& b) { return a.parameter < b.parameter; });
    for (Slice& slice : slices_) map_.weights.push_back(std::move(slice.weight));
    return std::move(map_);
  }

 private:
  struct Slice {
    std::size_t parameter = 0;
    MappedWeight weight;
  };

  NamedShape shape_of(std::size_t parameter) const {
    const tensor::Param& param = model_.params[parameter];
    NamedShape shape{path_text(paths_[parameter]), {}};
    for (const tensor::Dim& dim : model_.type(param.value).dims)
      shape.dims.push_back({model_.context().text(dim.name), dim.extent});
    return shape;
  }

  // ---- which parameters a line names

  Instances instances_of(const ast::NamesLine& line) {
    Instances instances;
    if (line.kind != ast::NamesLineKind::map) return instances;
    for (std::size_t p = 0; p < paths_.size(); ++p) {
      const std::optional<PathMatch> found = match(line, paths_[p]);
      if (!found || !claim(p, line)) continue;
      auto& parameters = instances[found->indices];
      parameters.resize(line.last.size());
      parameters[found->parameter] = p;
      std::size_t position = 0;
      for (const ast::NamesPart& part : line.parts) {
        if (!part.index.missing())
          facts_.indices[std::string(part.index.name)].insert(found->indices[position++]);
      }
    }
    return instances;
  }

  /// Notes the line of a parameter; false, and a diagnostic, if it has one.
  bool claim(std::size_t parameter, const ast::NamesLine& line) {
    const ast::NamesLine* const other = std::exchange(named_by_[parameter], &line);
    if (other == nullptr) return true;
    named_by_[parameter] = other;
    if (reported_twice_.insert({other, &line}).second) {
      reports_
          .report(Code::parameter_named_twice, line.path_range, "two lines name `{}`",
                  path_text(paths_[parameter]))
          .related(other->path_range, "the other is here");
    }
    return false;
  }

  void require_all_named() {
    std::map<std::string, std::vector<std::size_t>> unnamed;  // by pattern
    for (std::size_t p = 0; p < paths_.size(); ++p) {
      if (named_by_[p] == nullptr) unnamed[pattern_of(paths_[p])].push_back(p);
    }
    for (const auto& [pattern, parameters] : unnamed) {
      const ParameterPath& path = paths_[parameters.front()];
      const std::size_t more = parameters.size() - 1;
      auto report = reports_.report(
          Code::parameter_not_named, item_.name.range, "no line of `{}` names `{}`{}",
          item_.name.name, path_text(path),
          more > 0 ? ", nor " + counted(more, "parameter") + " like it" : std::string());
      report
          .related(model_.context().locations.range(model_.params[parameters.front()].loc),
                   "it is declared here")
          .hint("add a line: `{}: \"...\"[{}]`", path_text(path), dims_of(parameters.front()));
    }
  }

  std::string dims_of(std::size_t parameter) const {
    std::string text;
    for (const NamedShape::Dim& dim : shape_of(parameter).dims)
      text += (text.empty() ? "" : ", ") + std::string(dim.name);
    return text;
  }

  // ---- one line

  void line(const ast::NamesLine& line, const Instances& instances) {
    // Another line has parameters of this one, and this was reported.
    for (const auto& [other, repeated] : reported_twice_) {
      if (repeated == &line) return;
    }
    if (!instances.empty()) {
      lay_out_all(line, instances);
    } else if (!line.optional) {
      report_unmatched(line);
    }
  }

  void report_unmatched(const ast::NamesLine& line) {
    std::set<std::string> patterns;
    for (const ParameterPath& path : paths_) patterns.insert(pattern_of(path));
    const std::vector<std::string_view> known(patterns.begin(), patterns.end());
    std::string wanted;
    for (const ast::NamesPart& part : line.parts) wanted += std::string(part.name.name) + ".";
    wanted += line.last.front().name;
    auto report =
        reports_.report(Code::names_line_unmatched, line.path_range,
                        "`{}` names no parameter of `{}`", ast::path_text(line), model_.name);
    if (patterns.contains(wanted)) {
      report.hint(
          "a part without an index is the first of its name; the parameters of this path have other indices");
    } else if (const std::string_view best = nearest_name(wanted, known); !best.empty()) {
      report.hint("did you mean `{}`?", best);
    } else {
      report.hint("leave it out, or end the line with `or none` if other models have it");
    }
  }

  /// The tensors of a line, up to the first diagnostic: one is enough for all layers.
  void lay_out_all(const ast::NamesLine& line, const Instances& instances) {
    for (const auto& [indices, parameters] : instances) {
      std::vector<NamedShape> shapes;
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        if (!parameters[i]) return report_lacking(line, indices, i);
        shapes.push_back(shape_of(*parameters[i]));
      }
      const std::optional<TensorLayout> layout = lay_out(line, shapes, reports_);
      if (!layout || !add_tensors(line, indices, parameters, *layout)) return;
    }
  }

  void report_lacking(const ast::NamesLine& line, const Indices& indices, std::size_t lacking) {
    reports_
        .report(Code::tensor_not_filled, line.last[lacking].range,
                "`{}` has no parameter `{}`, so that nothing fills its part of `{}`", model_.name,
                path_with(line, indices, line.last[lacking].name),
                name_with(line.file, line, indices, {}, {}))
        .hint("a tensor of a file is filled by parameters of the model, each element once");
  }

  /// The path of a line at the values of its indices.
  static std::string path_with(const ast::NamesLine& line, const Indices& indices,
                               std::string_view last) {
    std::string text;
    std::size_t position = 0;
    for (const ast::NamesPart& part : line.parts) {
      text += part.name.name;
      if (!part.index.missing()) text += "[" + std::to_string(indices[position++]) + "]";
      if (part.indexed && part.index.missing()) text += "[" + std::to_string(part.position) + "]";
      text += ".";
    }
    return text + std::string(last);
  }

  /// The name of a tensor: holes are the values of indices, or positions of the layout's holes.
  static std::string name_with(const ast::FileName& name, const ast::NamesLine& line,
                               const Indices& indices, const std::vector<std::string_view>& holes,
                               const std::vector<std::int64_t>& positions) {
    std::string text;
    for (const ast::FileNamePiece& piece : name.pieces) {
      text += piece.text;
      if (piece.hole.missing()) continue;
      std::size_t position = 0;
      for (const ast::NamesPart& part : line.parts) {
        if (part.index.missing()) continue;
        if (part.index.name == piece.hole.name) text += std::to_string(indices[position]);
        ++position;
      }
      for (std::size_t i = 0; i < holes.size(); ++i) {
        if (holes[i] == piece.hole.name) text += std::to_string(positions[i]);
      }
    }
    return text;
  }

  /// Adds the tensors of one instance, one for each position of its holes; false after a
  /// diagnostic.
  bool add_tensors(const ast::NamesLine& line, const Indices& indices,
                   const std::vector<std::optional<std::size_t>>& parameters,
                   const TensorLayout& layout) {
    std::vector<std::string_view> holes;
    std::vector<std::int64_t> extents, positions;
    std::uint64_t count = 1;
    for (const std::size_t hole : layout.holes) {
      holes.push_back(layout.factors[hole]);
      extents.push_back(layout.parts.front().factors[hole]);
      positions.push_back(0);
      count = std::min(count * static_cast<std::uint64_t>(extents.back()), 2 * kMaxTensors);
    }
    if (tensors_.size() + count > kMaxTensors) {
      reports_
          .report(Code::names_dimensions_differ, line.file.range,
                  "the map has more than {} tensors", kMaxTensors)
          .hint("a dimension in the name of a tensor makes one tensor of each of its positions");
      return false;
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::string name = name_with(line.file, line, indices, holes, positions);
      if (!fill(name, line)) return false;
      for (std::size_t p = 0; p < parameters.size(); ++p)
        slices_.push_back({*parameters[p], slice(*parameters[p], name, layout, p, positions)});
      for (std::size_t h = holes.size(); h-- > 0;) {
        if (++positions[h] < extents[h]) break;
        positions[h] = 0;
      }
    }
    return true;
  }

  /// Notes that a line fills a tensor; false, and a diagnostic, if it is filled.
  bool fill(const std::string& tensor, const ast::NamesLine& line) {
    const auto [found, added] = tensors_.emplace(tensor, &line);
    if (added) return true;
    auto report = reports_.report(Code::tensor_filled_twice, line.file.range,
                                  "two parameters are on the same elements of `{}`", tensor);
    if (found->second != &line) report.related(found->second->file.range, "the other is here");
    report.hint("parameters that share a tensor have one line: `(q, k, v): \"...\"[of ...]`");
    return false;
  }

  MappedWeight slice(std::size_t parameter, const std::string& tensor, const TensorLayout& layout,
                     std::size_t part, const std::vector<std::int64_t>& positions) const {
    const TensorLayout::Part& place = layout.parts[part];
    MappedWeight weight;
    weight.parameter = std::string(model_.context().text(model_.params[parameter].name));
    weight.tensor = tensor;
    weight.tensor_dims = layout.dims;
    weight.offset = place.offset;
    std::int64_t stride = 1;
    std::vector<std::int64_t> strides(place.factors.size());
    for (std::size_t f = place.factors.size(); f-- > 0; stride *= place.factors[f])
      strides[f] = stride;
    std::size_t hole = 0;
    for (std::size_t f = 0; f < place.factors.size(); ++f) {
      if (hole < layout.holes.size() && layout.holes[hole] == f) {
        weight.parameter_offset += static_cast<std::uint64_t>(strides[f] * positions[hole++]);
        continue;
      }
      weight.factors.push_back(place.factors[f]);
      weight.strides.push_back(place.strides[f]);
      weight.parameter_strides.push_back(strides[f]);
    }
    return weight;
  }

  // ---- tensors without parameters

  /// The tensors of a line that ends with `or none`, where the model lacks the parameter and no
  /// other line fills them.
  void ignore_others(const ast::NamesLine& line, const Instances& instances) {
    std::vector<std::string_view> names;
    for (const ast::NamesPart& part : line.parts) {
      if (!part.index.missing()) names.push_back(part.index.name);
    }
    each_assignment(names, [&](const Indices& indices) {
      if (instances.contains(indices)) return;
      std::string name = name_with(line.file, line, indices, {}, {});
      if (!tensors_.contains(name)) map_.ignored.push_back(std::move(name));
    });
  }

  static std::vector<std::string_view> indices_in(const ast::FileName& name) {
    std::vector<std::string_view> names;
    for (const ast::FileNamePiece& piece : name.pieces) {
      if (!piece.hole.missing() &&
          std::find(names.begin(), names.end(), piece.hole.name) == names.end())
        names.push_back(piece.hole.name);
    }
    return names;
  }

  void ignore(const ast::FileName& name, const std::vector<std::string_view>& names) {
    each_assignment(names, [&](const Indices& indices) {
      std::string text;
      for (const ast::FileNamePiece& piece : name.pieces) {
        text += piece.text;
        for (std::size_t i = 0; i < names.size(); ++i) {
          if (!piece.hole.missing() && names[i] == piece.hole.name)
            text += std::to_string(indices[i]);
        }
      }
      if (tensors_.contains(text)) {
        if (reported_ignored_.insert(&name).second)
          reports_
              .report(Code::tensor_filled_twice, name.range,
                      "`{}` is ignored, and a parameter is in it", text)
              .related(tensors_.find(text)->second->file.range, "this line fills it");
        return;
      }
      map_.ignored.push_back(std::move(text));
    });
  }

  /// Calls `visit` with every combination of the values that the indices of these names have in
  /// the model.
  template <typename Visit>
  void each_assignment(const std::vector<std::string_view>& names, const Visit& visit) {
    std::vector<std::vector<std::uint32_t>> values;
    std::uint64_t count = 1;
    for (const std::string_view name : names) {
      const auto found = facts_.indices.find(name);
      values.emplace_back();
      if (found != facts_.indices.end())
        values.back().assign(found->second.begin(), found->second.end());
      count = std::min(count * values.back().size(), kMaxTensors);
    }
    std::vector<std::size_t> at(names.size(), 0);
    for (std::uint64_t i = 0; i < count; ++i) {
      Indices indices;
      for (std::size_t n = 0; n < names.size(); ++n) indices.push_back(values[n][at[n]]);
      visit(indices);
      for (std::size_t n = names.size(); n-- > 0;) {
        if (++at[n] < values[n].size()) break;
        at[n] = 0;
      }
    }
  }

  const ast::NamesItem& item_;
  const tensor::Graph& model_;
  NamesReports reports_;
  FactNames facts_;
  std::vector<ParameterPath> paths_;             // by parameter
  std::vector<const ast::NamesLine*> named_by_;  // by parameter; null: by none
  std::set<std::pair<const ast::NamesLine*, const ast::NamesLine*>> reported_twice_;
  std::set<const ast::FileName*> reported_ignored_;
  std::map<std::string, const ast::NamesLine*> tensors_;  // filled by the line
  std::vector<Slice> slices_;
  WeightMap map_;
};

}  // namespace

std::optional<WeightMap> resolve_names(const sema::Names& item, const tensor::Graph& model,
                                       std::span<const ModelArgument> arguments,
                                       SourceRange mention, DiagnosticSink& sink) {
  return Resolver(item, model, arguments, mention, sink).run();
}

}  // namespace piper::lower
