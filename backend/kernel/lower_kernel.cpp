#include "backend/kernel/lower_kernel.h"

#include <algorithm>
#include <cctype>

#include "backend/kernel/loops.h"
#include "backend/kernel/lowering.h"
#include "backend/kernel/schedule_passes.h"
#include "llvm/Support/ErrorHandling.h"
#include "runtime/kernel_math.h"

namespace piper::backend {

using tensor::DType;
using tensor::Node;
using tensor::Op;
using tensor::ValueId;

std::string short_name(std::string_view name) {
  // Components that begin with a letter are names; the numbers between them count calls.
  std::vector<std::string> words;
  std::string word;
  for (std::size_t i = 0; i <= name.size(); ++i) {
    const char c = i < name.size() ? name[i] : '.';
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      word += c;
    } else if (!word.empty()) {
      if (std::isalpha(static_cast<unsigned char>(word[0])) != 0) words.push_back(word);
      word.clear();
    }
  }
  if (words.empty()) return "value";
  const std::string last = words.back();
  // An adjoint is named by its value: `d.block.3.mlp.0.up.contract` -> `d_up`.
  if (words.size() > 2 && words[0] == "d") return "d_" + words[words.size() - 2];
  return last;
}

void Lowering::choose_loops() {
  // The memory order of one value that has every axis decides the order of loops.
  Space all = step_.rows;
  all.insert(all.end(), step_.columns.begin(), step_.columns.end());
  std::sort(all.begin(), all.end());
  std::vector<Axis> reference;
  int best = -1;
  for (int i : step_.items) {
    const Item& item = fusion_.items[static_cast<std::size_t>(i)];
    if (item.space != all) continue;
    const int rank = item.kind == Item::Kind::scatter                                    ? 3
                     : item.kind == Item::Kind::along || item.kind == Item::Kind::gather ? 2
                                                                                         : 1;
    if (rank <= best) continue;
    best = rank;
    ValueId value = item.result;
    if (!item.node.valid()) {
      value = body_.outputs[static_cast<std::size_t>(item.port)].value;
    } else if (item.kind == Item::Kind::scatter) {
      value = graph_.operands(graph_.node(item.node))[1];
    } else if (item.kind == Item::Kind::along || item.kind == Item::Kind::sum) {
      value = graph_.operands(graph_.node(item.node))[0];
    }
    reference.assign(axes_.of(value).begin(), axes_.of(value).end());
  }
  columns_ = step_.columns;
  if (!step_.fixed && !reference.empty()) {
    // The innermost loop that is one; a sum over it reduces rows.
    Axis last = reference.back();
    for (Axis axis : reference) {
      if (axes_.extent(axis) > 1) last = axis;
    }
    columns_ = {last};
  }
  for (const bool column : {false, true}) {
    for (Axis axis : reference) {
      if (axes_.extent(axis) == 1 ||
          std::binary_search(columns_.begin(), columns_.end(), axis) != column)
        continue;
      loops_.push_back(axis);
      (column ? kernel_.columns : kernel_.rows).push_back(axes_.extent(axis));
    }
    if (!column) num_rows_ = loops_.size();
  }
}

Access Lowering::access(BufferIndex buffer, std::span<const Axis> axes) const {
  Access access;
  access.buffer = buffer;
  access.strides.assign(loops_.size(), 0);
  std::int64_t stride = 1;
  for (std::size_t d = axes.size(); d-- > 0;) {
    const auto loop = std::find(loops_.begin(), loops_.end(), axes[d]);
    if (loop != loops_.end())
      access.strides[static_cast<std::size_t>(loop - loops_.begin())] = stride;
    stride *= axes_.extent(axes[d]);
  }
  return access;
}

Lowering::Id Lowering::add(Statement s) {
  if (!is_effect(s.code)) {
    // Equal statements are one.
    for (std::size_t i = 0; i < kernel_.statements.size(); ++i) {
      const Statement& t = kernel_.statements[i];
      if (t.code == s.code && t.dtype == s.dtype &&
          std::equal(t.operands, t.operands + 3, s.operands) &&
          piper_bits(t.scalar) == piper_bits(s.scalar) && t.key == s.key && t.ignore == s.ignore &&
          t.brief == s.brief && t.access.buffer == s.access.buffer &&
          t.access.strides == s.access.strides && t.access.offset == s.access.offset &&
          t.access.guard == s.access.guard && t.access.index == s.access.index &&
          t.access.index_stride == s.access.index_stride && t.interval == s.interval &&
          t.element_strides == s.element_strides && t.sample_strides == s.sample_strides &&
          t.pieces == s.pieces) {
        return static_cast<Id>(i);
      }
    }
    s.row = is_row_statement(kernel_, s, num_rows_);
  }
  s.op = static_cast<std::int32_t>(kernel_.ops.size()) - 1;
  kernel_.statements.push_back(std::move(s));
  return static_cast<Id>(kernel_.statements.size()) - 1;
}

