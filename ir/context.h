#pragma once
// Tables shared by all IR values of one compilation: names, places and layouts. Every graph and DAG
// refers to one context, which outlives it.

#include "ir/cancellation.h"
#include "ir/layout/layout.h"
#include "ir/location.h"
#include "ir/symbol.h"

namespace piper {

struct Context {
  SymbolTable symbols;
  LocationTable locations;
  LayoutTable layouts{symbols};
  // of the current request; null: it cannot be cancelled
  const Cancellation* cancellation = nullptr;

  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Symbol symbol(std::string_view text) { return symbols.intern(text); }
  std::string_view text(Symbol symbol) const { return symbols.text(symbol); }
  /// Throws Cancelled if the request was cancelled.
  void poll() const { piper::poll(cancellation); }
};

}  // namespace piper
