// Shapes at the borders of models: inputs, arguments, results.

#include <algorithm>

#include "frontend/lower/model/model_state.h"
#include "ir/tensor/builder.h"
#include "ir/tensor/infer.h"
#include "ir/diagnostics/counted.h"
#include "ir/diagnostics/suggestion.h"

namespace piper::lower {

std::string in_words_of_programs(std::string text) {
  for (std::size_t at = text.find('*'); at != std::string::npos; at = text.find('*', at)) {
    const bool mark = at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9' &&
                      at + 1 < text.size() && (text[at + 1] == ',' || text[at + 1] == ']');
    if (mark) {
      text.erase(at, 1);
    } else {
      ++at;
    }
  }
  return text;
}

bool means_classes(std::string_view extent) {
  const std::string_view known[] = {"classes"};
  return !nearest_name(extent, known).empty();
}

void ModelBuilder::State::place(SourceRange range, const Frame& frame, RegionId region) {
  evaluator.step(range, frame, kStepsOfTensor);
  const std::string& path = calls.back().path;
  build.at(region, evaluator.here(range, frame),
           path.empty() ? path : path.substr(0, path.size() - 1));
}

Value ModelBuilder::State::check(const tensor::Built& built, SourceRange range,
                                 const Frame& frame) {
  if (!built) {
    auto&& report = evaluator.fail(Code::shapes_do_not_fit, range, frame, "{}",
                                   in_words_of_programs(built.error));
    if (built.mixes_dtypes) {
      report.hint(
          "weights, and inputs declared as `tensor`, have the `dtype` of the train, here `{}`: declare every input as `tensor`, and give the train the `dtype` that you want",
          dtype_name(settings.dtype));
    }
    return {};
  }
  if (!fits(graph.type(built.value))) {
    evaluator.fail(Code::tensor_too_large, range, frame,
                   "the result `{}` has more than 2^48 elements", show(built.value));
    return {};
  }
  return Value(TensorValue{built.value});
}

bool ModelBuilder::State::fits(const tensor::Type& type) const {
  double elements = 1;
  for (const tensor::Dim& dim : type.dims) elements *= static_cast<double>(dim.extent);
  return elements <= static_cast<double>(tensor::kMaxElements);
}

tensor::DType ModelBuilder::State::dtype_of(sema::Type type) const {
  switch (type.kind) {
    case sema::TypeKind::tensor_f64:
      return own_dtype == tensor::DType::f64 ? settings.dtype : tensor::DType::f64;
    case sema::TypeKind::tensor_f32:
      return own_dtype == tensor::DType::f32 ? settings.dtype : tensor::DType::f32;
    case sema::TypeKind::tensor_bf16:
      return own_dtype == tensor::DType::bf16 ? settings.dtype : tensor::DType::bf16;
    case sema::TypeKind::tensor_i64: return tensor::DType::i64;
    default: return settings.dtype;
  }
}

namespace {

sema::Type written_type(const ast::TypeRef& type) {
  if (type.name.name == "i64") return {sema::TypeKind::tensor_i64, false};
  if (type.name.name == "f64") return {sema::TypeKind::tensor_f64, false};
  if (type.name.name == "f32") return {sema::TypeKind::tensor_f32, false};
  if (type.name.name == "bf16") return {sema::TypeKind::tensor_bf16, false};
  return {sema::TypeKind::tensor, false};
}

}  // namespace

std::optional<tensor::Type> ModelBuilder::State::input_type(const ast::Param& param, Frame& frame) {
  const directive::Data& data = *settings.data;
  const Symbol batch = evaluator.context().symbol("batch");
  tensor::Type type;
  type.dtype = dtype_of(written_type(*param.type));
  for (const ast::Dim& dim : param.type->dims) {
    const Symbol name = evaluator.context().symbol(dim.name.name);
    std::optional<std::int64_t> extent;
    if (name == batch) extent = data.batch;
    for (const auto& [known, size] : data.extents) {
      if (known == name) extent = size;
    }
    // A size beside the name, or the present value of the name: a parameter of the model, a
    // dimension of an earlier input.
    const Value& known = frame.slots[dim.name.binding];
    if (dim.size || (!known.none() && name != batch)) {
      const std::int64_t written =
          dim.size ? evaluator.eval_int(*dim.size, frame) : evaluator.to_int(known);
      if (evaluator.failed()) return std::nullopt;
      if (extent && *extent != written) {
        const bool broken = evaluator.broken();
        // An extent that inputs share is reported once.
        if (dim.size || differing_extents.insert(name.value()).second) {
          evaluator
              .fail(Code::input_extent, dim.size ? dim.size->range : dim.range, frame,
                    "the input `{}` has `{}` of {}, and the data gives {}", param.name.name,
                    dim.name.name, written, *extent)
              .related(data.loc, "the data");
        }
        if (!go_on_without_data(broken)) return std::nullopt;
      }
      extent = written;
    }
    if (!extent) {
      if (!unknown_extents.insert(name.value()).second) {
        evaluator.set_failed();
        return std::nullopt;
      }
      evaluator
          .fail(Code::input_extent, dim.range, frame,
                "the extent of `{}` of the input `{}` is not known", dim.name.name, param.name.name)
          .related(data.loc, "the data gives no `{}`", dim.name.name)
          .hint("write `{}: 64` here, or in `synthetic(...)`", dim.name.name);
      return std::nullopt;
    }
    if (*extent < 1) {
      // A mistake of the parameter that the inputs share, not of each of them.
      const bool reported = !dim.size && !zero_extents.insert(name.value()).second;
      if (reported) evaluator.set_failed();
      if (reported) return std::nullopt;
      evaluator.fail(Code::extent_not_positive, dim.range, frame,
                     "dimension `{}` of input `{}` has extent `{}`; it must be at least 1",
                     dim.name.name, param.name.name, *extent);
      return std::nullopt;
    }
    frame.slots[dim.name.binding] = Value(*extent);
    type.dims.push_back({name, *extent, name == batch});
  }
  if (type.dims.empty() || type.dims[0].name != batch) {
    evaluator
        .fail(Code::input_extent, param.range, frame,
              "the input `{}` does not start with `batch`, the dimension of the samples",
              param.name.name)
        .hint("write `{}: {}[batch, ...]`", param.name.name, param.type->name.name);
    return std::nullopt;
  }
  const bool broken = evaluator.broken();
  const bool given = gives_values(data, "the data", param, type, frame) &&
                     (!settings.held_out ||
                      (gives_values(*settings.held_out, "the held-out data", param, type, frame) &&
                       held_out_fits(param, type)));
  if (!given && !go_on_without_data(broken)) return std::nullopt;
  return type;
}

/// The type of an input is known without values, and so are the types of the model's results. False
/// when evaluation cannot go on.
bool ModelBuilder::State::go_on_without_data(bool broken_before) {
  data_fits = false;
  if (!evaluator.resume()) return false;
  if (!broken_before) evaluator.begin_independent();
  return true;
}

/// The data has values for an input of that name and type.
bool ModelBuilder::State::gives_values(const directive::Data& data, std::string_view which,
                                       const ast::Param& param, const tensor::Type& type,
                                       Frame& frame) {
  if (data.gives_windows()) {
    const bool known = param.name.name == "tokens" || param.name.name == "targets";
    if (known && type.dtype == tensor::DType::i64 && type.dims.size() == 2) return true;
    evaluator
        .fail(Code::input_not_in_data, param.range, frame, "`{}` has no input `{}` of type `{}`",
              directive::kDataNames[static_cast<std::size_t>(data.kind)], param.name.name,
              show(type))
        .related(data.loc, "{}", which)
        .hint(
            "it gives `tokens: i64[batch, seq]` and `targets: i64[batch, seq]`, the same text shifted by one {}",
            data.kind == directive::Data::Kind::bytes ? "byte" : "token");
    return false;
  }
  if (data.kind == directive::Data::Kind::arrays || type.dtype != tensor::DType::i64 ||
      data.classes != 0)
    return true;
  // One number is missing, however many inputs need it.
  if (!without_classes.insert(&data).second) {
    evaluator.set_failed();
    return false;
  }
  auto&& report =
      evaluator.fail(Code::input_not_in_data, param.range, frame,
                     "the integer input `{}` needs the number of classes", param.name.name);
  report.related(data.loc, "{}", which).hint("write `synthetic(..., classes: 10)`");
  for (const auto& [name, extent] : data.extents) {
    if (means_classes(evaluator.context().text(name)))
      report.hint("did you mean `classes: {}` by `{}: {}`?", extent, evaluator.context().text(name),
                  extent);
  }
  return false;
}

/// The held-out program is the forward part of the same order, so its samples have the same extents
/// and come in batches of the same size.
bool ModelBuilder::State::held_out_fits(const ast::Param& param, const tensor::Type& type) {
  const directive::Data& held_out = *settings.held_out;
  const Symbol batch = evaluator.context().symbol("batch");
  for (const tensor::Dim& dim : type.dims) {
    std::optional<std::int64_t> extent;
    if (dim.name == batch) extent = held_out.batch;
    for (const auto& [known, size] : held_out.extents) {
      // A window is the other dimension of its input, whatever that is called.
      if (known == dim.name || (held_out.gives_windows() && dim.name != batch)) extent = size;
    }
    if (!extent || *extent == dim.extent) continue;
    const std::string_view name = evaluator.context().text(dim.name);
    evaluator
        .fail_at(Code::input_extent, held_out.loc,
                 "the held-out data gives `{}` of {}, and the input `{}` has {}", name, *extent,
                 param.name.name, dim.extent)
        .related(settings.data->loc, "the data")
        .hint(
            "the held-out data goes through the program that was made for the data: write the same `{}`",
            name);
    return false;
  }
  return true;
}

void ModelBuilder::State::bind_shapes(const sema::Function& function, const ast::CallExpr& expr,
                                      Frame& callee, const Frame& caller) {
  ModelCall& call = calls.back();
  const auto params = function.syntax->params;
  std::vector<std::uint32_t> bound;  // slots of dimension names that have their extent
  for (std::size_t i = 0; i < params.size(); ++i) {
    const TensorValue* argument = callee.slots[i].get<TensorValue>();
    if (!argument || expr.matched[i] < 0) continue;
    const ast::Expr& written = *expr.args[static_cast<std::size_t>(expr.matched[i])].value;
    const auto dims = params[i].type->dims;
    const tensor::Type type = graph.type(argument->id);
    const auto misfit = [&](const std::string& why, bool by_dtype = false) {
      auto&& report = evaluator.fail(Code::argument_shape, written.range, caller,
                                     "`{}` does not fit the parameter `{}` of `{}`: {}",
                                     show(argument->id), params[i].name.name, function.name(), why);
      report.related(params[i].range, "the parameter");
      if (by_dtype)
        report.hint(
            "`tensor[...]` has the train's `dtype`: write it for inputs too, in place of `{}[...]`",
            tensor::dtype_name(type.dtype));
    };
    if (type.dims.size() != dims.size()) {
      return misfit("it has " + counted(type.dims.size(), "dimension") + " instead of " +
                    std::to_string(dims.size()));
    }
    if (type.dtype != dtype_of(function.params[i])) {
      return misfit(
          "its elements are no " + std::string(tensor::dtype_name(dtype_of(function.params[i]))),
          tensor::is_floating(type.dtype));
    }
    std::vector<std::pair<Symbol, Symbol>> renames;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const std::uint32_t slot = dims[d].name.binding;
      const Symbol name = evaluator.context().symbol(dims[d].name.name);
      if (name != type.dims[d].name) renames.emplace_back(type.dims[d].name, name);
      if (dims[d].size) {
        const std::int64_t size = evaluator.eval_int(*dims[d].size, callee);
        if (evaluator.failed()) return;
        if (size != type.dims[d].extent) {
          return misfit("`" + std::string(dims[d].name.name) + "` is " +
                        std::to_string(type.dims[d].extent) + " instead of " +
                        std::to_string(size));
        }
      }
      if (std::find(bound.begin(), bound.end(), slot) != bound.end()) {
        const std::int64_t size = evaluator.to_int(callee.slots[slot]);
        if (size != type.dims[d].extent) {
          return misfit("`" + std::string(dims[d].name.name) + "` is " +
                        std::to_string(type.dims[d].extent) + " here and " + std::to_string(size) +
                        " in an earlier argument");
        }
      } else {
        callee.slots[slot] = Value(type.dims[d].extent);
        bound.push_back(slot);
      }
    }
    for (const auto& [outer, inner] : renames) {
      const auto known = std::find_if(
          call.to_caller.begin(), call.to_caller.end(),
          [&, inner_name = inner](const auto& pair) { return pair.first == inner_name; });
      if (known == call.to_caller.end()) call.to_caller.emplace_back(inner, outer);
    }
    if (renames.empty()) continue;
    place(written.range, caller);
    const Value renamed = check(build.rename(argument->id, renames), written.range, caller);
    if (evaluator.failed()) return;
    callee.slots[i] = renamed;
  }
}

