// Shape rules of the library ops: matrix products and attention.

#include <algorithm>

#include "ir/tensor/infer.h"

namespace piper::tensor {

Inferred ShapeRule::contract() {
  const Type& a = operands[0];
  const Type& b = operands[1];
  if (auto why = all_floating(0, 2); !why.empty()) return fail(why);
  if (attrs.dims.empty()) return fail("`contract` of " + show_operands() + " sums nothing");
  if (auto why = all_in(attrs.dims, a); !why.empty()) return fail(why);
  if (auto why = all_in(attrs.dims, b); !why.empty()) return fail(why);
  for (const Dim& dim : a.dims) {
    if (auto at = b.find(dim.name)) {
      if (auto why = same_dim(dim, b.dims[*at]); !why.empty()) return fail(why);
    }
  }

  // Code generation calls a matrix product without copies: memory is [batched][M][K] or
  // [batched][K][M], with the groups in the same order in both.
  const GemmForm form = gemm_form(a, b, attrs.dims);
  if (!form.direct) {
    return fail(
        "the operands of `contract` do not lie as [batched][rest][summed] or [batched][summed][rest] with groups in one order: " +
        show_operands());
  }
  Type result{wide(a.dtype), form.batched};
  result.dims.insert(result.dims.end(), form.rest_a.begin(), form.rest_a.end());
  result.dims.insert(result.dims.end(), form.rest_b.begin(), form.rest_b.end());
  return ok(std::move(result));
}

Inferred ShapeRule::contract_add() {
  Inferred product = contract();
  if (!product.error.empty()) return product;
  if (operands[2] != product.types[0])
    return fail("`contract_add` adds " + show(product.types[0]) + " to " + show(operands[2]) +
                ", which is of another type");
  return product;
}

GemmForm gemm_form(const Type& a, const Type& b, std::span<const Symbol> summed) {
  GemmForm form;
  const auto is_summed = [&](Symbol name) {
    return std::find(summed.begin(), summed.end(), name) != summed.end();
  };
  std::vector<Dim> batched_b, summed_b;
  for (const Dim& dim : a.dims) {
    (is_summed(dim.name) ? form.summed
     : b.find(dim.name)  ? form.batched
                         : form.rest_a)
        .push_back(dim);
  }
  for (const Dim& dim : b.dims) {
    (is_summed(dim.name) ? summed_b : a.find(dim.name) ? batched_b : form.rest_b).push_back(dim);
  }
  // One memory order of the groups, `first` then `second` behind the batched dimensions.
  const auto lies_as = [&](const Type& type, const std::vector<Dim>& first,
                           const std::vector<Dim>& second) {
    auto at = type.dims.begin();
    for (const std::vector<Dim>* group :
         {static_cast<const std::vector<Dim>*>(&form.batched), &first, &second}) {
      if (!std::equal(group->begin(), group->end(), at)) return false;
      at += static_cast<std::ptrdiff_t>(group->size());
    }
    return true;
  };
  if (batched_b != form.batched || summed_b != form.summed) return form;
  form.a_summed_last = lies_as(a, form.rest_a, form.summed);
  form.b_summed_last = lies_as(b, form.rest_b, form.summed);
  form.direct = (form.a_summed_last || lies_as(a, form.summed, form.rest_a)) &&
                (form.b_summed_last || lies_as(b, form.summed, form.rest_b));
  return form;
}

Inferred ShapeRule::attend() {
  const Type& q = operands[0];
  const Type& k = operands[1];
  const Type& v = operands[2];
  const std::size_t rank = q.dims.size();
  if (auto why = all_floating(0, 3); !why.empty()) return fail(why);
  if (rank < 3 || k.dims.size() != rank || v.dims.size() != rank) {
    return fail(
        "`attend` takes queries, keys and values of one rank, their last three dimensions position, head and width, not " +
        show_operands());
  }
  for (const Type* type : {&k, &v}) {
    for (std::size_t i = 0; i < type->dims.size(); ++i) {
      const Dim& dim = type->dims[i];
      if (i + 3 < rank && dim != q.dims[i])
        return fail("`attend` takes equal leading dimensions, not " + show_operands());
      if (const auto at = q.find(dim.name)) {
        if (auto why = same_dim(q.dims[*at], dim); !why.empty()) return fail(why);
      }
    }
  }
  const std::size_t position = rank - 3, head = rank - 2, width = rank - 1;
  if (k.dims[position] != v.dims[position] || k.dims[head] != v.dims[head]) {
    return fail("keys and values of `attend` need the same positions and heads, and are " +
                show(k) + " and " + show(v));
  }
  if (q.dims[width] != k.dims[width])
    return fail("queries and keys of `attend` need the same width, and are " + show(q) + " and " +
                show(k));
  if (q.dims[head].extent % k.dims[head].extent != 0) {
    return fail("the query heads of `attend` must be a multiple of the key heads: " + show(q) +
                " and " + show(k));
  }
  if (attrs.causal && q.dims[position].extent != k.dims[position].extent) {
    return fail("causal `attend` takes as many keys as queries, not " + show(q) + " and " +
                show(k));
  }
  Type out = q;
  out.dims[width] = v.dims[width];
  if (auto why = check_type(out, symbols); !why.empty())
    return fail("`attend` of " + show_operands() + ": " + why);
  Type lse{wide(q.dtype), {q.dims.begin(), q.dims.begin() + static_cast<std::ptrdiff_t>(position)}};
  lse.dims.push_back(q.dims[head]);
  lse.dims.push_back(q.dims[position]);
  return ok(std::vector<Type>{std::move(out), std::move(lse)});
}

Inferred ShapeRule::attend_grad() {
  const Inferred forward = infer(Op::attend, operands.first(3), attrs, symbols);
  if (!forward.error.empty()) return fail(forward.error);
  const Type expected[] = {forward.types[0], forward.types[1], forward.types[0]};
  for (std::size_t i = 0; i < 3; ++i) {
    if (operands[3 + i] != expected[i])
      return fail("`attend_grad` expects " + show(expected[i]) + ", not " + show(operands[3 + i]));
  }
  return ok(std::vector<Type>{operands[0], operands[1], operands[2]});
}

}  // namespace piper::tensor
