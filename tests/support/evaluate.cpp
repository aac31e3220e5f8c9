#include "tests/support/evaluate.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <map>

#include "runtime/kernel_math.h"

namespace piper::test {

using namespace tensor;

namespace {

/// A coordinate per dimension name.
using At = std::map<Symbol, std::int64_t>;

/// Calls `body` for every coordinate of `dims` in row-major order, on top of `base`.
void each_at(const std::vector<Dim>& dims, const At& base,
             const std::function<void(const At&)>& body) {
  At at = base;
  std::int64_t count = 1;
  for (const Dim& dim : dims) count *= dim.extent;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t rest = i;
    for (std::size_t d = dims.size(); d-- > 0;) {
      at[dims[d].name] = rest % dims[d].extent;
      rest /= dims[d].extent;
    }
    body(at);
  }
}

std::size_t offset(const Type& type, const At& at) {
  std::size_t offset = 0;
  for (const Dim& dim : type.dims)
    offset =
        offset * static_cast<std::size_t>(dim.extent) + static_cast<std::size_t>(at.at(dim.name));
  return offset;
}

double read(const Array& array, const At& at) { return array.data[offset(array.type, at)]; }
double& write(Array& array, const At& at) { return array.data[offset(array.type, at)]; }

std::vector<Dim> pick(const Type& type, const std::vector<Symbol>& names) {
  std::vector<Dim> dims;
  for (const Symbol name : names) dims.push_back(type.dims[*type.find(name)]);
  return dims;
}

std::vector<Dim> drop(const Type& type, const std::vector<Symbol>& names) {
  std::vector<Dim> dims;
  for (const Dim& dim : type.dims) {
    if (std::find(names.begin(), names.end(), dim.name) == names.end()) dims.push_back(dim);
  }
  return dims;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double normal_density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * M_PI); }
double normal_distribution(double x) { return 0.5 * (1 + std::erf(x / std::sqrt(2.0))); }

double pointwise(Op op, const std::vector<double>& x, const Attrs& attrs) {
  switch (op) {
    case Op::add: return x[0] + x[1];
    case Op::sub: return x[0] - x[1];
    case Op::mul: return x[0] * x[1];
    case Op::div: return x[0] / x[1];
    case Op::maximum: return x[0] >= x[1] ? x[0] : x[1];
    case Op::minimum: return x[0] <= x[1] ? x[0] : x[1];
    case Op::neg: return -x[0];
    case Op::scale: return x[0] * attrs.scalar;
    case Op::offset: return x[0] + attrs.scalar;
    case Op::exp: return std::exp(x[0]);
    case Op::log: return std::log(x[0]);
    case Op::sqrt: return std::sqrt(x[0]);
    case Op::rsqrt: return 1 / std::sqrt(x[0]);
    case Op::square: return x[0] * x[0];
    case Op::sin: return std::sin(x[0]);
    case Op::cos: return std::cos(x[0]);
    case Op::tanh: return std::tanh(x[0]);
    case Op::sigmoid: return sigmoid(x[0]);
    case Op::softplus: return std::max(x[0], 0.0) + std::log1p(std::exp(-std::abs(x[0])));
    case Op::relu: return x[0] > 0 ? x[0] : 0;
    case Op::gelu: return x[0] * normal_distribution(x[0]);
    case Op::silu: return x[0] * sigmoid(x[0]);
    case Op::relu_grad: return x[0] > 0 ? x[1] : 0;
    case Op::gelu_grad: return x[1] * (normal_distribution(x[0]) + x[0] * normal_density(x[0]));
    case Op::silu_grad: return x[1] * (sigmoid(x[0]) + x[0] * sigmoid(x[0]) * (1 - sigmoid(x[0])));
    case Op::select_ge: return x[0] >= x[1] ? x[2] : 0;
    case Op::select_lt: return x[0] < x[1] ? x[2] : 0;
    case Op::cast:
    case Op::broadcast:
    case Op::permute: return x[0];
    case Op::fill: return attrs.scalar;
    // Evaluated by `evaluate_op` itself.
    // clang-format off
    case Op::dropout: case Op::iota: case Op::piecewise: case Op::sum: case Op::max:
    case Op::max_grad:
    case Op::softmax: case Op::softmax_grad: case Op::log_softmax: case Op::log_softmax_grad:
    case Op::rms_norm: case Op::rms_norm_grad: case Op::layer_norm: case Op::layer_norm_grad:
    case Op::cross_entropy: case Op::cross_entropy_grad: case Op::lookup: case Op::lookup_grad:
    case Op::slice: case Op::pad: case Op::shift: case Op::concat: case Op::rotary: case Op::rename:
    case Op::contract: case Op::contract_add: case Op::attend: case Op::attend_grad: break;
      // clang-format on
  }
  assert(false && "no pointwise op");
  return 0;
}