bool Lowering::is_rounded(Id id) const {
  const Statement& s = kernel_.statements[static_cast<std::size_t>(id)];
  const auto operands = [&] {
    return std::all_of(s.operands, s.operands + 3,
                       [&](Id each) { return each < 0 || is_rounded(each); });
  };
  switch (s.code) {
    case Code::round: return true;
    case Code::load: return tensor::is_narrow(buffers_.at(s.access.buffer).dtype) && operands();
    case Code::constant:
      return s.dtype == DType::f32 &&
             static_cast<double>(piper_round_bf16(static_cast<float>(s.scalar))) == s.scalar;
    case Code::neg:
    case Code::maximum:
    case Code::minimum:
    case Code::relu:
    case Code::relu_grad:
    case Code::row_max: return operands();
    default: return false;
  }
}

Lowering::Id Lowering::rounded(Id a, DType dtype) {
  if (!tensor::is_narrow(dtype) || is_rounded(a)) return a;
  Statement s;
  s.code = Code::round;
  s.dtype = dtype_of(a);
  s.operands[0] = a;
  s.name = kernel_.statements[static_cast<std::size_t>(a)].name;
  return add(std::move(s));
}

Lowering::Id Lowering::load(ValueId memory, std::span<const Axis> axes) {
  Statement s;
  s.code = Code::load;
  s.dtype = tensor::wide(graph_.type(memory).dtype);
  s.access = access(buffers_.of(memory), axes);
  s.name = name(memory);
  return add(std::move(s));
}

Lowering::Id Lowering::value(ValueId operand) {
  if (const auto number = axes_.constant(operand))
    return constant(tensor::wide(graph_.type(operand).dtype), *number);
  const ValueId source = axes_.source(operand);
  if (const auto found = defined_.find(source); found != defined_.end()) return found->second;
  return load(axes_.memory(source), axes_.of(source));
}

void Lowering::store(BufferIndex buffer, std::span<const Axis> axes, Id id) {
  Statement s;
  s.code = Code::store;
  s.dtype = dtype_of(id);
  s.operands[0] = id;
  s.access = access(buffer, axes);
  // A column value without a column stride: columns of extent 1.
  s.row = gives_row_value(kernel_.statements[static_cast<std::size_t>(id)]) &&
          std::all_of(s.access.strides.begin() + static_cast<std::ptrdiff_t>(num_rows_),
                      s.access.strides.end(), [](std::int64_t stride) { return stride == 0; });
  add(std::move(s));
}

void Lowering::define(ValueId result, Id id) {
  id = rounded(id, graph_.type(result).dtype);
  if (axes_.source(result) == result) defined_[result] = id;
  Statement& s = kernel_.statements[static_cast<std::size_t>(id)];
  if (s.code != Code::load && s.code != Code::constant) s.name = name(result);
  if (buffers_.needed(result)) store(buffers_.of(result), axes_.of(result), id);
}

