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
// A line that has a location ends with its number in the table of locations (ir/text).

#include <optional>
#include <string>
#include <string_view>

#include "ir/diagnostics/diagnostics.h"
#include "ir/tensor/graph.h"
#include "ir/text/location_text.h"
#include "ir/text/text_reader.h"

namespace piper::tensor {

/// The text of a graph by itself. With `all_regions` also derivatives have their regions, which are
/// those of the values that they are `of`.
std::string print(const Graph& graph, LocationForm form = LocationForm::numbered,
                  bool all_regions = true);

struct LineOptions {
  unsigned indent = 0;  // spaces before every line
  bool all_regions = true;
};
/// Only the lines between the braces.
void print_lines(const Graph& graph, llvm::raw_ostream& os, LocationText& locations,
                 LineOptions options = {.indent = 2});

/// `%block.3.mlp.0.gelu`; quoted unless the name is plain.
std::string value_text(const Graph& graph, ValueId value);
/// The names of `Init::Kind`, in its order.
inline constexpr std::string_view kInitNames[] = {"normal", "uniform", "zeros", "ones", "constant"};
/// Whether its text has the scale.
constexpr bool has_scale(Init::Kind kind) {
  return kind != Init::Kind::zeros && kind != Init::Kind::ones;
}
/// `normal(0.02)`, `zeros`.
std::string init_text(const Init& init);

/// Reads a graph by itself and verifies it; nothing after reporting an error.
std::optional<Graph> parse(std::string_view text, Context& context, DiagnosticSink& sink);
/// Reads lines into `graph` up to a `}` that it does not consume. Not verified. Layouts name axes of
/// the mesh; without a mesh any name is an axis.
void parse_lines(TextReader& reader, Graph& graph, const Mesh* mesh = nullptr);

/// Reports violations: an operand used before its definition, types that differ from the shape
/// rules, repeated names, losses that are no scalar, gradients that do not match their parameter.
/// True if there are none.
bool verify(const Graph& graph, DiagnosticSink& sink);

}  // namespace piper::tensor
