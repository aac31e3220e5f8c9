#include "frontend/lower/evaluate/legal_sizes.h"

#include <algorithm>
#include <limits>

#include "frontend/sema/builtins.h"

namespace piper::lower {

namespace {

using llvm::dyn_cast;

/// How far from the given size another is tried, alone and beside a second one.
constexpr std::int64_t kFarAlone = 4096, kFarTogether = 48;

/// A number, or a truth value as 0 or 1; nothing for other or unknown values.
using Number = std::optional<std::int64_t>;
using Slots = std::vector<Number>;

/// Evaluates the requirements of a body on integers, apart from the evaluator: no diagnostics, no
/// steps.
class Sizes {
 public:
  Sizes(const sema::Function& function, const Slots& given) : function_(function), given_(given) {
    given_.resize(function.frame_size);
    for (std::size_t i = 0; i < params().size(); ++i) {
      const ast::Expr* const value = params()[i].default_value;
      follows_.push_back(value != nullptr && given_[i] && number(*value, given_) == given_[i]);
    }
    (void)hold(given_, &used_);
  }

  std::string nearest() const {
    if (hold(given_)) return {};
    std::vector<std::string> found;
    for (const bool axes : {false, true}) {
      for (const std::size_t param : used_) {
        if (function_.params[param].is(sema::TypeKind::axis) == axes) add_alone(param, found);
      }
      if (!found.empty()) return joined(found);
    }
    add_together(found);
    return joined(found);
  }

 private:
  std::span<const ast::Param> params() const { return function_.syntax->params; }

  void add_alone(std::size_t param, std::vector<std::string>& found) const {
    for (const std::int64_t sign : {-1, 1}) {
      for (std::int64_t distance = 1; distance <= kFarAlone; ++distance) {
        const std::int64_t value = *given_[param] + sign * distance;
        if (value < 1) {
          if (sign < 0) break;
          continue;
        }
        if (!hold(with({{param, value}}))) continue;
        found.push_back(text(param, value));
        break;
      }
    }
  }

  /// Adds the pairs with the smallest sum of both distances.
  void add_together(std::vector<std::string>& found) const {
    for (std::int64_t distance = 2; distance <= kFarTogether && found.empty(); ++distance) {
      for (std::size_t a = 0; a < used_.size(); ++a) {
        for (std::size_t b = a + 1; b < used_.size(); ++b)
          add_pairs(used_[a], used_[b], distance, found);
      }
    }
  }

  void add_pairs(std::size_t a, std::size_t b, std::int64_t distance,
                 std::vector<std::string>& found) const {
    for (std::int64_t of_a = 1; of_a < distance; ++of_a) {
      for (const std::int64_t first : {*given_[a] - of_a, *given_[a] + of_a}) {
        for (const std::int64_t second :
             {*given_[b] - (distance - of_a), *given_[b] + (distance - of_a)}) {
          if (first >= 1 && second >= 1 && hold(with({{a, first}, {b, second}})))
            found.push_back(text(a, first) + " with " + text(b, second));
        }
      }
    }
  }

  std::string text(std::size_t param, std::int64_t value) const {
    return "`" + std::string(params()[param].name.name) + "` = " + std::to_string(value);
  }

  static std::string joined(const std::vector<std::string>& found) {
    constexpr std::size_t kShown = 6;
    const std::size_t count = std::min(found.size(), kShown);
    std::string text;
    for (std::size_t i = 0; i < count; ++i)
      text += (i == 0 ? "" : i + 1 < count ? ", " : " or ") + found[i];
    return text;
  }

  Slots with(std::initializer_list<std::pair<std::size_t, std::int64_t>> changes) const {
    Slots slots = given_;
    std::vector<bool> changed(params().size());
    for (const auto& [param, value] : changes) {
      slots[param] = value;
      changed[param] = true;
    }
    for (std::size_t i = 0; i < params().size(); ++i) {
      if (follows_[i] && !changed[i]) slots[i] = number(*params()[i].default_value, slots);
    }
    return slots;
  }

  /// `read`: gets the parameters that the requirements read.
  bool hold(Slots slots, std::vector<std::size_t>* read = nullptr) const {
    read_ = read;
    const bool all = hold(*function_.syntax->body, slots);
    read_ = nullptr;
    return all;
  }

  bool hold(const ast::Block& body, Slots& slots) const {
    bool all = true;
    for (const ast::Stmt* stmt : body.statements) {
      if (const auto* let = dyn_cast<ast::LetStmt>(stmt)) {
        if (let->names.size() == 1) slots[let->names[0].binding] = number(*let->value, slots);
      } else if (const auto* require = dyn_cast<ast::RequireStmt>(stmt)) {
        all = number(*require->condition, slots).value_or(1) != 0 && all;
      } else if (const auto* conditional = dyn_cast<ast::IfStmt>(stmt)) {
        all = hold(*conditional, slots) && all;
      }
    }
    return all;
  }

