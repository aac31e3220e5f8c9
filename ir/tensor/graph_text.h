#pragma once
// The text form of a tensor graph.
//
// Guarantees: print(parse(print(g))) == print(g), ids of values, parameters and losses included,
// for every graph that `verify` accepts; values are named after op and place in the model
// (`%block.3.mlp.0.gelu`); doubles round-trip; time is linear. Bad text gives diagnostics with line
// and column, never a crash.
//
//   tensor mlp {
//     %x = input f32[batch: 4*, dim: 8] "x"
//     %mlp.0.up = weight f32[dim: 8, hidden: 16] "mlp.0.up" normal(0.02)
//     %mlp.0.contract = contract(%x, %mlp.0.up) {dims: [dim]} : f32[batch: 4*, hidden: 16] @F region mlp[0]
//     %mlp.0.sum = sum(%mlp.0.contract) {dims: [batch, hidden]} : f32[] @F region mlp[0]
//     loss "mlp.loss.0" elements %mlp.0.contract sum %mlp.0.sum count 64
//     %d.mlp.0.contract = fill() {scalar: 0.015625, shape: f32[batch: 4*, hidden: 16]} : f32[batch: 4*, hidden: 16] @BI region mlp[0] of %mlp.0.sum
//     %d.mlp.0.up = contract(%x, %d.mlp.0.contract) {dims: [batch]} : f32[dim: 8, hidden: 16] @BW region mlp[0] of %mlp.0.contract
//     grad "mlp.0.up" %d.mlp.0.up
//   }
//
// A leaf that is neither input nor weight is `%name = port TYPE`. In a body a type is followed by
// the layout of the value unless it is replicated: `f32[batch: 4*, dim: 8]<dp: batch>` (ir/layout).
// `loc(...)` ends a line that has a location.

#include <optional>
#include <string>
#include <string_view>

#include "ir/diagnostics/diagnostics.h"
#include "ir/tensor/graph.h"

namespace piper::tensor {

struct PrintOptions {
  bool locations = true;
  std::size_t indent = 0;  // spaces before every line
  // Also on derivatives, whose regions are those of the values they are `of`.
  bool all_regions = true;
};

std::string print(const Graph& graph, PrintOptions options = {});
/// Only the lines between the braces.
std::string print_lines(const Graph& graph,
                        PrintOptions options = {.locations = true, .indent = 2});

/// `%block.3.mlp.0.gelu`; quoted unless the name is plain.
std::string value_text(const Graph& graph, ValueId value);
/// The shortest text that reads back as `number`.
std::string number_text(double number);
/// `name`, in quotes when it holds anything but letters, digits, `_`, `.`, `-`, `$`, or starts with
/// a digit, `.` or `-`.
std::string name_text(std::string_view name);
std::string quoted_text(std::string_view text);
std::string init_text(const Init& init);
/// `<dp: batch, tp: +>`
std::string layout_text(const Context& context, LayoutId layout);

/// Reads a graph and verifies it; nothing after reporting an error.
std::optional<Graph> parse(std::string_view text, Context& context, DiagnosticSink& sink);
/// Reads a graph that starts at byte `position` of a file with text, and moves `position` after it.
/// Not verified.
std::optional<Graph> parse_at(FileId file, std::size_t& position, Context& context,
                              DiagnosticSink& sink);
/// Reads lines into `graph` from `position` up to a `}` that it does not consume. Not verified.
/// False after reporting an error.
bool parse_lines(FileId file, std::size_t& position, Graph& graph, DiagnosticSink& sink);

/// Reports violations: an operand used before its definition, types that differ from the shape
/// rules, repeated names, losses that are no scalar, gradients that do not match their parameter.
/// True if there are none.
bool verify(const Graph& graph, DiagnosticSink& sink);

}  // namespace piper::tensor