/// Position i of `x` along dims[0] goes to i + places of `y`, as far as `y` has that.
void put(const Array& x, Array& y, Symbol dim, std::int64_t places) {
  const std::int64_t extent = y.type.dims[*y.type.find(dim)].extent;
  each_at(x.type.dims, {}, [&](const At& from) {
    At to = from;
    to[dim] += places;
    if (to[dim] >= 0 && to[dim] < extent) write(y, to) = read(x, from);
  });
}

/// Element by element: (a, b) -> (a cos - b sin, b cos + a sin).
void rotary(std::span<const Array> in, Array& y, Symbol dim) {
  const std::int64_t half = y.type.dims[*y.type.find(dim)].extent / 2;
  each_at(y.type.dims, {}, [&](const At& at) {
    const bool first = at.at(dim) < half;
    At pair = at, table = at;
    pair[dim] += first ? half : -half;
    table[dim] = at.at(dim) % half;
    write(y, at) = read(in[0], at) * read(in[1], table) +
                   (first ? -1 : 1) * read(in[0], pair) * read(in[2], table);
  });
}

/// Ops along the dimension dims[0], one row at a time: `x` and `dy` (empty without) are the rows of
/// the operands.
std::vector<double> along(Op op, const std::vector<double>& x, const std::vector<double>& dy,
                          double epsilon) {
  const auto n = static_cast<double>(x.size());
  std::vector<double> y(x.size());
  double highest = -std::numeric_limits<double>::infinity(), total = 0, mean = 0, squares = 0,
         variance = 0, dot = 0, sum_dy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) highest = std::max(highest, x[i]);
  for (std::size_t i = 0; i < x.size(); ++i) {
    total += std::exp(x[i] - highest);
    mean += x[i] / n;
    squares += x[i] * x[i] / n;
    if (!dy.empty()) dot += x[i] * dy[i], sum_dy += dy[i];
  }
  for (const double v : x) variance += (v - mean) * (v - mean) / n;
  const double rms = 1 / std::sqrt(squares + epsilon),
               deviation = 1 / std::sqrt(variance + epsilon);
  double centred_dot = 0;
  for (std::size_t i = 0; i < dy.size(); ++i) centred_dot += (x[i] - mean) * dy[i];
  for (std::size_t i = 0; i < x.size(); ++i) {
    switch (op) {
      case Op::softmax: y[i] = std::exp(x[i] - highest) / total; break;
      case Op::log_softmax: y[i] = x[i] - highest - std::log(total); break;
      case Op::softmax_grad: y[i] = x[i] * (dy[i] - dot); break;
      case Op::log_softmax_grad: y[i] = dy[i] - std::exp(x[i]) * sum_dy; break;
      case Op::rms_norm: y[i] = x[i] * rms; break;
      case Op::rms_norm_grad: y[i] = rms * (dy[i] - x[i] * rms * rms * dot / n); break;
      case Op::layer_norm: y[i] = (x[i] - mean) * deviation; break;
      case Op::layer_norm_grad:
        y[i] = deviation *
               (dy[i] - sum_dy / n - (x[i] - mean) * deviation * deviation * centred_dot / n);
        break;
      default: assert(false && "no op along a dimension");
    }
  }
  return y;
}