Lowering::Id Lowering::pointwise(const Item& item) {
  const Node& node = graph_.node(item.node);
  const auto operands = graph_.operands(node);
  const Op op_kind = node.op;
  if (axes_.constant(item.result)) return value(item.result);
  Id ids[3] = {-1, -1, -1};
  for (std::size_t i = 0; i < operands.size(); ++i) ids[i] = value(operands[i]);
  const std::string label = name(item.result);
  switch (op_kind) {
    case Op::add: return op(Code::add, label, ids[0], ids[1]);
    case Op::sub: return op(Code::sub, label, ids[0], ids[1]);
    case Op::mul: return op(Code::mul, label, ids[0], ids[1]);
    case Op::div: return op(Code::div, label, ids[0], ids[1]);
    case Op::maximum: return op(Code::maximum, label, ids[0], ids[1]);
    case Op::minimum: return op(Code::minimum, label, ids[0], ids[1]);
    case Op::neg: return op(Code::neg, label, ids[0]);
    case Op::scale: return op(Code::mul, label, ids[0], number(ids[0], node.attrs.scalar));
    case Op::offset: return op(Code::add, label, ids[0], number(ids[0], node.attrs.scalar));
    case Op::exp: return op(Code::exp, label, ids[0]);
    case Op::log: return op(Code::log, label, ids[0]);
    case Op::sqrt: return op(Code::sqrt, label, ids[0]);
    case Op::rsqrt: return op(Code::rsqrt, label, ids[0]);
    case Op::square: return op(Code::square, label, ids[0]);
    case Op::sin: return op(Code::sin, label, ids[0]);
    case Op::cos: return op(Code::cos, label, ids[0]);
    case Op::tanh: return op(Code::tanh, label, ids[0]);
    case Op::sigmoid: return op(Code::sigmoid, label, ids[0]);
    case Op::softplus: return op(Code::softplus, label, ids[0]);
    case Op::relu: return op(Code::relu, label, ids[0]);
    case Op::gelu: return op(Code::gelu, label, ids[0]);
    case Op::silu: return op(Code::silu, label, ids[0]);
    case Op::relu_grad: return op(Code::relu_grad, label, ids[0], ids[1]);
    case Op::gelu_grad: return op(Code::gelu_grad, label, ids[0], ids[1]);
    case Op::silu_grad: return op(Code::silu_grad, label, ids[0], ids[1]);
    case Op::select_ge: return op(Code::select_ge, label, ids[0], ids[1], ids[2]);
    case Op::select_lt: return op(Code::select_lt, label, ids[0], ids[1], ids[2]);
    case Op::cast: return cast(ids[0], tensor::wide(node.attrs.dtype));
    case Op::dropout: {
      Statement s;
      s.code = Code::dropout;
      s.dtype = dtype_of(ids[0]);
      s.operands[0] = ids[0];
      s.scalar = node.attrs.scalar;
      const std::string_view seed = graph_.context().text(node.attrs.seed);
      s.key = piper_name_hash(seed.data(), seed.size());
      s.name = label;
      dropout_strides(s, item.result);
      return add(std::move(s));
    }
    case Op::iota: {
      const Id step = op(Code::mul, "ramp",
                         position(axes_.of(item.result)[0], tensor::wide(node.attrs.shape.dtype)),
                         constant(tensor::wide(node.attrs.shape.dtype), node.attrs.scalar));
      return op(Code::add, label, step, number(step, node.attrs.scalar2));
    }
    case Op::piecewise: {
      Statement s = walk_along(axes_.of(item.result)[0]);
      s.code = Code::piecewise;
      s.dtype = tensor::wide(node.attrs.shape.dtype);
      s.pieces = node.attrs.pieces;
      s.name = label;
      return add(std::move(s));
    }
    case Op::permute:
    case Op::broadcast:
    case Op::rename: return ids[0];
    case Op::sum:
      return ids[0];  // over nothing
                      // clang-format off
    case Op::fill: case Op::max: case Op::max_grad: case Op::softmax: case Op::softmax_grad:
    case Op::log_softmax: case Op::log_softmax_grad: case Op::rms_norm: case Op::rms_norm_grad:
    case Op::layer_norm: case Op::layer_norm_grad: case Op::cross_entropy:
    case Op::cross_entropy_grad: case Op::lookup: case Op::lookup_grad: case Op::slice:
    case Op::pad: case Op::shift: case Op::concat: case Op::rotary: case Op::contract:
    case Op::contract_add: case Op::attend: case Op::attend_grad: break;
                      // clang-format on
  }
  llvm_unreachable("no pointwise operation");
}

/// Random numbers are keyed by the sample and the position within it, in the memory order of the
/// value. A value without samples, such as a weight, has one mask per step for all uses.
void Lowering::dropout_strides(Statement& s, ValueId value) {
  const auto& dims = graph_.type(value).dims;
  if (graph_.type(value).samples() != nullptr) s.interval = buffers_.interval("sample");
  s.element_strides.assign(loops_.size(), 0);
  s.sample_strides.assign(loops_.size(), 0);
  std::int64_t element = 1, sample = 1;
  for (std::size_t d = dims.size(); d-- > 0;) {
    const auto loop = std::find(loops_.begin(), loops_.end(), axes_.of(value)[d]);
    auto& strides = dims[d].sampled ? s.sample_strides : s.element_strides;
    std::int64_t& stride = dims[d].sampled ? sample : element;
    if (loop != loops_.end()) strides[static_cast<std::size_t>(loop - loops_.begin())] = stride;
    stride *= dims[d].extent;
  }
}

