#include "backend/kernel/schedule_passes.h"

#include <algorithm>
#include <map>
#include <set>

namespace piper::backend {

bool is_reduction(Code code) {
  return code == Code::row_sum || code == Code::row_max || code == Code::row_first;
}
bool is_effect(Code code) {
  return code == Code::store || code == Code::store_add || code == Code::total;
}
bool gives_row_value(const Statement& statement) {
  return statement.row || is_reduction(statement.code);
}

bool has_brief_form(Code code) {
  switch (code) {
    case Code::exp:
    case Code::tanh:
    case Code::sigmoid:
    case Code::softplus:
    case Code::gelu:
    case Code::silu:
    case Code::gelu_grad:
    case Code::silu_grad: return true;
    default: return false;
  }
}

namespace {

bool is_cheap(Code code) {
  switch (code) {
      // clang-format off
    case Code::add: case Code::sub: case Code::mul: case Code::neg: case Code::square:
    case Code::cast: case Code::round: case Code::maximum: case Code::minimum: case Code::relu:
    case Code::relu_grad: case Code::select_ge: case Code::select_lt: case Code::select_eq:
    case Code::select_other: case Code::position: return true;
    // clang-format on
    default: return false;
  }
}

class Passes {
 public:
  Passes(Kernel& kernel, const std::function<BufferIndex(tensor::DType)>& temporary,
         const std::function<bool(BufferIndex)>& accumulates)
      : kernel_(kernel),
        old_(std::move(kernel.statements)),
        temporary_(temporary),
        accumulates_(accumulates) {}

  void run() {
    assign();
    find_stores();
    sink();
    do {  // keeping a value changes the list; each round keeps at least one more
      changed_ = false;
      emit();
    } while (changed_);
  }

 private:
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  void assign() {
    for (std::size_t i = 0; i < old_.size(); ++i) {
      Statement& s = old_[i];
      s.pass = 0;
      each_operand(s, [&](std::int32_t o) {
        s.pass = std::max(s.pass, old_[at(o)].pass + (is_reduction(old_[at(o)].code) ? 1 : 0));
      });
    }
  }

  /// Moves a column statement that only later passes need to them, unless that keeps more values
  /// across passes.
  void sink() {
    std::vector<std::vector<std::int32_t>> users(old_.size());
    for (std::size_t i = 0; i < old_.size(); ++i)
      each_operand(old_[i],
                   [&](std::int32_t o) { users[at(o)].push_back(static_cast<std::int32_t>(i)); });
    for (std::size_t i = old_.size(); i-- > 0;) {
      Statement& s = old_[i];
      if (gives_row_value(s) || is_effect(s.code) || users[i].empty()) continue;
      std::int32_t first = old_[at(users[i][0])].pass;
      for (std::int32_t user : users[i]) first = std::min(first, old_[at(user)].pass);
      if (first == s.pass) continue;
      bool free = true;
      each_operand(s, [&](std::int32_t o) {
        const Statement& operand = old_[at(o)];
        if (gives_row_value(operand) || operand.code == Code::load ||
            operand.code == Code::column || stored_.contains(o))
          return;
        for (std::int32_t user : users[at(o)])
          free &= user == static_cast<std::int32_t>(i) || old_[at(user)].pass >= first;
      });
      if (free) s.pass = first;
    }
  }

  void find_stores() {
    for (std::size_t i = 0; i < old_.size(); ++i) {
      const Statement& s = old_[i];
      if (!is_effect(s.code)) continue;
      written_.insert(s.access.buffer);
      if (s.code == Code::store && !s.row && !accumulates_(s.access.buffer))
        stored_.try_emplace(s.operands[0], s.access);
    }
  }

  template <typename Visit>
  static void each_operand(const Statement& s, Visit visit) {
    for (std::int32_t o : s.operands) {
      if (o >= 0) visit(o);
    }
    if (s.access.index >= 0) visit(s.access.index);
  }

  std::int32_t append(Statement s, std::int32_t pass) {
    s.pass = pass;
    kernel_.statements.push_back(std::move(s));
    return static_cast<std::int32_t>(kernel_.statements.size()) - 1;
  }