void attend(Op op, std::span<const Array> in, std::vector<Array>& out, const Attrs& attrs) {
  const Type& q = in[0].type;
  const Type& k = in[1].type;
  const Type& v = in[2].type;
  const std::size_t rank = q.dims.size();
  const std::vector<Dim> lead(q.dims.begin(), q.dims.end() - 3);
  const Dim s = q.dims[rank - 3], h = q.dims[rank - 2], w = q.dims[rank - 1];
  const Dim t = k.dims[rank - 3], g = k.dims[rank - 2], u = v.dims[rank - 1];
  const std::int64_t per_group = h.extent / g.extent;
  each_at(lead, {}, [&](const At& base) {
    // Query and key coordinates may share names, so each is built from `base` on its own.
    const auto query = [&](std::int64_t i, std::int64_t head, Symbol name, std::int64_t j) {
      At at = base;
      at[s.name] = i, at[h.name] = head, at[name] = j;
      return at;
    };
    const auto key = [&](std::int64_t i, std::int64_t head, Symbol name, std::int64_t j) {
      At at = base;
      at[t.name] = i, at[g.name] = head / per_group, at[name] = j;
      return at;
    };
    for (std::int64_t head = 0; head < h.extent; ++head) {
      for (std::int64_t i = 0; i < s.extent; ++i) {
        std::vector<double> score(static_cast<std::size_t>(t.extent),
                                  -std::numeric_limits<double>::infinity());
        const std::int64_t last = attrs.causal ? i + 1 : t.extent;
        double highest = -std::numeric_limits<double>::infinity(), total = 0;
        for (std::int64_t j = 0; j < last; ++j) {
          double dot = 0;
          for (std::int64_t c = 0; c < w.extent; ++c)
            dot += read(in[0], query(i, head, w.name, c)) * read(in[1], key(j, head, w.name, c));
          score[static_cast<std::size_t>(j)] = dot * attrs.scalar;
          highest = std::max(highest, dot * attrs.scalar);
        }
        for (std::int64_t j = 0; j < last; ++j)
          total += std::exp(score[static_cast<std::size_t>(j)] - highest);
        const auto weight = [&](std::int64_t j) {
          return std::exp(score[static_cast<std::size_t>(j)] - highest) / total;
        };
        if (op == Op::attend) {
          for (std::int64_t c = 0; c < u.extent; ++c) {
            double mixed = 0;
            for (std::int64_t j = 0; j < last; ++j)
              mixed += weight(j) * read(in[2], key(j, head, u.name, c));
            write(out[0], query(i, head, u.name, c)) = mixed;
          }
          At row = base;
          row[h.name] = head, row[s.name] = i;
          write(out[1], row) = highest + std::log(total);
          continue;
        }
        const Array& dout = in[5];
        double mean = 0;
        std::vector<double> dweight(static_cast<std::size_t>(last));
        for (std::int64_t j = 0; j < last; ++j) {
          for (std::int64_t c = 0; c < u.extent; ++c) {
            const double d = read(dout, query(i, head, u.name, c));
            dweight[static_cast<std::size_t>(j)] += d * read(in[2], key(j, head, u.name, c));
            write(out[2], key(j, head, u.name, c)) += weight(j) * d;
          }
          mean += weight(j) * dweight[static_cast<std::size_t>(j)];
        }
        for (std::int64_t j = 0; j < last; ++j) {
          const double dscore =
              weight(j) * (dweight[static_cast<std::size_t>(j)] - mean) * attrs.scalar;
          for (std::int64_t c = 0; c < w.extent; ++c) {
            write(out[0], query(i, head, w.name, c)) +=
                dscore * read(in[1], key(j, head, w.name, c));
            write(out[1], key(j, head, w.name, c)) +=
                dscore * read(in[0], query(i, head, w.name, c));
          }
        }
      }
    }
  });
}

}  // namespace