  bool hold(const ast::IfStmt& conditional, Slots& slots) const {
    for (const ast::Branch& branch : conditional.branches) {
      const Number taken = number(*branch.condition, slots);
      if (!taken) return true;
      if (*taken != 0) return hold(*branch.body, slots);
    }
    return conditional.otherwise == nullptr || hold(*conditional.otherwise, slots);
  }

  Number number(const ast::Expr& expr, const Slots& slots) const {
    switch (expr.kind) {
      case ast::ExprKind::name: return local(llvm::cast<ast::NameExpr>(expr), slots);
      case ast::ExprKind::number: {
        const auto& literal = llvm::cast<ast::NumberExpr>(expr);
        return literal.is_integer && literal.unit == ast::Unit::none ? Number(literal.integer)
                                                                     : std::nullopt;
      }
      case ast::ExprKind::boolean: return llvm::cast<ast::BoolExpr>(expr).value;
      case ast::ExprKind::unary: {
        const auto& unary = llvm::cast<ast::UnaryExpr>(expr);
        const Number operand = number(*unary.operand, slots);
        if (!operand) return std::nullopt;
        if (unary.op == ast::UnaryOp::logical_not) return *operand == 0;
        return *operand == std::numeric_limits<std::int64_t>::min() ? std::nullopt
                                                                    : Number(-*operand);
      }
      case ast::ExprKind::conditional: {
        const auto& choice = llvm::cast<ast::ConditionalExpr>(expr);
        const Number condition = number(*choice.condition, slots);
        if (!condition) return std::nullopt;
        return number(*condition != 0 ? *choice.then_value : *choice.else_value, slots);
      }
      case ast::ExprKind::binary: return binary(llvm::cast<ast::BinaryExpr>(expr), slots);
      case ast::ExprKind::call: return call(llvm::cast<ast::CallExpr>(expr), slots);
      default: return std::nullopt;
    }
  }

  Number local(const ast::NameExpr& name, const Slots& slots) const {
    if (name.referent != ast::Referent::local || name.target >= slots.size()) return std::nullopt;
    const bool param = read_ != nullptr && name.target < params().size() && slots[name.target];
    if (param && std::find(read_->begin(), read_->end(), name.target) == read_->end())
      read_->push_back(name.target);
    return slots[name.target];
  }

  Number binary(const ast::BinaryExpr& expr, const Slots& slots) const {
    // Both sides, so that each parameter is found.
    const Number left = number(*expr.left, slots), right = number(*expr.right, slots);
    if (!left || !right) return std::nullopt;
    std::int64_t result = 0;
    const auto floored = [&]() -> Number {
      if (*right == 0 || (*left == std::numeric_limits<std::int64_t>::min() && *right == -1))
        return std::nullopt;
      return *left / *right - (*left % *right != 0 && (*left < 0) != (*right < 0) ? 1 : 0);
    };
    switch (expr.op) {
      case ast::BinaryOp::multiply:
        return __builtin_mul_overflow(*left, *right, &result) ? std::nullopt : Number(result);
      case ast::BinaryOp::add:
        return __builtin_add_overflow(*left, *right, &result) ? std::nullopt : Number(result);
      case ast::BinaryOp::subtract:
        return __builtin_sub_overflow(*left, *right, &result) ? std::nullopt : Number(result);
      case ast::BinaryOp::divide: return floored();
      case ast::BinaryOp::remainder: {
        const Number quotient = floored();
        return quotient ? Number(*left - *quotient * *right) : std::nullopt;
      }
      case ast::BinaryOp::equal: return *left == *right;
      case ast::BinaryOp::not_equal: return *left != *right;
      case ast::BinaryOp::less: return *left < *right;
      case ast::BinaryOp::less_equal: return *left <= *right;
      case ast::BinaryOp::greater: return *left > *right;
      case ast::BinaryOp::greater_equal: return *left >= *right;
      case ast::BinaryOp::logical_and: return *left != 0 && *right != 0;
      case ast::BinaryOp::logical_or: return *left != 0 || *right != 0;
      default: return std::nullopt;
    }
  }

  Number call(const ast::CallExpr& expr, const Slots& slots) const {
    if (expr.referent != ast::Referent::builtin || expr.args.empty()) return std::nullopt;
    std::vector<std::int64_t> values;
    for (const ast::Arg& arg : expr.args) {
      const Number value = number(*arg.value, slots);
      if (!value) return std::nullopt;
      values.push_back(*value);
    }
    switch (static_cast<sema::Builtin>(expr.target)) {
      case sema::Builtin::number_max: return *std::max_element(values.begin(), values.end());
      case sema::Builtin::number_min: return *std::min_element(values.begin(), values.end());
      default: return std::nullopt;
    }
  }

  const sema::Function& function_;
  Slots given_;
  std::vector<bool> follows_;      // parameters whose value is their default
  std::vector<std::size_t> used_;  // by requirements
  mutable std::vector<std::size_t>* read_ = nullptr;
};

}  // namespace

std::string nearest_legal_sizes(const sema::Function& function,
                                const std::vector<std::optional<std::int64_t>>& given) {
  return Sizes(function, given).nearest();
}

}  // namespace piper::lower
