#include "tests/support/random_models.h"

#include <map>

namespace piper::test {

namespace {

std::string number(std::uint64_t value) { return std::to_string(value); }

class ModelWriter {
 public:
  ModelWriter(Random& random, const RandomModelOptions& options)
      : random_(random), options_(options), sequence_(random.chance(0.5)) {
    wide_ = random.pick(std::vector<std::uint32_t>{2, 3, 4});
    classes_ = static_cast<std::uint32_t>(random.between(3, 5));
    shape_ = sequence_ ? "tensor[batch, seq, wide]" : "tensor[batch, wide]";
  }

  RandomModel write() {
    start();
    const std::uint64_t steps = static_cast<std::uint64_t>(random_.between(1, 5)) + options_.stages;
    if (random_.chance(0.25)) memory_ = values_.back().name;
    for (std::uint64_t i = 0; i < steps; ++i) {
      step(i >= steps - options_.stages);
      if (!memory_.empty() && random_.chance(0.8)) read_memory();
    }
    finish();
    RandomModel model;
    model.text = functions_ + "model net(wide: int) {\n    input " + inputs_ + "\n" + body_ + "}\n";
    model.call = "net(wide: " + number(wide_) + ")";
    if (sequence_)
      model.extents += ", seq: " + number(static_cast<std::uint64_t>(random_.between(1, 3)));
    if (integers_) model.extents += ", classes: " + number(classes_);
    for (const auto& [name, count] : calls_) {
      for (std::uint32_t i = 0; i < count; ++i) model.regions.emplace_back(name, i);
    }
    return model;
  }

 private:
  // ---- expressions
  // ---------------------------------------------------------------------------------------------------

  std::string activation(const std::string& x) {
    return random_.pick(std::vector<std::string>{"tanh", "sigmoid", "gelu", "silu", "softplus",
                                                 "relu", "sin", "cos"}) +
           "(" + x + ")";
  }
  std::string normal() {
    return " = " +
           random_.pick(std::vector<std::string>{"normal(0.4)", "uniform(0.6)", "normal(0.2)"}) +
           "\n";
  }
  std::string normed(const std::string& x) {
    return random_.chance(0.5)
               ? x
               : random_.pick(std::vector<std::string>{"layer_norm(", "rms_norm("}) + x + ")";
  }

  /// Element by element, or along the last dimension; bounded growth.
  std::string expression(std::uint32_t depth) {
    if (depth == 0)
      return random_.pick(std::vector<std::string>{"x", "gain * x", "(x + offset)", "0.5 * x"});
    const std::string a = expression(depth - 1);
    switch (random_.below(11)) {
      case 0: return activation(a);
      case 1:
        return random_.pick(std::vector<std::string>{"softmax(", "log_softmax(", "layer_norm(",
                                                     "rms_norm("}) +
               a + ")";
      case 2: return "(" + a + " - mean(" + a + "))";
      case 3: return "(" + a + " + " + expression(depth - 1) + ")";
      case 4: return "(" + a + " - " + expression(depth - 1) + ")";
      case 5: return "(" + a + ") * tanh(" + expression(depth - 1) + ")";
      // A separate factor for each: conventions about the derivative differ for equal operands.
      case 6:
        return random_.pick(std::vector<std::string>{"maximum(", "minimum("}) + a + ", 0." +
               number(21 + next_factor_++) + " * " + expression(depth - 1) + " + 0.1)";
      case 7: return "(" + a + ") / (1.5 + sqrt(square(" + expression(depth - 1) + ") + 0.5))";
      case 8: return parts(a, expression(depth - 1));
      case 9: return "(" + a + " + 0.1 * iota(" + a + ", first: -1, step: 0.75))";
      default: return "(-(" + a + ") + max(" + a + ") * log(1.0 + exp(-square(x))))";
    }
  }