void Lowering::sum(const Item& item) {
  const DType dtype = graph_.type(item.result).dtype;
  const bool scalar = graph_.type(item.result).dims.empty();
  Id x = value(graph_.operands(graph_.node(item.node))[0]);
  if (scalar) x = cast(x, DType::f64);  // long sums keep their precision
  const bool whole = is_subset(columns_, item.space);
  const bool reduces = whole && is_subset(columns_, item.summed) && !columns_.empty();
  if (reduces) x = op(Code::row_sum, scalar ? "sum" : name(item.result), x);
  if (reduces && item.summed == columns_) return define(item.result, scalar ? cast(x, dtype) : x);
  Statement s;
  s.code = scalar ? Code::total : Code::store_add;
  s.dtype = dtype;
  s.operands[0] = x;
  s.access = access(buffers_.of(item.result), axes_.of(item.result));
  s.row = reduces || !whole || columns_.empty();
  s.name = name(item.result);
  add(std::move(s));
}

void Lowering::gather(const Item& item) {
  const auto operands = graph_.operands(graph_.node(item.node));
  const ValueId table = axes_.memory(operands[0]);
  const auto rest = axes_.of(operands[0]).subspan(1);
  kernel_.checks.push_back({buffers_.of(axes_.memory(operands[1])),
                            graph_.type(operands[0]).dims[0].extent,
                            place(graph_.node(item.node))});
  Statement s;
  s.code = Code::load;
  s.dtype = tensor::wide(graph_.type(table).dtype);
  s.access = access(buffers_.of(table), rest);
  s.access.index = value(operands[1]);
  s.access.index_stride = 1;
  for (Axis axis : rest) s.access.index_stride *= axes_.extent(axis);
  s.name = name(item.result);
  define(item.result, add(std::move(s)));
}

Statement Lowering::walk_along(Axis axis) const {
  Statement s;
  s.access.strides.assign(loops_.size(), 0);
  if (const auto loop = std::find(loops_.begin(), loops_.end(), axis); loop != loops_.end())
    s.access.strides[static_cast<std::size_t>(loop - loops_.begin())] = 1;
  return s;
}

Lowering::Id Lowering::position(Axis axis, DType dtype) {
  Statement s = walk_along(axis);
  s.code = Code::position;
  s.dtype = dtype;
  s.name = "position";
  return add(std::move(s));
}

Lowering::Id Lowering::load_moved(ValueId operand, ValueId result, Symbol dim, std::int64_t places,
                                  std::int64_t first, std::int64_t end, Id otherwise) {
  const tensor::Type& from = graph_.type(operand);
  Statement s;
  s.code = Code::load;
  s.dtype = tensor::wide(from.dtype);
  s.operands[0] = otherwise;
  s.name = name(operand);
  s.access.buffer = buffers_.of(axes_.memory(operand));
  s.access.strides.assign(loops_.size(), 0);
  std::vector<std::int64_t> along(loops_.size(), 0);
  std::int64_t stride = 1;
  for (std::size_t d = from.dims.size(); d-- > 0;) {
    const Axis axis = axes_.axis(result, from.dims[d].name);
    const bool moved = from.dims[d].name == dim;
    if (moved) s.access.offset = places * stride;
    if (const auto loop = std::find(loops_.begin(), loops_.end(), axis); loop != loops_.end()) {
      const auto position = static_cast<std::size_t>(loop - loops_.begin());
      s.access.strides[position] = stride;
      if (moved) along[position] = 1;
    }
    stride *= from.dims[d].extent;
  }
  const bool everywhere = first <= 0 && end >= axes_.extent(axes_.axis(result, dim));
  if (!everywhere) s.access.guard = {std::move(along), first, end};
  return add(std::move(s));
}

void Lowering::moved(const Item& item) {
  const Node& node = graph_.node(item.node);
  const auto operands = graph_.operands(node);
  const Symbol dim = node.attrs.dims[0];
  const auto extent = [&](ValueId value) { return axes_.extent(axes_.axis(value, dim)); };
  const std::int64_t all = extent(item.result), from = node.attrs.from;
  const auto load = [&](std::size_t i, std::int64_t places, std::int64_t first, std::int64_t end,
                        Id otherwise = -1) {
    return load_moved(operands[i], item.result, dim, places, first, end, otherwise);
  };
  if (node.op == Op::slice) return define(item.result, load(0, from, 0, all));
  if (node.op == Op::pad)
    return define(item.result, load(0, -from, from, from + extent(operands[0])));
  if (node.op == Op::shift)
    return define(item.result,
                  load(0, -from, std::max<std::int64_t>(from, 0), std::min(all, all + from)));
  if (node.op == Op::concat) {
    const std::int64_t first = extent(operands[0]);
    return define(item.result, load(0, 0, 0, first, load(1, -first, first, all)));
  }
  const std::int64_t half = all / 2;
  const Id x = load(0, 0, 0, all), ahead = load(0, half, 0, half),
           behind = load(0, -half, half, all);
  const auto table = [&](std::size_t i) { return load(i, 0, 0, half, load(i, -half, half, all)); };
  const Id turned = op(Code::mul, "turned", op(Code::sub, "other", behind, ahead), table(2));
  define(item.result, op(Code::add, name(item.result), op(Code::mul, "kept", x, table(1)), turned));
}