Value ModelBuilder::State::returned(const sema::Function& function, const Value& value,
                                    Frame& callee) {
  if (const Values* list = value.shared<Values>()) {
    Values results;
    for (const Value& element : *list) {
      results.push_back(returned(function, element, callee));
      if (evaluator.failed()) return {};
    }
    return share(std::move(results));
  }
  const TensorValue* result = value.get<TensorValue>();
  if (!result) return value;
  const SourceRange range =
      function.syntax->result ? function.syntax->result->range : function.syntax->name.range;
  const tensor::Type type = graph.type(result->id);
  if (const ast::TypeRef* declared = function.syntax->result;
      declared && declared->kind == ast::TypeKind::shaped) {
    std::string why;
    if (type.dtype != dtype_of(written_type(*declared)))
      why = "its elements are no " +
            std::string(tensor::dtype_name(dtype_of(written_type(*declared))));
    if (type.dims.size() != declared->dims.size())
      why = "it has " + counted(type.dims.size(), "dimension") + " instead of " +
            std::to_string(declared->dims.size());
    for (std::size_t d = 0; why.empty() && d < type.dims.size(); ++d) {
      const ast::Dim& dim = declared->dims[d];
      if (evaluator.context().symbol(dim.name.name) != type.dims[d].name) {
        why = "dimension " + std::to_string(d + 1) + " is `" +
              std::string(evaluator.context().text(type.dims[d].name)) + "` instead of `" +
              std::string(dim.name.name) + "`";
        continue;
      }
      if (!dim.size && dim.name.binding == ast::kUnbound) continue;
      const std::int64_t extent = dim.size ? evaluator.eval_int(*dim.size, callee)
                                           : evaluator.to_int(callee.slots[dim.name.binding]);
      if (evaluator.failed()) return {};
      if (extent != type.dims[d].extent)
        why = "`" + std::string(dim.name.name) + "` is " + std::to_string(type.dims[d].extent) +
              " instead of " + std::to_string(extent);
    }
    if (!why.empty()) {
      auto&& report =
          evaluator.fail(Code::result_shape, range, callee,
                         "`{}` returns `{}`, which differs from its declared result: {}",
                         function.name(), show(type), why);
      const bool more =
          type.dims.size() > declared->dims.size() &&
          std::all_of(declared->dims.begin(), declared->dims.end(), [&](const ast::Dim& dim) {
            return std::any_of(type.dims.begin(), type.dims.end(), [&](const tensor::Dim& own) {
              return own.name == evaluator.context().symbol(dim.name.name);
            });
          });
      if (more) {
        report.hint(
            "`a @ b` sums over the shared dimensions; `a * b` and `a + b` keep the dimensions of both");
      } else {
        report.hint("change the declared result, or `rename` a dimension of the returned value");
      }
      return {};
    }
  }
  std::vector<std::pair<Symbol, Symbol>> renames;
  for (const tensor::Dim& dim : type.dims) {
    for (const auto& [inner, outer] : calls.back().to_caller) {
      if (inner == dim.name) renames.emplace_back(inner, outer);
    }
  }
  if (renames.empty()) return value;
  place(range, callee);
  return check(build.rename(result->id, renames), range, callee);
}

