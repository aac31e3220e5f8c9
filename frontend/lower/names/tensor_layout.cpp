#include "frontend/lower/names/tensor_layout.h"

#include <algorithm>

namespace piper::lower {

namespace {

std::string dims_text(const NamedShape& shape) {
  std::string text;
  for (const NamedShape::Dim& dim : shape.dims)
    text += (text.empty() ? "" : ", ") + std::string(dim.name);
  return "[" + text + "]";
}

class LayoutMaker {
 public:
  LayoutMaker(const ast::NamesLine& line, const std::vector<NamedShape>& parameters,
              NamesReports& reports)
      : line_(line), parameters_(parameters), reports_(reports) {}

  std::optional<TensorLayout> make() {
    if (!dims_agree() || !make_factors() || !all_on_right()) return std::nullopt;
    for (const ast::FileDim& dim : line_.file_dims) {
      if (!add_file_dim(dim)) return std::nullopt;
    }
    make_strides();
    return std::move(layout_);
  }

 private:
  const NamedShape& first() const { return parameters_.front(); }

  /// Whether the written dimensions are those of the model, and those of all parameters of the line
  /// correspond by position.
  bool dims_agree() {
    const auto& dims = line_.dims;
    const bool same = dims.empty() ||
                      std::equal(dims.begin(), dims.end(), first().dims.begin(), first().dims.end(),
                                 [](const ast::NamesDim& written, const NamedShape::Dim& dim) {
                                   return written.name.name == dim.name;
                                 });
    if (!same) {
      reports_
          .report(Code::names_dimensions_differ, cover(dims.front().range, dims.back().range),
                  "`{}` has the dimensions `{}`", first().name, dims_text(first()))
          .hint("write them in this order, or leave them out");
      return false;
    }
    for (std::size_t i = 1; i < parameters_.size(); ++i) {
      if (!corresponds(parameters_[i], line_.last[i])) return false;
    }
    return true;
  }

  bool corresponds(const NamedShape& other, const ast::Identifier& written) {
    bool fits = other.dims.size() == first().dims.size();
    for (std::size_t d = 0; d < other.dims.size() && fits; ++d) {
      for (std::size_t e = 0; e < first().dims.size() && fits; ++e)
        fits = d == e || other.dims[d].name != first().dims[e].name;
    }
    if (!fits) {
      reports_
          .report(Code::names_dimensions_differ, written.range,
                  "`{}` has the dimensions `{}`, and `{}` has `{}`", other.name, dims_text(other),
                  first().name, dims_text(first()))
          .hint("parameters in one tensor have corresponding dimensions, in the same order");
    }
    return fits;
  }

  bool make_factors() {
    layout_.parts.resize(parameters_.size());
    for (std::size_t d = 0; d < first().dims.size(); ++d) {
      const std::span<const ast::NamesFactor> factors =
          line_.dims.empty() ? std::span<const ast::NamesFactor>() : line_.dims[d].factors;
      if (factors.empty()) layout_.factors.emplace_back(first().dims[d].name);
      for (const ast::NamesFactor& factor : factors) layout_.factors.emplace_back(factor.name.name);
      for (std::size_t p = 0; p < parameters_.size(); ++p) {
        if (!split(parameters_[p], d, factors, layout_.parts[p].factors)) return false;
      }
    }
    return true;
  }

  /// Adds the extents of dimension d of a parameter.
  bool split(const NamedShape& shape, std::size_t d, std::span<const ast::NamesFactor> factors,
             std::vector<std::int64_t>& extents) {
    std::int64_t left = shape.dims[d].extent;
    if (factors.empty()) {
      extents.push_back(left);
      return true;
    }
    const std::size_t begin = extents.size();
    std::optional<std::size_t> open;
    bool divides = true;
    for (const ast::NamesFactor& factor : factors) {
      if (factor.extent == 0) {
        open = extents.size();
      } else {
        divides = divides && left % factor.extent == 0;
        left /= factor.extent;
      }
      extents.push_back(factor.extent);
    }
    divides = divides && left > 0 && (open || left == 1);
    if (open) extents[*open] = left;
    if (divides) return true;
    extents.resize(begin);
    reports_.report(Code::names_dimensions_differ, line_.dims[d].range,
                    "`{}` of `{}` has extent `{}`, and these factors do not make it",
                    shape.dims[d].name, shape.name, shape.dims[d].extent);
    return false;
  }

