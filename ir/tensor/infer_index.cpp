// Shape rules of the ops that read or write elements at other places than their own: lookups, parts
// of a dimension, rotations.

#include <algorithm>
#include <cmath>

#include "ir/tensor/infer.h"

namespace piper::tensor {

Inferred ShapeRule::lookup() {
  const Type& table = operands[0];
  const Type& indices = operands[1];
  if (auto why = all_floating(0, 1); !why.empty()) return fail(why);
  if (indices.dtype != DType::i64)
    return fail("the indices of `lookup` are i64, not " + show(indices));
  if (table.dims.empty())
    return fail("the table of `lookup` has no dimension to choose from: " + show(table));
  Type result{table.dtype, indices.dims};
  result.dims.insert(result.dims.end(), table.dims.begin() + 1, table.dims.end());
  if (auto why = check_type(result, symbols); !why.empty())
    return fail("`lookup` of " + show_operands() + ": " + why);
  return ok(std::move(result));
}

Inferred ShapeRule::lookup_grad() {
  const Type& table = attrs.shape;
  if (auto why = check_type(table, symbols); !why.empty()) return fail(why);
  if (table.dtype != wide(operands[1].dtype))
    return fail(show_op() + " adds up in `" + std::string(dtype_name(wide(operands[1].dtype))) +
                "`, not in " + show(table));
  const Type made[] = {Type{operands[1].dtype, table.dims}, operands[0]};
  const Inferred forward = infer(Op::lookup, made, {}, symbols);
  if (!forward.error.empty()) return fail(forward.error);
  if (forward.types[0] != operands[1])
    return fail("`lookup_grad` for a table " + show(table) + " expects " + show(forward.types[0]) +
                ", not " + show(operands[1]));
  return ok(table);
}

std::string ShapeRule::goes_along_one(std::size_t i) {
  if (auto why = all_floating(0, operands.size()); !why.empty()) return why;
  if (attrs.dims.size() != 1)
    return show_op() + " goes along one dimension, and " + std::to_string(attrs.dims.size()) +
           " are named";
  if (auto why = all_in(attrs.dims, operands[i]); !why.empty()) return why;
  if (operands[i].dims[*operands[i].find(attrs.dims[0])].sampled)
    return show_op() + " does not go along " + show(attrs.dims[0]) +
           ", which counts samples: " + show(operands[i]);
  return {};
}

Inferred ShapeRule::iota() {
  if (!is_floating(attrs.shape.dtype))
    return fail(show_op() + " makes floating values, not " + show(attrs.shape));
  if (auto why = check_type(attrs.shape, symbols); !why.empty()) return fail(why);
  if (attrs.shape.dims.size() != 1)
    return fail(show_op() + " makes one dimension, not " + show(attrs.shape));
  if (attrs.shape.dims[0].sampled)
    return fail(show_op() + " does not go along " + show(attrs.shape.dims[0].name) +
                ", which counts samples");
  return ok(attrs.shape);
}

Inferred ShapeRule::piecewise() {
  const Inferred one = iota();
  if (!one.error.empty()) return one;
  const Pieces& pieces = attrs.pieces;
  if (pieces.ends.empty() || pieces.ends.size() != pieces.numbers.size())
    return fail(show_op() + " has " + std::to_string(pieces.ends.size()) + " pieces and " +
                std::to_string(pieces.numbers.size()) + " numbers");
  std::int64_t end = 0;
  for (std::size_t i = 0; i < pieces.ends.size(); ++i) {
    if (pieces.ends[i] <= end)
      return fail("the pieces of " + show_op() + " do not ascend: one ends before " +
                  std::to_string(pieces.ends[i]) + ", the one before it before " +
                  std::to_string(end));
    if (!std::isfinite(pieces.numbers[i]))
      return fail("a number of " + show_op() + " is not finite");
    end = pieces.ends[i];
  }
  if (end < attrs.shape.dims[0].extent)
    return fail("the pieces of " + show_op() + " end before " + std::to_string(end) +
                ", and there are " + std::to_string(attrs.shape.dims[0].extent) + " of " +
                show(attrs.shape.dims[0].name));
  return one;
}

Inferred ShapeRule::slice() {
  if (auto why = goes_along_one(0); !why.empty()) return fail(why);
  Type result = operands[0];
  Dim& dim = result.dims[*result.find(attrs.dims[0])];
  if (attrs.from < 0 || attrs.extent < 1 || attrs.extent > dim.extent ||
      attrs.from > dim.extent - attrs.extent) {
    return fail(show_op() + " takes " + std::to_string(attrs.extent) + " of " + show(dim.name) +
                " from " + std::to_string(attrs.from) + " on, and there are " +
                std::to_string(dim.extent) + ": " + show(operands[0]));
  }
  dim.extent = attrs.extent;
  return ok(std::move(result));
}

Inferred ShapeRule::pad() {
  if (auto why = goes_along_one(0); !why.empty()) return fail(why);
  Type result = operands[0];
  Dim& dim = result.dims[*result.find(attrs.dims[0])];
  if (attrs.from < 0 || attrs.extent < dim.extent || attrs.from > attrs.extent - dim.extent) {
    return fail(show_op() + " makes " + show(dim.name) + " " + std::to_string(attrs.extent) +
                " long, and the operand starts at " + std::to_string(attrs.from) +
                " of it: " + show(operands[0]));
  }
  dim.extent = attrs.extent;
  if (auto why = check_type(result, symbols); !why.empty()) return fail(why);
  return ok(std::move(result));
}

Inferred ShapeRule::shift() {
  if (auto why = goes_along_one(0); !why.empty()) return fail(why);
  const Dim& dim = operands[0].dims[*operands[0].find(attrs.dims[0])];
  if (attrs.from < -dim.extent || attrs.from > dim.extent) {
    return fail(show_op() + " moves by " + std::to_string(attrs.from) + " along " + show(dim.name) +
                ", which is " + std::to_string(dim.extent) + " long: " + show(operands[0]));
  }
  return ok(operands[0]);
}

Inferred ShapeRule::concat() {
  for (std::size_t i : {0, 1}) {
    if (auto why = goes_along_one(i); !why.empty()) return fail(why);
  }
  const Type& b = operands[1];
  Type result = operands[0];
  if (b.dims.size() != result.dims.size())
    return fail(show_op() + " takes operands with the same dimensions, not " + show_operands());
  for (Dim& dim : result.dims) {
    const auto at = b.find(dim.name);
    if (!at)
      return fail(show_op() + " takes operands with the same dimensions, not " + show_operands());
    if (dim.name == attrs.dims[0]) {
      dim.extent += b.dims[*at].extent;
    } else if (auto why = same_dim(dim, b.dims[*at]); !why.empty()) {
      return fail(why);
    }
  }
  if (auto why = check_type(result, symbols); !why.empty()) return fail(why);
  return ok(std::move(result));
}

Inferred ShapeRule::rotary() {
  if (auto why = goes_along_one(0); !why.empty()) return fail(why);
  if (auto why = same_type(1, 2); !why.empty()) return fail(why);
  const Type& x = operands[0];
  const Dim& turned = x.dims[*x.find(attrs.dims[0])];
  if (turned.extent % 2 != 0)
    return fail(show_op() + " turns pairs along " + show(turned.name) + ", which is " +
                std::to_string(turned.extent) + " long: " + show(x));
  const Type& table = operands[1];
  if (!table.find(turned.name))
    return fail("the tables of " + show_op() + " have no dimension " + show(turned.name) + ": " +
                show(table));
  for (const Dim& dim : table.dims) {
    const auto at = x.find(dim.name);
    if (!at)
      return fail("the tables of " + show_op() + " have dimension " + show(dim.name) + ", which " +
                  show(x) + " has not");
    Dim expected = x.dims[*at];
    if (dim.name == turned.name) expected.extent /= 2;
    if (dim != expected)
      return fail("the tables of " + show_op() +
                  " have the dimensions of its operand, and half of " + show(turned.name) +
                  ", not " + show_operands());
  }
  return ok(x);
}

}  // namespace piper::tensor