Value ModelBuilder::State::stand_in(const sema::Function& function, Frame& callee) {
  const ast::TypeRef* declared = function.syntax->result;
  if (declared == nullptr || declared->kind != ast::TypeKind::shaped || !evaluator.resume()) {
    evaluator.set_failed();
    return {};
  }
  tensor::Attrs attrs;
  attrs.shape.dtype = dtype_of(written_type(*declared));
  const auto sampled = [&](Symbol name) {
    for (std::size_t i = 0; i < function.params.size(); ++i) {
      const TensorValue* argument = callee.slots[i].get<TensorValue>();
      if (argument == nullptr) continue;
      for (const tensor::Dim& dim : graph.type(argument->id).dims) {
        if (dim.name == name && dim.sampled) return true;
      }
    }
    return false;
  };
  for (const ast::Dim& dim : declared->dims) {
    const Symbol name = evaluator.context().symbol(dim.name.name);
    const Value size = dim.size                            ? evaluator.eval(*dim.size, callee)
                       : dim.name.binding == ast::kUnbound ? Value()
                                                           : callee.slots[dim.name.binding];
    if (size.none() || evaluator.to_int(size) < 1) evaluator.set_failed();
    if (evaluator.failed()) return {};
    attrs.shape.dims.push_back({name, evaluator.to_int(size), sampled(name)});
  }
  const tensor::Built built = tensor::is_floating(attrs.shape.dtype)
                                  ? build.op(tensor::Op::fill, {}, attrs)
                                  : tensor::Built();
  if (!built) {
    evaluator.set_failed();
    return {};
  }
  return returned(function, Value(TensorValue{built.value}), callee);
}

