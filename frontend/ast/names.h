#pragma once
// Lines of a `names` item: parameters of a model as tensors of a file with other names and another
// order of dimensions.
//
//   names llama {
//       block[l].attention.q: "model.layers.{l}.self_attn.q_proj.weight"[heads width, dim]
//       config { rope_theta: base }
//   }

#include <span>

#include "frontend/ast/stmt.h"

namespace piper::ast {

/// Text of a name in a file, or the hole after it: `model.layers.` and `l`.
struct FileNamePiece {
  std::string_view text;
  Identifier hole;  // missing() in the last piece
};

/// `"model.layers.{l}.self_attn.q_proj.weight"`
struct FileName {
  std::span<const FileNamePiece> pieces;  // at least one, unless the text did not parse
  SourceRange range;                      // with the quotes
};

/// `block[l]`, `norm[0]`, `attention`
struct NamesPart {
  Identifier name;
  bool indexed = false;
  Identifier index;           // missing() for a number
  std::int64_t position = 0;  // the number
  SourceRange range;
};

/// `half: 2`, `pair`
struct NamesFactor {
  Identifier name;
  std::int64_t extent = 0;  // 0: the rest of the dimension
  SourceRange range;
};

/// `dim`, `width = half: 2 pair`
struct NamesDim {
  Identifier name;
  std::span<const NamesFactor> factors;  // empty: the dimension is one
  SourceRange range;
};

/// `of heads width`: names that make one dimension of the file, row-major.
struct FileDim {
  std::span<const Identifier> names;
  SourceRange range;
};

enum class NamesLineKind : std::uint8_t {
  error,   // text that did not parse, reported by the parser
  map,     // a path and a tensor of the file
  config,  // `config { rope_theta: 10000 }`
  ignore,  // `ignore "lm_head.weight"`
};

struct NamesLine {
  NamesLineKind kind = NamesLineKind::error;
  SourceRange range;

  // Parts of a map.
  std::span<const NamesPart> parts;  // of the path, without the last
  std::span<const Identifier> last;  // the parameter; several of a tuple
  bool is_tuple = false;             // `(q, k, v)`
  std::span<const NamesDim> dims;    // as written after the path; empty: not written
  FileName file;
  std::span<const FileDim> file_dims;
  bool optional = false;  // `or none`: the model may lack the parameter
  SourceRange path_range;

  // The part of a `config`.
  std::span<const Pair> facts;

  // The part of an `ignore`.
  std::span<const FileName> ignored;
};

}  // namespace piper::ast
