#include "frontend/sema/type.h"

namespace piper::sema {

std::string_view type_name(Type type) {
  // The first of a pair is the type, the second a list of it.
  static constexpr std::string_view kNames[][2] = {
      {"error", "[error]"},
      {"nothing", "[nothing]"},
      {"int", "[int]"},
      {"float", "[float]"},
      {"bool", "[bool]"},
      {"string", "[string]"},
      {"bytes", "[bytes]"},
      {"axis", "[axis]"},
      {"devices", "[devices]"},
      {"selector", "[selector]"},
      {"cursor", "[cursor]"},
      {"order", "[order]"},
      {"steps", "[steps]"},
      {"tensor", "[tensor]"},
      {"f64 tensor", "[f64 tensor]"},
      {"f32 tensor", "[f32 tensor]"},
      {"bf16 tensor", "[bf16 tensor]"},
      {"i64 tensor", "[i64 tensor]"},
      {"dimension", "[dimension]"},
      {"operation", "[operation]"},
      {"measure", "[measure]"},
      {"initializer", "[initializer]"},
      {"data", "[data]"},
      {"optimizer", "[optimizer]"},
      {"rate", "[rate]"},
      {"every", "[every]"},
      {"sampling", "[sampling]"},
      {"objective", "[objective]"},
      {"token type", "[token type]"},
      {"weights", "[weights]"},
      {"fallback", "[fallback]"},
      {"decay", "[decay]"},
      {"norm test", "[norm test]"},
      {"names", "[names]"},
      {"dtype", "[dtype]"},
      {"platform", "[platform]"},
      {"device", "[device]"},
      {"processor", "[processor]"},
      {"link", "[link]"},
      {"value", "list"},
      {"number", "[number]"},
  };
  static_assert(std::size(kNames) == static_cast<std::size_t>(TypeKind::number) + 1);
  return kNames[static_cast<std::size_t>(type.kind)][type.list ? 1 : 0];
}

}  // namespace piper::sema
