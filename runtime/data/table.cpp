#include "runtime/data/table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "runtime/data/data_file.h"

namespace piper::runtime {
namespace {

/// One field of a line, with the column of its first character, counted from 1.
struct Field {
  std::string_view text;
  std::uint32_t column = 1;
};

bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

void split(std::string_view line, bool by_commas, std::vector<Field>& fields) {
  fields.clear();
  std::size_t at = 0;
  while (true) {
    while (at < line.size() && blank(line[at])) ++at;
    if (!by_commas && at == line.size()) return;
    std::size_t end = at;
    while (end < line.size() && (by_commas ? line[end] != ',' : !blank(line[end]))) ++end;
    fields.push_back({trimmed(line.substr(at, end - at)), static_cast<std::uint32_t>(at + 1)});
    if (end == line.size()) return;
    at = by_commas ? end + 1 : end;
  }
}

template <typename Number>
bool parse(std::string_view text, Number& value) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && rest == text.data() + text.size() && !text.empty();
}

class TableReader {
 public:
  TableReader(const std::string& path, const Text& text, Failure& failure)
      : path_(path),
        rest_(reinterpret_cast<const char*>(text.data()), text.size()),
        failure_(failure) {
    if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);
  }

  std::shared_ptr<const Table> read(std::span<const TableInput> inputs) {
    if (!header() || !bind(inputs)) return nullptr;
    auto table = std::make_shared<Table>();
    for (const TableInput& input : inputs) {
      if (input.integers) {
        table->values.emplace_back(std::vector<std::int64_t>());
      } else {
        table->values.emplace_back(std::vector<double>());
      }
    }
    std::vector<Field> fields;
    while (next_line()) {
      split(line_, by_commas_, fields);
      if (fields.size() != columns_) {
        const Field& at = fields[std::min(fields.size(), columns_ + 1) - 1];
        fail(kDataMismatch, at,
             "the line has `" + std::to_string(fields.size()) +
                 "` numbers, and the header names `" + std::to_string(columns_) + "` columns",
             rest_.empty() && fields.size() < columns_
                 ? "the file may have been cut short"
                 : "give every sample a number for each column");
        return nullptr;
      }
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const auto add = [&](auto& values) {
          for (const std::size_t column : columns_of_[i]) {
            if (!number(fields[column], inputs[i], values)) return false;
          }
          return true;
        };
        if (!std::visit(add, table->values[i])) return nullptr;
      }
      ++table->rows;
    }
    if (table->rows > 0) return table;
    fail(kDataTooShort, {}, "there is no line of numbers below the header",
         "give at least one sample");
    return nullptr;
  }

 private:
  void fail(std::uint32_t code, const Field& field, std::string message, std::string hint) {
    failure_ = {.code = code, .message = std::move(message), .hint = std::move(hint)};
    const std::uint32_t line = std::max(number_, 1u);
    failure_.place = {.file = path_,
                      .line = line,
                      .column = field.column,
                      .end_line = line,
                      .end_column = field.column + static_cast<std::uint32_t>(field.text.size())};
  }

  /// The next line that is not blank.
  bool next_line() {
    while (!rest_.empty()) {
      const std::size_t end = std::min(rest_.find('\n'), rest_.size());
      line_ = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++number_;
      if (!trimmed(line_).empty()) return true;
    }
    return false;
  }

  bool header() {
    if (!next_line()) {
      fail(kDataTooShort, {}, "the file is empty",
           "begin it with a line that names the columns: `x.0, x.1, y`");
      return false;
    }
    by_commas_ = line_.find(',') != std::string_view::npos;
    split(line_, by_commas_, header_);
    columns_ = header_.size();
    for (std::size_t c = 0; c < columns_; ++c) {
      std::string_view name = header_[c].text;
      if (name.size() >= 2 && name.front() == '"' && name.back() == '"')
        name = name.substr(1, name.size() - 2);
      if (column_of_.emplace(std::string(name), c).second) continue;
      fail(kDataMismatch, header_[c], "two columns are called `" + shown_text(name) + "`",
           "give each column a name of its own");
      return false;
    }
    return true;
  }

  bool bind(std::span<const TableInput> inputs) {
    for (const TableInput& input : inputs) {
      std::vector<std::size_t>& columns = columns_of_.emplace_back();
      const std::string name(input.name);
      const auto own = column_of_.find(name);
      if (input.numbers == 1 && own != column_of_.end()) {
        columns.push_back(own->second);
        continue;
      }
      for (std::uint64_t k = 0; k < input.numbers; ++k) {
        const auto found = column_of_.find(name + "." + std::to_string(k));
        if (found == column_of_.end()) return lacks(input, k, own != column_of_.end());
        columns.push_back(found->second);
      }
      const auto more = column_of_.find(name + "." + std::to_string(input.numbers));
      if (more == column_of_.end()) continue;
      fail(kDataMismatch, header_[more->second],
           "the input `" + name + "` has `" + std::to_string(input.numbers) +
               "` numbers per sample, and there is a column `" + more->first + "`",
           "give the model the sizes of the file, or leave the column out");
      return false;
    }
    return true;
  }

  bool lacks(const TableInput& input, std::uint64_t k, bool alone) {
    const std::string name(input.name),
        wanted = input.numbers == 1 ? name : name + "." + std::to_string(k);
    const std::string all = input.numbers == 1 ? "`" + name + "`"
                                               : "`" + name + ".0` to `" + name + "." +
                                                     std::to_string(input.numbers - 1) + "`";
    std::string found;
    for (std::size_t c = 0; c < std::min<std::size_t>(columns_, 8); ++c)
      found += (c == 0 ? "`" : ", `") + shown_text(header_[c].text) + "`";
    fail(kDataMismatch, {line_, 1},
         "no column is called `" + wanted + "`: the first line names " + found +
             (columns_ > 8 ? " and more" : ""),
         alone ? "the input `" + name + "` has `" + std::to_string(input.numbers) +
                     "` numbers per sample, in columns " + all
               : "the input `" + name + "` is read from " +
                     (input.numbers == 1 ? "the column " : "the columns ") + all);
    return false;
  }

  template <typename Number>
  bool number(const Field& field, const TableInput& input, std::vector<Number>& values) {
    Number value{};
    const bool parsed = parse(field.text, value);
    bool good = parsed;
    if constexpr (std::is_floating_point_v<Number>)
      good = good && std::isfinite(input.single ? static_cast<float>(value) : value);
    if (!good) {
      fail(kDataMismatch, field,
           "`" + shown_text(field.text) + "` is no " +
               (input.integers           ? "integer"
                : input.single && parsed ? "finite number in f32"
                                         : "finite number"),
           "every line holds a number for each column; the input `" + std::string(input.name) +
               "` takes " + (input.integers ? "integers" : "numbers"));
      return false;
    }
    values.push_back(value);
    return true;
  }

  const std::string& path_;
  std::string_view rest_, line_;
  std::uint32_t number_ = 0;  // of the line
  bool by_commas_ = true;
  std::vector<Field> header_;
  std::size_t columns_ = 0;
  std::map<std::string, std::size_t, std::less<>> column_of_;
  std::vector<std::vector<std::size_t>> columns_of_;  // per input
  Failure& failure_;
};

}  // namespace

std::shared_ptr<const Table> read_table(const std::string& path, const Text& text,
                                        std::span<const TableInput> inputs, Failure& failure) {
  return TableReader(path, text, failure).read(inputs);
}

}  // namespace piper::runtime
