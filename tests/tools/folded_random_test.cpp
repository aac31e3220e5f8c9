// Folded texts distinguish different contents: one line of random texts, and of the DAG of a
// program, is changed, and the folded text must change.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <random>
#include <string>
#include <vector>

#include "frontend/views/folded_text.h"
#include "tests/tools/transcript.h"

namespace piper::test {
namespace {

using Lines = std::vector<std::string>;

constexpr int kTexts = 400;
constexpr int kChanges = 20;  // of each

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  std::size_t below(std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(engine_);
  }
  bool once_in(std::size_t times) { return below(times) == 0; }
  template <class Item>
  const Item& of(const std::vector<Item>& items) {
    return items[below(items.size())];
  }

 private:
  std::mt19937 engine_;
};

/// The operands of an operation of each layer.
enum class Source { own, before, two_before, first, input, mirror };

struct Operation {
  std::string name;
  std::vector<std::pair<Source, std::size_t>> operands;  // with which of the layer's values
};

/// Layers that are alike, by names that say so or that count through the text.
class RandomText {
 public:
  explicit RandomText(unsigned seed)
      : random_(seed),
        layers_(3 + random_.below(6)),
        counted_(random_.once_in(3)),
        stage_(1 + random_.below(layers_)) {
    const std::size_t count = 1 + random_.below(4);
    for (std::size_t i = 0; i < count; ++i) {
      Operation operation{random_.of(Lines{"add", "mul", "gelu"}), {}};
      for (std::size_t u = 0; u <= random_.below(3); ++u) {
        const Source source = static_cast<Source>(random_.below(6));
        operation.operands.emplace_back(source,
                                        random_.below(source == Source::own ? i + 1 : count + 1));
      }
      operations_.push_back(operation);
    }
  }

  Lines lines() const {
    Lines lines = {"tensor t {", "  %x = input f32[]"};
    for (std::size_t l = 0; l < layers_; ++l)
      lines.push_back("  %" + name("m", l, 0) + " = input f32[]");
    for (std::size_t l = 0; l < layers_; ++l) {
      lines.push_back("  %" + name("a", l, 0) + " = weight f32[dim: 4] \"a." + std::to_string(l) +
                      ".w\" normal(0.1)");
      for (std::size_t i = 0; i < operations_.size(); ++i) lines.push_back(line(l, i));
    }
    lines.push_back("}");
    return lines;
  }

 private:
  std::string name(const char* word, std::size_t layer, std::size_t value) const {
    if (counted_)
      return std::string(word) + "." + std::to_string(layer * (operations_.size() + 1) + value);
    return std::string(word) + "." + std::to_string(layer) + ".v" + std::string(value, 'v');
  }

  std::string operand(std::size_t layer, Source source, std::size_t value) const {
    if (source == Source::own) return name("a", layer, value);
    if (source == Source::mirror) return name("m", layers_ - 1 - layer, 0);
    const std::size_t back = source == Source::before       ? 1
                             : source == Source::two_before ? 2
                             : source == Source::first      ? layer
                                                            : layers_;
    return layer < back || (source == Source::first && layer == 0) ? "x"
                                                                   : name("a", layer - back, value);
  }

  std::string line(std::size_t layer, std::size_t i) const {
    std::string text = "  %" + name("a", layer, i + 1) + " = " + operations_[i].name + "(";
    for (const auto& [source, value] : operations_[i].operands)
      text += (text.back() == '(' ? "%" : ", %") + operand(layer, source, value);
    return text + ") : f32[dim: 4] @F region s[" + std::to_string(layer / stage_) + "].a[" +
           std::to_string(layer) + "]";
  }

