#pragma once
// What all IR values of one compilation share: names, places and layouts. Every graph and DAG refers to one context, which outlives it.

#include "ir/cancellation.h"
#include "ir/layout/layout.h"
#include "ir/location.h"
#include "ir/symbol.h"

namespace piper {

struct Context {
  SymbolTable symbols;
  LocationTable locations;
  LayoutTable layouts{symbols};
  const Cancellation* cancellation = nullptr;  // of the request that works on it; null: nobody can end it

  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Symbol symbol(std::string_view text) { return symbols.intern(text); }
  std::string_view text(Symbol symbol) const { return symbols.text(symbol); }
  /// Throws Cancelled when the request is no longer wanted.
  void poll() const { piper::poll(cancellation); }
};

}  // namespace piper