void Lowering::scatter(const Item& item) {
  const auto operands = graph_.operands(graph_.node(item.node));
  const auto rest = axes_.of(item.result).subspan(1);
  kernel_.checks.push_back({buffers_.of(axes_.memory(operands[0])),
                            graph_.type(item.result).dims[0].extent,
                            place(graph_.node(item.node))});
  const Id dy = value(operands[1]);
  const Id index = value(operands[0]);
  Statement s;
  s.code = Code::store_add;
  s.dtype = graph_.type(item.result).dtype;
  s.operands[0] = dy;
  s.access = access(buffers_.of(item.result), rest);
  s.access.index = index;
  s.access.index_stride = 1;
  for (Axis axis : rest) s.access.index_stride *= axes_.extent(axis);
  s.row = false;
  s.name = name(item.result);
  add(std::move(s));
}

void Lowering::lower(const Item& item) {
  if (!item.node.valid()) {
    const dag::BodyPort& port = body_.outputs[static_cast<std::size_t>(item.port)];
    kernel_.ops.push_back("copy");
    kernel_.places.emplace_back();
    kernel_.values.push_back(std::string(graph_.context().text(graph_.value(port.value).name)));
    return store(buffers_.port(item.port), axes_.of(port.value), value(port.value));
  }
  // The type of an operation follows from its operand alone, so that the bits do not depend on
  // fusion.
  const auto operands = graph_.operands(graph_.node(item.node));
  brief_ = target_ != Target::cpu && !operands.empty() &&
           tensor::is_narrow(graph_.type(operands[0]).dtype);
  kernel_.ops.emplace_back(
      item.kind == Item::Kind::addend ? "copy" : tensor::info(graph_.node(item.node).op).name);
  kernel_.places.push_back(place(graph_.node(item.node)));
  kernel_.values.push_back(std::string(graph_.context().text(graph_.value(item.result).name)));
  switch (item.kind) {
    case Item::Kind::pointwise: return define(item.result, pointwise(item));
    case Item::Kind::along: return along(item);
    case Item::Kind::sum: return sum(item);
    case Item::Kind::gather: return gather(item);
    case Item::Kind::moved: return moved(item);
    case Item::Kind::scatter: return scatter(item);
    case Item::Kind::addend:
      return store(buffers_.of(item.result), axes_.of(item.result),
                   value(graph_.operands(graph_.node(item.node))[2]));
  }
}

Kernel Lowering::run() {
  choose_loops();
  for (int i : step_.items) lower(fusion_.items[static_cast<std::size_t>(i)]);
  collapse(kernel_);
  std::vector<RangeCheck> checks;
  for (const RangeCheck& check : kernel_.checks) {
    const bool known = std::any_of(checks.begin(), checks.end(), [&](const RangeCheck& c) {
      return c.buffer == check.buffer && c.bound == check.bound && c.ignore == check.ignore;
    });
    if (!known) checks.push_back(check);
  }
  kernel_.checks = std::move(checks);
  return std::move(kernel_);
}

Kernel lower_nest(const dag::Body& body, const Axes& axes, const Fusion& fusion,
                  const FusedStep& step, const StepBuffers& buffers, Target target) {
  return Lowering(body, axes, fusion, step, buffers, target).run();
}

Kernel lower_sequence(const dag::Body& body, const Axes& axes, const Fusion& fusion,
                      const FusedStep& step, const StepBuffers& buffers) {
  Kernel kernel = lower_nest(body, axes, fusion, step, buffers, Target::cpu);
  const std::int64_t columns = product(kernel.columns);
  const auto row = [&](DType dtype) { return buffers.temporary(dtype, columns, "row", "one row"); };
  schedule_passes(kernel, row, [&](BufferIndex buffer) { return buffers.at(buffer).accumulates; });
  return kernel;
}

}  // namespace piper::backend