  Random random_;
  std::size_t layers_;
  bool counted_;
  std::size_t stage_;
  std::vector<Operation> operations_;
};

std::string joined(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// Behind the values that the line defines.
std::size_t body(const std::string& line) {
  const std::size_t begin = line.find_first_not_of(' ');
  const std::size_t equals = line.find(" = ");
  return begin != std::string::npos && line[begin] == '%' && equals != std::string::npos ? equals
                                                                                         : 0;
}

/// Replaces a number after the definition in a line; false if it has none.
bool change_number(std::string& line, Random& random) {
  std::vector<std::size_t> places;
  for (std::size_t i = body(line) + 1; i < line.size(); ++i) {
    if (is_digit(line[i]) && !is_digit(line[i - 1])) places.push_back(i);
  }
  if (places.empty()) return false;
  const std::size_t begin = random.of(places);
  std::size_t end = begin;
  while (end < line.size() && is_digit(line[end])) ++end;
  const std::string old = line.substr(begin, end - begin);
  const std::string now = std::to_string(random.below(12));
  line.replace(begin, end - begin, now == old ? old + "1" : now);
  return true;
}

/// Another value, of a line before, for an operand of that line.
bool change_operand(Lines& lines, std::size_t number, Random& random) {
  std::string& line = lines[number];
  std::vector<std::size_t> places;
  for (std::size_t i = body(line); i < line.size(); ++i) {
    if (body(line) > 0 && line[i] == '%') places.push_back(i);
  }
  if (places.empty()) return false;
  const std::string& other = lines[1 + random.below(number - 1)];
  const std::string value = other.substr(2, other.find(' ', 2) - 2);
  const std::size_t begin = random.of(places), end = line.find_first_of(",)", begin);
  if (line.substr(begin, end - begin) == value) return false;
  line.replace(begin, end - begin, value);
  return true;
}

TEST(FoldedRandomText, ChangesWithEachOperandAndNumber) {
  std::size_t saved = 0;
  for (unsigned seed = 0; seed < kTexts; ++seed) {
    const Lines lines = RandomText(seed).lines();
    const std::string text = joined(lines), folded = views::folded(text);
    saved += static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n') -
                                      std::count(folded.begin(), folded.end(), '\n'));
    Random random(seed);
    for (int i = 0; i < kChanges; ++i) {
      Lines other = lines;
      const std::size_t number = 2 + random.below(lines.size() - 3);
      if (random.once_in(2) ? !change_operand(other, number, random)
                            : !change_number(other[number], random))
        continue;
      ASSERT_NE(views::folded(joined(other)), folded)
          << "seed " << seed << ", line " << number << ": " << other[number] << "\n"
          << text;
    }
  }
  EXPECT_GT(saved, static_cast<std::size_t>(kTexts));
}

TEST(FoldedRandomText, DagTextChangesWithEveryNumber) {
  const ToolResult dag =
      run_tool({"show", "dag", "line.pipe", "--format", "pir"}, {{"line.pipe", R"(
use std.models.mlp
use std.schedules.one_f_one_b
mesh m(p: 2)
train t = mlp(layers: 6, features: 8, hidden: 16, classes: 4) on m {
    data: synthetic(batch: 8, classes: 4)
    optim: sgd(lr: 0.1)
    steps: 2
    one_f_one_b(p, 4)
}
)"}});
  ASSERT_EQ(dag.exit_code, 0) << dag.err;
  Lines lines(1);
  for (const char c : dag.out) c == '\n' ? lines.emplace_back() : lines.back() += c;
  for (std::string& line : lines) line.resize(std::min(line.find(" #"), line.size()));
  const std::string folded = views::folded(joined(lines));
  EXPECT_LT(folded.size(), joined(lines).size());
  Random random(1);
  for (int i = 0; i < 150; ++i) {
    Lines other = lines;
    const std::size_t number = random.below(lines.size());
    if (!change_number(other[number], random)) continue;
    EXPECT_NE(views::folded(joined(other)), folded)
        << "line " << number << ": " << lines[number] << "\n"
        << other[number];
  }
}

}  // namespace
}  // namespace piper::test