void ModelBuilder::State::look_for_pairs(std::string_view operation, const ast::Expr& left,
                                         tensor::ValueId a, tensor::ValueId b, SourceRange range,
                                         const Frame& frame) {
  const auto &a_dims = graph.type(a).dims, &b_dims = graph.type(b).dims;
  const auto beyond = [](const auto& dims, const auto& others) {
    std::vector<tensor::Dim> own;
    for (const tensor::Dim& dim : dims) {
      if (std::none_of(others.begin(), others.end(),
                       [&](const tensor::Dim& other) { return other.name == dim.name; }))
        own.push_back(dim);
    }
    return own;
  };
  const std::vector<tensor::Dim> only_a = beyond(a_dims, b_dims), only_b = beyond(b_dims, a_dims);
  const bool outer_product = operation == "*" && only_a.size() == a_dims.size();
  if (only_a.empty() || only_b.empty() || outer_product) return;
  // If a model returns the pairs, its declared type names all their dimensions.
  const auto* const returned = llvm::dyn_cast_or_null<ast::BinaryExpr>(evaluator.returning());
  if (returned != nullptr && returned->left == &left) return;
  const auto name = [&](const tensor::Dim& dim) { return evaluator.context().text(dim.name); };
  auto&& report = evaluator.warn(
      Code::all_pairs, range, frame,
      "`{}` takes `{}` and `{}`: each has a dimension that the other lacks, so every `{}` is paired with every `{}`",
      operation, show(a), show(b), name(only_a.front()), name(only_b.front()));
  if (only_a.size() == 1 && only_b.size() == 1 && only_a[0].extent == only_b[0].extent &&
      !only_a[0].sampled && !only_b[0].sampled) {
    report.hint(
        "dimensions align by name: call both `{}`, or write `rename({}, {}: {})`; if pairs are meant, a model has to return them",
        name(only_b[0]), ast::source_text(left), name(only_a[0]), name(only_b[0]));
  } else {
    report.hint(
        "dimensions align by name: `rename(x, old: new)` gives both the same name; if pairs are meant, a model has to return them");
  }
}