  /// Parts of the last dimension, or of the sequence: ops that read elements at other positions.
  std::string parts(const std::string& a, const std::string& b) {
    const std::string cut = number(1 + random_.below(wide_ - 1)), wide = number(wide_);
    switch (random_.below(3)) {
      case 0:
        return "concat(slice(" + a + ", " + cut + ".." + wide + "), slice(" + b + ", 0.." + cut +
               "))";
      case 1:
        return "slice(pad(" + a + ", before: 1, after: 2), " +
               (random_.chance(0.5) ? "0.." + wide : "2.." + number(wide_ + 2)) + ")";
      default:
        return "shift(" + a + (random_.chance(0.5) ? ", 1" : ", -1") +
               (sequence_ && random_.chance(0.5) ? ", along: seq)" : ")");
    }
  }

  // ---- functions
  // -----------------------------------------------------------------------------------------------------

  std::string declare(const std::string& kind, const std::string& params, const std::string& body) {
    const std::string name = kind + number(next_function_++);
    functions_ += "model " + name + "(" + params + ") -> " + shape_ + " {\n" + body + "}\n";
    return name;
  }

  /// A layer of one value; `nested`: called by another layer only.
  std::string layer(bool nested) {
    const std::string inner = number(static_cast<std::uint64_t>(random_.between(2, 5)));
    std::string body;
    switch (random_.below(sequence_ ? 8 : 7)) {
      case 0:
      case 1: {
        std::string hidden = activation(normed("x") + " @ up + bias");
        if (options_.dropout && random_.chance(0.3)) hidden = "dropout(" + hidden + ", 0.25)";
        body = "    weight up[wide, inner: " + inner + "]" + normal() +
               "    weight bias[inner] = " + (random_.chance(0.5) ? "zeros" : "constant(0.1)") +
               "\n    weight down[inner, wide]" + normal() + "    return x + " + hidden +
               " @ down\n";
        break;
      }
      case 2:
        body = "    weight gate[wide, inner: " + inner + "], up[wide, inner], down[inner, wide]" +
               normal() + "    return (" +
               random_.pick(std::vector<std::string>{"tanh(x @ gate)", "sigmoid(x @ gate)",
                                                     "silu(rms_norm(x) @ gate)"}) +
               " * (x @ up)) @ down + " + (random_.chance(0.5) ? "x" : "0.5 * x") + "\n";
        break;
      case 3:
      case 4:
        body =
            "    weight gain[wide] = ones\n    weight offset[wide] = normal(0.2)\n    return gain * " +
            expression(2) + " + offset\n";
        break;
      case 5:
        body =
            "    weight w[wide, other: " + number(wide_) + "]" + normal() + "    return " +
            (random_.chance(0.5) ? "x + " : "") + "rename(" +
            activation(options_.dropout && random_.chance(0.3) ? "x @ dropout(w, 0.2)" : "x @ w") +
            ", other: wide)\n";
        break;
      case 6: {
        if (nested) {
          body = "    weight gain[wide] = ones\n    return rms_norm(x) * gain\n";
          break;
        }
        const std::string first = layer(true), second = random_.chance(0.5) ? first : layer(true);
        body = "    let y = " + first + "(x)\n    return y + 0.5 * " + second + "(y)\n";
        break;
      }
      default:
        const bool turned = (inner == "2" || inner == "4") && random_.chance(0.5);
        const std::string q = turned ? "rotary(x @ q)" : "x @ q",
                          k = turned ? "rotary(x @ k, base: 100)" : "x @ k";
        body = "    weight q[wide, heads: 2, width: " + inner +
               "], k[wide, heads, width], v[wide, heads, width]" + normal() +
               "    weight out[heads, width, wide]" + normal() + "    return x + attend(" + q +
               ", " + k + ", x @ v, causal: " + (random_.chance(0.5) ? "true" : "false") +
               ") @ out\n";
        break;
    }
    return declare(nested ? "inner" : "layer", "x: " + shape_, body);
  }