std::vector<Array> evaluate_op(Op op, std::span<const Array> in, std::span<const Type> results,
                               const Attrs& attrs, const DropoutMask& keeps) {
  std::vector<Array> out;
  for (const Type& type : results)
    out.push_back({type, std::vector<double>(static_cast<std::size_t>(type.elements()), 0.0)});
  Array& y = out[0];
  switch (op) {
    case Op::dropout:
      for (std::size_t i = 0; i < y.data.size(); ++i)
        y.data[i] = keeps(attrs.seed, i) ? in[0].data[i] / (1 - attrs.scalar) : 0;
      break;
    case Op::sum:
      each_at(in[0].type.dims, {}, [&](const At& at) { write(y, at) += read(in[0], at); });
      break;
    case Op::max:
      std::fill(y.data.begin(), y.data.end(), -std::numeric_limits<double>::infinity());
      each_at(in[0].type.dims, {},
              [&](const At& at) { write(y, at) = std::max(write(y, at), read(in[0], at)); });
      break;
    case Op::max_grad:
      each_at(in[1].type.dims, {}, [&](const At& row) {
        bool found = false;
        // "row-major": in the memory order of the operand.
        std::vector<Symbol> kept;
        for (const Dim& dim : in[1].type.dims) kept.push_back(dim.name);
        each_at(drop(in[0].type, kept), row, [&](const At& at) {
          if (found || read(in[0], at) != read(in[1], row)) return;
          found = true;
          write(y, at) = read(in[2], row);
        });
      });
      break;
    case Op::softmax:
    case Op::softmax_grad:
    case Op::log_softmax:
    case Op::log_softmax_grad:
    case Op::rms_norm:
    case Op::rms_norm_grad:
    case Op::layer_norm:
    case Op::layer_norm_grad: {
      const std::vector<Dim> dims = pick(in[0].type, {attrs.dims[0]});
      each_at(drop(in[0].type, attrs.dims), {}, [&](const At& row) {
        std::vector<double> x, dy;
        each_at(dims, row, [&](const At& at) {
          x.push_back(read(in[0], at));
          if (in.size() == 2) dy.push_back(read(in[1], at));
        });
        const std::vector<double> made = along(op, x, dy, attrs.scalar);
        each_at(dims, row, [&](const At& at) {
          write(y, at) = made[static_cast<std::size_t>(at.at(attrs.dims[0]))];
        });
      });
      break;
    }
    case Op::cross_entropy:
    case Op::cross_entropy_grad: {
      const std::vector<Dim> dims = pick(in[0].type, {attrs.dims[0]});
      each_at(in[1].type.dims, {}, [&](const At& row) {
        if (attrs.ignore && read(in[1], row) == *attrs.ignore) return;  // zero
        double highest = -std::numeric_limits<double>::infinity(), total = 0;
        each_at(dims, row, [&](const At& at) { highest = std::max(highest, read(in[0], at)); });
        each_at(dims, row, [&](const At& at) { total += std::exp(read(in[0], at) - highest); });
        At target = row;
        target[attrs.dims[0]] = static_cast<std::int64_t>(read(in[1], row));
        if (op == Op::cross_entropy) {
          write(y, row) = highest + std::log(total) - read(in[0], target);
          return;
        }
        each_at(dims, row, [&](const At& at) {
          const double chosen = at.at(attrs.dims[0]) == target.at(attrs.dims[0]) ? 1 : 0;
          write(y, at) = (std::exp(read(in[0], at) - highest) / total - chosen) * read(in[2], row);
        });
      });
      break;
    }
    case Op::lookup:
    case Op::lookup_grad: {
      const Type& table = op == Op::lookup ? in[0].type : attrs.shape;
      const Array& indices = op == Op::lookup ? in[1] : in[0];
      const std::vector<Dim> rest(table.dims.begin() + 1, table.dims.end());
      each_at(indices.type.dims, {}, [&](const At& row) {
        each_at(rest, row, [&](const At& at) {
          At entry;  // a name of the table's rows may be one of the indices' too
          for (const Dim& dim : rest) entry[dim.name] = at.at(dim.name);
          entry[table.dims[0].name] = static_cast<std::int64_t>(read(indices, row));
          if (op == Op::lookup) write(y, at) = read(in[0], entry);
          else write(y, entry) += read(in[1], at);
        });
      });
      break;
    }
    case Op::iota:
      for (std::size_t i = 0; i < y.data.size(); ++i)
        y.data[i] = attrs.scalar2 + attrs.scalar * static_cast<double>(i);
      break;
    case Op::piecewise: {
      std::size_t piece = 0;
      for (std::size_t i = 0; i < y.data.size(); ++i) {
        while (static_cast<std::int64_t>(i) >= attrs.pieces.ends[piece]) ++piece;
        y.data[i] = attrs.pieces.numbers[piece];
      }
      break;
    }
    case Op::slice: put(in[0], y, attrs.dims[0], -attrs.from); break;
    case Op::pad:
    case Op::shift: put(in[0], y, attrs.dims[0], attrs.from); break;
    case Op::concat:
      put(in[0], y, attrs.dims[0], 0);
      put(in[1], y, attrs.dims[0], in[0].type.dims[*in[0].type.find(attrs.dims[0])].extent);
      break;
    case Op::rotary: rotary(in, y, attrs.dims[0]); break;
    case Op::rename: y.data = in[0].data; break;
    case Op::contract_add: y.data = in[2].data; [[fallthrough]];
    case Op::contract:
      each_at(y.type.dims, {}, [&](const At& at) {
        each_at(pick(in[0].type, attrs.dims), at,
                [&](const At& inner) { write(y, at) += read(in[0], inner) * read(in[1], inner); });
      });
      break;
    case Op::attend:
    case Op::attend_grad: attend(op, in, out, attrs); break;
    default:
      each_at(y.type.dims, {}, [&](const At& at) {
        std::vector<double> x;
        for (const Array& operand : in) x.push_back(read(operand, at));
        write(y, at) = pointwise(op, x, attrs);
      });
  }
  for (Array& array : out) {
    if (tensor::wide(array.type.dtype) == DType::f32)
      std::transform(array.data.begin(), array.data.end(), array.data.begin(),
                     [](double x) { return static_cast<float>(x); });
    if (array.type.dtype == DType::bf16)
      std::transform(array.data.begin(), array.data.end(), array.data.begin(),
                     [](double x) { return piper_round_bf16(static_cast<float>(x)); });
  }
  return out;
}