void ModelBuilder::State::look_for_sums(const ast::BinaryExpr& product, tensor::ValueId a,
                                        tensor::ValueId b, const Frame& frame) {
  const auto &left = graph.type(a).dims, &right = graph.type(b).dims;
  const auto sampled = [](const tensor::Dim& dim) { return dim.sampled; };
  if (std::none_of(left.begin(), left.end(), sampled) ||
      std::none_of(right.begin(), right.end(), sampled))
    return;
  const std::vector<Symbol> summed = tensor::summed_names(graph.type(a), graph.type(b));
  if (summed.size() < 2) return;
  const auto list = [&](std::span<const Symbol> names) {
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i)
      text += (i == 0                 ? "`"
               : i + 1 < names.size() ? ", `"
                                      : " and `") +
              std::string(evaluator.context().text(names[i])) + "`";
    return text;
  };
  std::vector<Symbol> batched;
  for (const tensor::Dim& dim : left) {
    if (batched.size() >= right.size() || right[batched.size()].name != dim.name) break;
    batched.push_back(dim.name);
  }
  const std::span<const Symbol> others(summed.data(), summed.size() - 1);
  const std::string dot = "dot(" + ast::source_text(*product.left) + ", " +
                          ast::source_text(*product.right) +
                          ", along: " + std::string(evaluator.context().text(summed.back())) + ")";
  std::string sum = dot;
  for (std::size_t i = others.size(); i-- > 0;)
    sum = "sum(" + sum + ", along: " + std::string(evaluator.context().text(others[i])) + ")";
  evaluator
      .warn(
          Code::leading_dimension_summed, product.op_range, frame,
          "`@` of `{}` and `{}` sums over {}: only names that lead both operands in one order are batched, here {}",
          show(a), show(b), list(summed), batched.empty() ? "none" : list(batched))
      .hint(
          "for one product per {} write `{}`, or give both operands {} after their leading names; if the sum over all of them is meant, write `{}`",
          list(others), dot, list(others), sum);
}