  std::string join() {
    const std::string params = "a: " + shape_ + ", b: " + shape_;
    switch (random_.below(3)) {
      case 0:
        return declare("join", params,
                       "    weight w[wide, other: " + number(wide_) + "]" + normal() +
                           "    return a + rename(tanh(b @ w), other: wide)\n");
      case 1:
        return declare("join", params,
                       "    weight gain[wide] = ones\n    return gain * a * sigmoid(b)\n");
      default:
        return declare("join", params,
                       "    return " + normed("a") + " + 0.5 * " + activation("b") + "\n");
    }
  }

  // ---- the outermost model
  // -------------------------------------------------------------------------------------------

  struct Value {
    std::string name;
    bool used = false;
  };

  void input(const std::string& text, bool integer) {
    inputs_ += (inputs_.empty() ? "" : ", ") + text;
    integers_ = integers_ || integer;
  }
  std::string call(const std::string& function, const std::string& arguments) {
    ++calls_[function];
    return function + "(" + arguments + ")";
  }
  void add(const std::string& expression) {
    const std::string name = "v" + number(values_.size());
    body_ += "    let " + name + " = " + expression + "\n";
    values_.push_back({name, false});
  }
  std::string use() {
    // The newest more often than not, so that chains grow; any other makes a branch or a skip.
    Value& value = random_.chance(0.6) ? values_.back() : values_[random_.below(values_.size())];
    value.used = true;
    return value.name;
  }

  void start() {
    const std::uint64_t kind = random_.below(3);
    if (sequence_ && kind < 2) {
      input("tokens: i64[batch, seq]", true);
      // The call renames the second.
      const std::string along = random_.chance(0.5) ? "seq" : "spot";
      functions_ += "model embed(tokens: i64[batch, " + along + "], size: int) -> tensor[batch, " +
                    along + ", wide: size] {\n    weight table[vocab: " + number(classes_) +
                    ", wide: size] = normal(0.5)\n" +
                    (kind == 0 ? "    weight position[" + along + ", wide] = normal(0.2)\n" : "") +
                    "    return lookup(table, tokens)" + (kind == 0 ? " + position" : "") + "\n}\n";
      add(call("embed", "tokens, wide"));
    } else {
      input("x: " + shape_, false);
      values_.push_back({"x", true});
    }
    if (random_.chance(0.3)) {  // a second source: two towers
      input("z: " + shape_, false);
      add(call(layer(false), "z"));
    }
    if (random_.chance(0.4)) {
      const std::string inner = number(static_cast<std::uint64_t>(random_.between(2, 4)));
      body_ += "    weight shared[wide, inner: " + inner + "]" + normal();
      tied_ = declare("tied", "x: " + shape_ + ", w: tensor[wide, inner]",
                      "    return x + tanh(x @ w) @ w\n");
      add(call(tied_, use() + ", shared"));
    }
    layers_.push_back(layer(false));
    if (!integers_) add(call(layers_.front(), use()));  // something to train
  }

  /// The newest value joined with the one that all steps read, as layers of a decoder join theirs
  /// with the result of the encoder.
  void read_memory() {
    if (reader_.empty()) reader_ = join();
    values_.back().used = true;
    add(call(reader_, values_.back().name + ", " + memory_));
  }

  std::string next_layer() {
    if (random_.chance(0.5)) layers_.push_back(layer(false));
    return random_.pick(layers_);
  }

  void step(bool mark) {
    if (mark) {
      const std::string from = use(), name = "v" + number(values_.size());
      body_ += "    var " + name + " = " + from + "\n    region stage { " + name + " = " +
               call(next_layer(), name) + " }\n";
      values_.push_back({name, false});
      return;
    }
    switch (random_.below(tied_.empty() ? 6 : 7)) {
      case 0:
      case 1: add(call(next_layer(), use())); break;
      case 2: {
        const std::string from = use(), name = "v" + number(values_.size()),
                          function = next_layer(),
                          count = number(static_cast<std::uint64_t>(random_.between(1, 3)));
        body_ += "    var " + name + " = " + from + "\n    for _l in 0.." + count + " { " + name +
                 " = " + function + "(" + name + ") }\n";
        calls_[function] += static_cast<std::uint32_t>(std::stoul(count));
        values_.push_back({name, false});
        break;
      }
      case 3:
        add(use() + (random_.chance(0.5) ? " + " : " - ") + "0.5 * " + activation(use()));
        break;
      case 4:
      case 5: {
        const std::string a = use(), b = use();
        add(call(join(), a + ", " + b));
        break;
      }
      default: add(call(tied_, use() + ", shared")); break;
    }
  }