  /// Statement `o` of the old list as an operand in `pass`.
  std::int32_t fetch(std::int32_t o, std::int32_t pass) {
    const Statement& s = old_[at(o)];
    const std::int32_t output_port = gives_row_value(s) ? -1 : pass;
    if (const auto found = placed_.find({o, output_port}); found != placed_.end())
      return found->second;
    // The remaining case: a column value of an earlier pass.
    std::int32_t made = -1;
    const bool readable = s.code == Code::load && !written_.contains(s.access.buffer);
    if (readable || s.code == Code::column) {
      made = clone(s, pass);
    } else if (const auto stored = stored_.find(o); stored != stored_.end()) {
      made = append(reload(s, stored->second), pass);
    } else if (!temporary_ || recomputable(s)) {
      made = clone(s, pass);
    } else {
      const auto [kept, is_new] = kept_.try_emplace(o);
      if (is_new) {
        kept->second.buffer = temporary_(s.dtype);
        kept->second.strides.assign(kernel_.rows.size(), 0);
        std::vector<std::int64_t> columns(kernel_.columns.size(), 1);
        for (std::size_t c = columns.size() - 1; c-- > 0;)
          columns[c] = columns[c + 1] * kernel_.columns[c + 1];
        kept->second.strides.insert(kept->second.strides.end(), columns.begin(), columns.end());
        changed_ = true;
      }
      made = append(reload(s, kept->second), pass);
    }
    placed_[{o, output_port}] = made;
    return made;
  }

  bool recomputable(const Statement& s) const {
    if (!is_cheap(s.code)) return false;
    bool simple = true;
    each_operand(s, [&](std::int32_t o) {
      const Statement& operand = old_[at(o)];
      const bool readable = operand.code == Code::load && !written_.contains(operand.access.buffer);
      simple &= gives_row_value(operand) || readable || operand.code == Code::column ||
                stored_.contains(o);
    });
    return simple;
  }

  static Statement reload(const Statement& s, const Access& access) {
    Statement load;
    load.code = Code::load;
    load.dtype = s.dtype;
    load.access = access;
    load.name = s.name;
    return load;
  }

  std::int32_t clone(Statement s, std::int32_t pass) {
    for (std::int32_t& o : s.operands) {
      if (o >= 0) o = fetch(o, pass);
    }
    if (s.access.index >= 0) s.access.index = fetch(s.access.index, pass);
    return append(std::move(s), pass);
  }

  void emit() {
    kernel_.statements.clear();
    placed_.clear();
    std::int32_t last = 0;
    kernel_.passes = 0;
    for (const Statement& s : old_) {
      last = std::max(last, s.pass);
      if (!s.row) kernel_.passes = std::max(kernel_.passes, s.pass + 1);
    }
    for (std::int32_t pass = 0; pass <= last; ++pass) {
      for (const bool row : {true, false}) {
        for (std::size_t i = 0; i < old_.size(); ++i) {
          const Statement& s = old_[i];
          if (s.pass != pass || s.row != row) continue;
          const std::int32_t o = static_cast<std::int32_t>(i);
          const std::int32_t output_port = gives_row_value(s) ? -1 : pass;
          const std::int32_t made = clone(s, pass);
          placed_[{o, output_port}] = made;
          if (const auto kept = kept_.find(o); kept != kept_.end()) {
            Statement store;
            store.code = Code::store;
            store.dtype = s.dtype;
            store.operands[0] = made;
            store.access = kept->second;
            append(std::move(store), pass);
          }
        }
      }
    }
  }

  Kernel& kernel_;
  std::vector<Statement> old_;
  const std::function<BufferIndex(tensor::DType)>& temporary_;
  const std::function<bool(BufferIndex)>& accumulates_;
  std::map<std::int32_t, Access> stored_;  // column value -> where it is stored
  std::map<std::int32_t, Access> kept_;    // column value -> its row of scratch
  std::set<BufferIndex> written_;
  // (old statement, pass or -1) -> new statement.
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> placed_;
  bool changed_ = false;
};

}  // namespace

void schedule_passes(Kernel& kernel, const std::function<BufferIndex(tensor::DType)>& temporary,
                     const std::function<bool(BufferIndex)>& accumulates) {
  Passes(kernel, temporary, accumulates).run();
}

}  // namespace piper::backend
