#pragma once
// Fusion: groups the ops of a body into loop nests and orders loop nests and library calls.
//
// Greedy in graph order: an op joins the loop nests that make its operands, and those that read the
// same operands, if one pair of row and column axes fits all of them and no path through another
// step leads back. Values summed over rows are complete only after the nest, so their users are in
// other nests.
//
//   x, y -> add -> rms_norm -> mul(gain)      one nest: rows [batch, seq], columns [dim]
//           '-> sum over batch, seq           joins it: adds row after row

#include <vector>

#include "backend/kernel/axes.h"
#include "backend/target.h"
#include "ir/dag/body.h"

namespace piper::backend {

/// One op (or copy) that a loop nest executes.
struct Item {
  enum class Kind : std::uint8_t {
    pointwise,  // also copies
    along,      // reads and writes whole rows along `columns`
    sum,        // over `summed`
    gather,     // lookup
    scatter,    // lookup_grad
    moved,      // reads its operands at other positions than its own
    addend,     // copies the addend of a product into the product's result
  } kind = Kind::pointwise;
  tensor::NodeId node;                 // invalid: a copy to `port`
  tensor::ValueId result;              // invalid for copies to a port
  int port = -1;                       // copies: the output port
  Space space;                         // loop axes
  Space columns;                       // the column axes that it needs; empty: any
  Space summed;                        // sum
  std::vector<int> registers;          // items whose results it can read from registers
  std::vector<int> memory;             // items whose results it reads from memory
  std::vector<int> calls;              // calls whose results it reads
  std::vector<tensor::ValueId> reads;  // sources of its operands, constants left out
};

struct LibraryNode {
  tensor::NodeId node;
  std::vector<int> items;  // makers of its operands
  std::vector<int> calls;
  // The only reader of its result, a cast to bf16 whose result it gives instead; or invalid.
  tensor::ValueId rounded;
};

/// A step: a loop nest of items (in graph order), or a library call.
struct FusedStep {
  int call = -1;
  std::vector<int> items;
  Space rows, columns;
  bool fixed = false;  // the items determine the columns; else the lowering chooses them
};

struct Fusion {
  std::vector<Item> items;
  std::vector<LibraryNode> calls;
  std::vector<FusedStep> steps;  // in execution order
  std::vector<int> output_port;  // per value: the output port in which it is made, or -1
  // Per value: the value in whose memory it is made, because only the product that adds to it reads
  // it; or invalid.
  std::vector<tensor::ValueId> into;
};

Fusion fuse(const dag::Body& body, const Axes& axes, Target target);

}  // namespace piper::backend