  std::string logits(const std::string& x, bool pooled) {
    const std::string name = pooled ? "pooled_head" : "head";
    if (calls_[name] == 0) {
      const std::string lead = sequence_ && !pooled ? "batch, seq, " : "batch, ";
      functions_ += "model " + name + "(x: tensor[" + lead + "wide], size: int) -> tensor[" + lead +
                    "class: size] {\n    weight w[wide, class: size]" + normal() + "    return " +
                    normed("x") + " @ w\n}\n";
    }
    return call(name, x + ", " + number(classes_));
  }

  /// Some targets do not count; a class that no target has leaves all of them.
  std::string ignored() {
    if (random_.chance(0.5)) return "";
    return ", ignore: " + (random_.chance(0.2) ? "-1" : number(random_.below(classes_)));
  }

  void loss(const std::string& weight, const std::string& x) {
    switch (random_.below(sequence_ ? 5 : 3)) {
      case 0:
        if (!has_y_) input("y: " + shape_, false);
        has_y_ = true;
        body_ += "    loss " + weight + "square(" + x + " - y)\n";
        break;
      case 1: body_ += "    loss " + weight + "softplus(dot(" + x + ", " + x + "))\n"; break;
      case 2:
      case 3: {
        const bool pooled = sequence_ && random_.chance(0.4);
        const std::string target = !sequence_ || pooled ? "label" : "targets";
        bool& has = target == "label" ? has_label_ : has_targets_;
        if (!has) input(target + (target == "label" ? ": i64[batch]" : ": i64[batch, seq]"), true);
        has = true;
        const bool renamed = target == "targets" && random_.chance(0.3);
        body_ += "    loss " + weight + "cross_entropy(" +
                 logits(pooled ? "mean(" + x + ", along: seq)" : x, pooled) + ", " +
                 (renamed ? "rename(rename(targets, seq: spot), spot: seq)" : target) + ignored() +
                 ")\n";
        break;
      }
      default: body_ += "    loss " + weight + "mean(square(" + x + "), along: seq)\n"; break;
    }
  }

  void finish() {
    if (random_.chance(0.3)) loss("0.1 * ", use());
    // A value without a reader gets a loss, or is added to one that has a loss.
    std::string sum;
    values_.back().used = false;
    for (const Value& value : values_) {
      if (value.used) continue;
      if (&value != &values_.back() && random_.chance(0.3)) {
        loss("0.5 * ", value.name);
      } else {
        sum += (sum.empty() ? "" : " + ") + value.name;
      }
    }
    body_ += "    let out = " + sum + "\n";
    loss("", "out");
  }

  Random& random_;
  RandomModelOptions options_;
  bool sequence_;
  std::uint32_t wide_ = 4, classes_ = 5, next_function_ = 0, next_factor_ = 0;
  std::string shape_, functions_, inputs_, body_, tied_;
  std::string memory_, reader_;  // the value that all steps read, and the function that does
  std::vector<std::string> layers_;
  std::vector<Value> values_;
  std::map<std::string, std::uint32_t> calls_;  // directly inside `net`
  bool integers_ = false, has_y_ = false, has_label_ = false, has_targets_ = false;
};

}  // namespace

RandomModel random_model(Random& random, const RandomModelOptions& options) {
  return ModelWriter(random, options).write();
}

}  // namespace piper::test
