#pragma once
// The call whose arguments contain the cursor, from the words before it, because an incomplete call
// has no end.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "frontend/lsp/request.h"
#include "frontend/parse/lexemes.h"

namespace piper::lsp {

struct CalleeParam {
  std::string name, text;  // `causal`, `causal: bool = false`
  std::string meaning;     // of one that is built in
  sema::Type type;
  bool optional = false;
};

struct Callee {
  std::string text;  // `mlp(layers: int, ...)`
  std::string doc;
  bool open = false;      // takes further names
  bool variadic = false;  // takes further values
  sema::Type rest = {};   // of either
  std::vector<CalleeParam> params;
};

struct CallAt {
  std::vector<Callee> callees;  // several if the first argument distinguishes them
  std::size_t argument = 0;     // number of the one at the cursor
  std::string argument_name;    // `along` of `along: seq`; empty: positional, or not typed yet
  std::set<std::string> named;  // the names that the call gives already
  std::size_t positional = 0;   // arguments before the cursor without a name
  bool at_begin = false;        // only an incomplete word of the argument is before the cursor
  bool opens_name = false;      // after `name:`
  bool follows_name = false;    // an argument before has a name, so this one needs one
};

std::optional<CallAt> call_at(Request& request, std::uint32_t at);

/// The declarations and builtins of that name that can be called.
std::vector<Callee> callees_of(Request& request, std::string_view name, bool method);

}  // namespace piper::lsp