  /// Whether each factor occurs on the right, and nothing else does: the rest of the law that the
  /// analysis checks where dimensions are written.
  bool all_on_right() {
    std::vector<bool> seen(layout_.factors.size(), false);
    const auto note = [&](const ast::Identifier& name, bool in_hole) {
      if (line_.is_tuple && name.name == "of") return true;
      if (in_hole && is_index(name.name)) return true;
      const std::optional<std::size_t> found = layout_.factor(name.name);
      if (!found) {
        reports_
            .report(Code::names_not_invertible, name.range, "`{}` has no dimension `{}`",
                    first().name, name.name)
            .hint("its dimensions are `{}`", dims_text(first()));
        return false;
      }
      if (in_hole) layout_.holes.push_back(*found);
      seen[*found] = true;
      return true;
    };
    for (const ast::FileNamePiece& piece : line_.file.pieces) {
      if (!piece.hole.missing() && !note(piece.hole, true)) return false;
    }
    for (const ast::FileDim& dim : line_.file_dims) {
      for (const ast::Identifier& name : dim.names) {
        if (!note(name, false)) return false;
      }
    }
    std::sort(layout_.holes.begin(), layout_.holes.end());
    for (std::size_t f = 0; f < seen.size(); ++f) {
      if (seen[f]) continue;
      reports_
          .report(Code::names_not_invertible, file_dims_range(),
                  "the dimension `{}` of `{}` is not on the right", layout_.factors[f],
                  first().name)
          .hint("write it among the dimensions of the tensor, or as a hole in its name");
      return false;
    }
    return holes_agree();
  }

  bool is_index(std::string_view name) const {
    return std::any_of(line_.parts.begin(), line_.parts.end(),
                       [&](const ast::NamesPart& part) { return part.index.name == name; });
  }

  SourceRange file_dims_range() const {
    return cover(line_.file_dims.front().range, line_.file_dims.back().range);
  }

  bool holes_agree() {
    for (const std::size_t hole : layout_.holes) {
      if (!extents_agree(hole, line_.file.range)) return false;
    }
    return true;
  }

  /// Whether all parameters have one extent of the factor; a diagnostic at `at` if not.
  bool extents_agree(std::size_t factor, SourceRange at) {
    for (std::size_t p = 1; p < parameters_.size(); ++p) {
      const std::int64_t extent = layout_.parts[0].factors[factor],
                         other = layout_.parts[p].factors[factor];
      if (extent == other) continue;
      reports_
          .report(Code::names_dimensions_differ, at,
                  "`{}` is `{}` in `{}` and `{}` in `{}`, so that they have no common tensor",
                  layout_.factors[factor], extent, first().name, other, parameters_[p].name)
          .hint("parameters of different extents follow each other: write `of` first, before `{}`",
                layout_.factors[factor]);
      return false;
    }
    return true;
  }

  /// A dimension of the file, outermost first: its factors, and where `of` is among them.
  struct Group {
    std::vector<std::size_t> factors;
    std::optional<std::size_t> of;  // the number of factors before it
  };

  bool add_file_dim(const ast::FileDim& dim) {
    Group group;
    for (const ast::Identifier& name : dim.names) {
      if (line_.is_tuple && name.name == "of") {
        group.of = group.factors.size();
      } else {
        group.factors.push_back(*layout_.factor(name.name));
      }
    }
    // Parameters that follow each other may have different extents.
    if (group.of != 0) {
      for (const std::size_t factor : group.factors) {
        if (!extents_agree(factor, dim.range)) return false;
      }
    }
    std::int64_t extent = 0;
    for (std::size_t p = 0; p < parameters_.size(); ++p) {
      std::int64_t product = 1;
      for (const std::size_t factor : group.factors) product *= layout_.parts[p].factors[factor];
      extent = group.of ? extent + product : product;
    }
    layout_.dims.push_back(extent);
    groups_.push_back(std::move(group));
    return true;
  }

  void make_strides() {
    std::int64_t stride = 1;  // of the group
    for (TensorLayout::Part& part : layout_.parts) part.strides.resize(layout_.factors.size(), 0);
    for (std::size_t g = groups_.size(); g-- > 0;) {
      std::int64_t before = 0;  // parameters in the positions before
      for (TensorLayout::Part& part : layout_.parts) place(groups_[g], stride, part, before);
      stride *= layout_.dims[g];
    }
  }

  /// Gives the factors of a group their strides in a parameter, and the parameter its place among
  /// the others.
  void place(const Group& group, std::int64_t stride, TensorLayout::Part& part,
             std::int64_t& before) const {
    std::int64_t inner = stride;
    for (std::size_t i = group.factors.size(); i-- > 0;) {
      if (group.of && *group.of == i + 1) {
        part.offset += static_cast<std::uint64_t>(before++ * inner);
        inner *= static_cast<std::int64_t>(parameters_.size());
      }
      const std::size_t factor = group.factors[i];
      part.strides[factor] = inner;
      inner *= part.factors[factor];
    }
    if (!group.of || *group.of > 0) return;
    part.offset += static_cast<std::uint64_t>(before);
    before += inner;
  }

  const ast::NamesLine& line_;
  const std::vector<NamedShape>& parameters_;
  NamesReports& reports_;
  TensorLayout layout_;
  std::vector<Group> groups_;
};

}  // namespace

std::optional<std::size_t> TensorLayout::factor(std::string_view name) const {
  const auto found = std::find(factors.begin(), factors.end(), name);
  if (found == factors.end()) return std::nullopt;
  return static_cast<std::size_t>(found - factors.begin());
}

std::optional<TensorLayout> lay_out(const ast::NamesLine& line,
                                    const std::vector<NamedShape>& parameters,
                                    NamesReports& reports) {
  return LayoutMaker(line, parameters, reports).make();
}

}  // namespace piper::lower