void Evaluator::run() {
  std::vector<NodeId> all;
  for (std::size_t n = 0; n < graph_.nodes().size(); ++n) all.push_back(NodeId::at(n));
  run(all);
}

void Evaluator::count_targets() {
  for (const Loss& loss : graph_.losses) {
    if (!loss.mask) continue;
    const Array& targets = get(graph_.inputs[loss.mask->targets.index()].value);
    const auto ignored = std::count(targets.data.begin(), targets.data.end(),
                                    static_cast<double>(loss.mask->ignore));
    set(loss.mask->count,
        {{DType::f64, {}},
         {static_cast<double>(static_cast<std::ptrdiff_t>(targets.data.size()) - ignored)}});
  }
}

void Evaluator::run(std::span<const NodeId> nodes) {
  count_targets();
  for (const NodeId id : nodes) {
    const Node& node = graph_.node(id);
    std::vector<Array> in;
    for (const ValueId operand : graph_.operands(node)) {
      in.push_back(get(operand));
      assert(in.back().data.size() == static_cast<std::size_t>(graph_.type(operand).elements()) &&
             "an operand has no numbers");
    }
    std::vector<Type> types;
    for (std::size_t i = 0; i < node.num_results; ++i)
      types.push_back(graph_.type(graph_.result(node, i)));
    std::vector<Array> out = evaluate_op(node.op, in, types, node.attrs, keeps_);
    for (std::size_t i = 0; i < out.size(); ++i) set(graph_.result(node, i), std::move(out[i]));
  }
}

double Evaluator::total_loss() const {
  double total = 0;
  for (const Loss& loss : graph_.losses) {
    total += get(loss.sum).data[0] / (loss.mask ? std::max(1.0, get(loss.mask->count).data[0])
                                                : static_cast<double>(loss.count));
  }
  return total;
}

Array Evaluator::gradient(ParamId param) const {
  Array sum{tensor::gradient_type(graph_.type(graph_.params[param.index()].value)), {}};
  sum.data.assign(static_cast<std::size_t>(sum.type.elements()), 0.0);
  for (const ParamGrad& grad : graph_.grads) {
    if (grad.param != param) continue;
    for (std::size_t i = 0; i < sum.data.size(); ++i) sum.data[i] += get(grad.value).data[i];
  }
  return sum;
}

Array slice(const Array& array, Symbol dim, std::int64_t begin, std::int64_t extent) {
  Array part{array.type, {}};
  part.type.dims[*part.type.find(dim)].extent = extent;
  part.data.resize(static_cast<std::size_t>(part.type.elements()));
  each_at(part.type.dims, {}, [&](const At& at) {
    At from = at;
    from[dim] += begin;
    write(part, at) = read(array, from);
  });
  return part;
}

Array concatenate(std::span<const Array> parts, Symbol dim) {
  Array whole{parts[0].type, {}};
  const std::size_t position = *whole.type.find(dim);
  whole.type.dims[position].extent = 0;
  for (const Array& part : parts)
    whole.type.dims[position].extent += part.type.dims[position].extent;
  whole.data.resize(static_cast<std::size_t>(whole.type.elements()));
  std::int64_t begin = 0;
  for (const Array& part : parts) {
    each_at(part.type.dims, {}, [&](const At& at) {
      At to = at;
      to[dim] += begin;
      write(whole, to) = read(part, at);
    });
    begin += part.type.dims[position].extent;
  }
  return whole;
}

}  // namespace piper::test
