// Writes the settings of a train (settings_fields.h).

#include "ir/directive/print.h"
#include "ir/directive/settings_fields.h"
#include "ir/text/print_text.h"

namespace piper::directive {

namespace {

class SettingsWriter {
 public:
  SettingsWriter(llvm::raw_ostream& os, const Context& context, LocationText* locations)
      : os_(os), context_(context), locations_(locations) {}

  void text(std::string_view text) { os_ << text; }
  void value(std::integral auto value, const Count&) { os_ << value; }
  void value(double value, const Real& kind) {
    text(kind.before);
    print_number(os_, value);
  }
  template <typename Enum, typename Text, std::size_t n>
  void value(Enum value, const Word<Text, n>& kind) {
    text(kind.words[static_cast<std::size_t>(value)]);
  }
  void value(const std::string& value, const Quoted&) { print_string(os_, value); }
  void value(const std::string& value, const Name&) { print_name(os_, value); }
  void value(bool, const Flag& kind) { text(kind.word); }
  void value(tensor::DType value, const ElementType&) { text(tensor::dtype_name(value)); }
  void value(const auto& value, const Described&) { fields(*this, value); }
  /// Nothing for 0.
  void optional(std::string_view word, std::integral auto value, const Count& kind) {
    if (value == 0) return;
    text(word);
    this->value(value, kind);
  }
  void flag(std::string_view word, bool value) {
    if (value) text(word);
  }
  void location(LocId loc) {
    if (locations_ != nullptr) locations_->print(os_, loc);
  }

  void brackets(std::string_view, auto describe) {
    text("(");
    Items items(*this, {"", ", ", ": ", ""});
    describe(items);
    text(")");
  }
  void block(std::string_view, auto describe) {
    text(" {\n");
    Items items(*this, {"  ", "  ", " ", "\n"});
    describe(items);
    text("}\n");
  }

 private:
  struct Layout {
    std::string_view before_first, before, after_name, end;
  };

  class Items {
   public:
    Items(SettingsWriter& writer, Layout layout)
        : writer_(writer), layout_(layout), before_(layout.before_first) {}

    void first(const auto& value, const auto& kind) {
      begin();
      writer_.value(value, kind);
    }
    void item(std::string_view name, const auto& value, const auto& kind, const auto&... loc) {
      begin();
      writer_.text(name);
      writer_.text(layout_.after_name);
      writer_.value(value, kind);
      (writer_.location(loc), ...);
      writer_.text(layout_.end);
    }
    void optional(std::string_view name, const auto& value, const auto& absent, const auto& kind,
                  const auto&... loc) {
      if (value != absent) item(name, present(value), kind, loc...);
    }
    void extents(const std::vector<std::pair<Symbol, std::int64_t>>& extents) {
      for (const auto& [name, extent] : extents)
        item(name_text(writer_.context_.text(name)), extent, Count{});
    }

   private:
    template <typename Value>
    static const Value& present(const Value& value) {
      return value;
    }
    template <typename Value>
    static const Value& present(const std::optional<Value>& value) {
      return *value;
    }
    void begin() { writer_.text(std::exchange(before_, layout_.before)); }

    SettingsWriter& writer_;
    const Layout layout_;
    std::string_view before_;
  };

  llvm::raw_ostream& os_;
  const Context& context_;
  LocationText* const locations_;
};

}  // namespace

void print(const Settings& settings, llvm::raw_ostream& os, const Context& context,
           LocationText* locations) {
  os << "train ";
  SettingsWriter writer(os, context, locations);
  fields(writer, settings);
}

}  // namespace piper::directive
