// Reads the settings of a train (settings_fields.h).

#include <algorithm>
#include <vector>

#include "ir/directive/parse.h"
#include "ir/directive/parse_words.h"
#include "ir/directive/settings_fields.h"

namespace piper::directive {

namespace {

/// Words and signs are those of the writer without the spaces around them.
class SettingsReader {
 public:
  explicit SettingsReader(TextReader& reader) : reader_(reader) {}

  void text(std::string_view text) {
    while (!text.empty()) reader_.expect(next_word(text));
  }
  template <std::integral Value>
  void value(Value& value, const Count& kind) {
    value = static_cast<Value>(reader_.integer(kind.expected, 0, kind.max_value));
  }
  void value(double& value, const Real& kind) {
    text(kind.before);
    value = reader_.number(kind.expected);
  }
  template <typename Enum, typename Text, std::size_t n>
  void value(Enum& value, const Word<Text, n>& kind) {
    value = choose<Enum>(reader_, kind.expected, kind.words);
  }
  void value(std::string& value, const Quoted& kind) { value = reader_.string(kind.expected); }
  void value(std::string& value, const Name& kind) { value = reader_.name(kind.expected); }
  void value(bool& value, const Flag& kind) {
    text(kind.word);
    value = true;
  }
  void value(tensor::DType& value, const ElementType&) { value = reader_.element_type(); }
  void value(auto& value, const Described&) { fields(*this, value); }
  void optional(std::string_view word, std::integral auto& value, const Count& kind) {
    if (reader_.accept(next_word(word))) this->value(value, kind);
  }
  void flag(std::string_view word, bool& value) { value = reader_.accept(next_word(word)); }
  void location(LocId& loc) { loc = reader_.location(); }

  void brackets(std::string_view owner, auto describe) {
    reader_.expect("(");
    Items items(*this, owner, ":");
    reader_.list(")", [&] { items.read(describe); });
    items.check(describe);
  }
  void block(std::string_view owner, auto describe) {
    reader_.expect("{");
    Items items(*this, owner, "");
    while (!reader_.failed() && !reader_.at("}")) items.read(describe);
    reader_.expect("}");
    items.check(describe);
  }

 private:
  /// Takes the first word of a text with spaces.
  static std::string_view next_word(std::string_view& text) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size());
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    return word;
  }

  /// A description is called once for each item and takes the one at the reader; then once more, to
  /// report an item that is missing.
  class Items {
   public:
    /// `sign` stands between name and value; empty: nothing.
    Items(SettingsReader& settings, std::string_view owner, std::string_view sign)
        : settings_(settings), reader_(settings.reader_), owner_(owner), sign_(sign) {}

    void read(auto describe) {
      const TextReader::Token where = reader_.peek();
      taken_ = false;
      extents_ = nullptr;
      describe(*this);
      if (taken_ || reader_.failed()) return;
      if (extents_ != nullptr) return extent(extents_->emplace_back());
      if (where.kind == TextReader::Kind::name)
        return reader_.fail(Code::unknown_dag_name, where, "{} has no setting `{}`", owner_,
                            where.text);
      reader_.fail_expected("a setting of " + std::string(owner_));
    }
    void check(auto describe) {
      is_read_ = true;
      if (!reader_.failed()) describe(*this);
    }

    void first(auto& value, const auto& kind) {
      if (is_read_ && seen_.empty())
        return reader_.fail(Code::malformed_dag_text, reader_.previous(), "expected {}, found `{}`",
                            kind.expected, reader_.previous().text);
      if (is_read_ || !seen_.empty()) return;
      take("");
      settings_.value(value, kind);
    }
    void item(std::string_view name, auto& value, const auto& kind, auto&... loc) {
      if (is_read_ && std::ranges::find(seen_, name) == seen_.end())
        return reader_.fail(Code::malformed_dag_text, reader_.previous(), "{} says no `{}`", owner_,
                            name);
      optional(name, value, nullptr, kind, loc...);
    }
    void optional(std::string_view name, auto& value, const auto& /*absent*/, const auto& kind,
                  auto&... loc) {
      if (is_read_ || taken_ || !reader_.at(name)) return;
      if (std::ranges::find(seen_, name) != seen_.end())
        return reader_.fail(Code::repeated_dag_name, reader_.peek(), "`{}` was set before", name);
      take(name);
      reader_.next();
      if (!sign_.empty()) reader_.expect(sign_);
      settings_.value(present(value), kind);
      (settings_.location(loc), ...);
    }
    void extents(std::vector<std::pair<Symbol, std::int64_t>>& extents) { extents_ = &extents; }

   private:
    template <typename Value>
    static Value& present(Value& value) {
      return value;
    }
    template <typename Value>
    static Value& present(std::optional<Value>& value) {
      return value.emplace();
    }
    void take(std::string_view name) {
      taken_ = true;
      seen_.push_back(name);
    }
    void extent(std::pair<Symbol, std::int64_t>& extent) {
      extent.first = reader_.symbol("a dimension");
      reader_.expect(sign_);
      settings_.value(extent.second, Count{"an extent"});
      seen_.push_back({});
    }

    SettingsReader& settings_;
    TextReader& reader_;
    const std::string_view owner_, sign_;
    std::vector<std::string_view>
        seen_;              // names of the items so far; empty of the first and extents
    bool taken_ = false;    // by this call of the description
    bool is_read_ = false;  // the list is at its end
    std::vector<std::pair<Symbol, std::int64_t>>* extents_ = nullptr;
  };

  TextReader& reader_;
};

}  // namespace

Settings parse_settings(TextReader& reader) {
  Settings settings;
  SettingsReader settings_reader(reader);
  fields(settings_reader, settings);
  settings.steps_given = !settings.train.empty();  // a schedule by itself has no steps
  return settings;
}

}  // namespace piper::directive