bool ModelBuilder::State::has_dimensions(const ast::CallExpr& expr,
                                         const sema::Signature& signature, tensor::ValueId x,
                                         Frame& frame) {
  const tensor::Type type = graph.type(x);
  std::vector<std::string_view> names;
  std::string list;
  for (const tensor::Dim& dim : type.dims) {
    names.push_back(evaluator.context().text(dim.name));
    list += (list.empty() ? "`" : ", `") + std::string(names.back()) + "`";
  }
  const auto has = [&](std::string_view name, SourceRange range) {
    if (name.empty() || std::find(names.begin(), names.end(), name) != names.end()) return true;
    const std::string_view best = nearest_name(name, names);
    auto&& report = evaluator.fail(Code::shapes_do_not_fit, range, frame,
                                   "`{}` has no dimension `{}`", show(x), name);
    if (!best.empty()) {
      report.did_you_mean(best, name);
    } else if (!names.empty()) {
      report.hint("it has {}", list);
    }
    return false;
  };
  for (std::size_t i = 0; i < signature.params.size() && i < expr.matched.size(); ++i) {
    if (!signature.params[i].type.is(sema::TypeKind::dimension)) continue;
    const std::int32_t position = expr.matched[i];
    if (position >= 0) {
      const ast::Expr& written = *expr.args[static_cast<std::size_t>(position)].value;
      if (!has(llvm::cast<ast::NameExpr>(written).name, written.range)) return false;
    } else if (names.empty()) {
      evaluator
          .fail(Code::shapes_do_not_fit, expr.args[0].range, frame,
                "this has no dimension for `{}` to work along", signature.name)
          .hint("it is one number: leave `{}` out", signature.name);
      return false;
    }
  }
  for (const std::uint32_t position : expr.rest) {
    const ast::Identifier& renamed = expr.args[position].name;
    if (!has(renamed.name, renamed.range)) return false;
  }
  return true;
}

Symbol ModelBuilder::State::dimension_argument(const ast::CallExpr& expr, std::size_t param) const {
  const std::int32_t position = expr.matched[param];
  if (position < 0) return {};
  return evaluator.context().symbol(
      llvm::cast<ast::NameExpr>(*expr.args[static_cast<std::size_t>(position)].value).name);
}

}  // namespace piper::lower
