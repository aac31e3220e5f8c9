#pragma once
// The typed program: the result of the analysis, for lowering and editors.
//
// Guarantees when `ok`: every name is resolved, every call matched to its parameters, every
// expression typed, every statement is in a legal place, functions do not call themselves, and
// values are returned on all paths. The results lie in the AST nodes (`NameExpr::referent`,
// `CallExpr::matched`, `Identifier::binding`, `Expr::type`), so that evaluation looks up no names.
// If not `ok` the same holds for code without errors: unresolved names stay `Referent::unresolved`,
// types `error`. A declaration that is `sound` has no error, nor have the declarations that it
// uses. A function or train that is `runnable` has errors in statements at most, or in the model
// that the train calls: those statements are `refused`, and the others can be evaluated. In a train
// or schedule they may be errors of syntax. So correct code is lowered beside code with errors.
//
// Names. A `use` brings the declarations of the used file, not of the files that it uses itself. A
// name is looked up as a local, a declaration of the file, a declaration of a used file, a builtin,
// in this order; earlier ones hide later ones. If two used files declare a name, the file of that
// name wins (`use std.models.mlp` for `mlp`), else using the name is an error. A local never hides
// another one of the same body, its parameters included; blocks end the life of their locals. In
// selector position (targets, operands of passes, parameters of type selector, the head of
// `NAME[..] NAME[..]`) a name is a local or else a label.
//
// Frames. A body has one frame of `frame_size` slots for all its blocks, comprehensions and ranks;
// a slot is written before it is read. Parameter i of a function is slot i; axis i of its mesh is
// slot i of a train or machine. The names of dimensions are locals of type int: of a parameter's
// shape, an `input`'s, a `weight`'s (`Dim::name.binding`), where the first mention without a size
// gives the slot its value in a parameter or an `input`, and `n: size` does in a weight. Defaults
// are evaluated in the frame of the callee.
//
//   sema::Program program = sema::analyse(file, disk, context, sink);
//   if (!program.ok) return;
//   const sema::Train& train = program.trains[0];

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/ast/module.h"
#include "frontend/sema/builtins.h"
#include "frontend/sema/type.h"
#include "frontend/source/source_manager.h"
#include "ir/context.h"
#include "ir/diagnostics/forward.h"

namespace piper::sema {

using ModuleId = Id<struct ModuleTag>;
using ParamId = Id<struct ParamTag>;
using MeshId = Id<struct MeshTag>;
using FunctionId = Id<struct FunctionTag>;
using TrainId = Id<struct TrainTag>;
using MachineId = Id<struct MachineTag>;
using NamesId = Id<struct NamesTag>;

/// A file with the files that it uses.
struct Module {
  // `std.schedules.zbv`; for the entry and local files the path of the file.
  std::string name;
  ast::Module syntax;
  std::vector<ModuleId> uses;  // in text order, without duplicates
  bool lacks_uses = false;     // a file that it uses was not found
};

/// `param corpus = "corpus.txt"`. `-D` replaces the value by one of the same type; with `in` by one
/// of the choices, of which the first is the value.
struct Param {
  const ast::ParamItem* syntax = nullptr;
  ModuleId module;
  Type type;
  std::uint32_t frame_size = 0;  // of the value (comprehensions)
  bool sound = true;
};

struct Mesh {
  const ast::MeshItem* syntax = nullptr;
  ModuleId module;
  std::uint32_t frame_size = 0;  // of the sizes
  MeshId base;                   // of `mesh view = base as (...)`
  bool sound = true;
};

/// A def, schedule or model.
struct Function {
  const ast::FunctionItem* syntax = nullptr;
  ModuleId module;
  std::vector<Type> params;
  Type result;  // none for a schedule and a model without `->`
  std::uint32_t frame_size = 0;
  bool sound = true;
  bool runnable = true;
  ast::FunctionSort sort() const { return syntax->sort; }
  std::string_view name() const { return syntax->name.name; }
};

/// A `names` item that a train mentions.
struct NamesUse {
  NamesId names;
  SourceRange range;
};

/// `syntax->model` is a CallExpr of `model`, evaluated in the train's frame.
struct Train {
  const ast::TrainItem* syntax = nullptr;
  ModuleId module;
  FunctionId model;  // invalid if the call is wrong
  MeshId mesh;
  std::uint32_t frame_size = 0;
  std::vector<NamesUse> names;  // in text order
  bool sound = true;
  bool runnable = true;
  std::string_view name() const { return syntax->name.name; }
};

/// Axis i of its mesh is slot i.
struct Machine {
  const ast::MachineItem* syntax = nullptr;
  ModuleId module;
  MeshId mesh;
  std::uint32_t frame_size = 0;
  bool sound = true;
  std::string_view name() const { return syntax->name.name; }
};

/// Parameters of a model as tensors of a file. The model is not known: names of parameters,
/// dimensions and facts are those of the model that a train gives it.
struct Names {
  const ast::NamesItem* syntax = nullptr;
  ModuleId module;
  bool sound = true;
  std::string_view name() const { return syntax->name.name; }
};

struct Program {
  std::vector<std::unique_ptr<Module>> modules;  // the entry first
  std::vector<Param> params;                     // each kind by module, then in text order
  std::vector<Mesh> meshes;
  std::vector<Function> functions;
  std::vector<Train> trains;
  std::vector<Machine> machines;
  std::vector<Names> names;
  bool ok = false;  // no error in any module
  // All declarations were found: none lies in text that did not parse.
  bool complete = true;

  /// A train of the entry file; invalid if it declares none of that name.
  TrainId find_train(std::string_view name) const;
  FunctionId find_schedule(std::string_view name) const;
  /// A `names` item of the entry file, else one of a file that it uses, else one of `std.names` if
  /// its file was loaded; invalid if there is none.
  NamesId find_names(std::string_view name) const;
};

/// Parses and analyses `entry`, which is in `context.locations.files()`, and all it uses. Files
/// besides the library's come from `file_system`. Reports P1xxx and P2000 to P2299, and P3003 for
/// features that this version does not have; at most `shown_errors` errors of one file, with the
/// number of the others. `beside`: files of the library that are loaded although nothing uses them.
Program analyse(FileId entry, const source::FileSystem& file_system, Context& context,
                DiagnosticSink& sink, std::size_t shown_errors = kShownErrors,
                std::span<const std::string> beside = {});

/// The library file of that name, for example `std.schedules.zbv`, added to `files` when it is not
/// there; nothing when there is none.
std::optional<FileId> open_library(std::string_view module_name, SourceTable& files);
/// Whether a library file has `names` items: `std.names.hf_llama`.
bool is_library_names(std::string_view module_name);
/// The names of all library files, sorted: `std.models.gpt`, ...
std::vector<std::string> library_modules();
/// Library files that declare a `schedule` or `model` of their own name.
std::vector<std::string> library_modules(std::string_view item);
/// A `use` of that name, after those of the module.
Edit use_line(const ast::Module& module, std::string_view name);

}  // namespace piper::sema
