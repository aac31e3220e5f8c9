#include "frontend/lsp/describe.h"

#include "frontend/ast/source_text.h"
#include "frontend/ast/walk.h"
#include "frontend/lsp/names.h"

namespace piper::lsp {

namespace {

struct Word {
  std::string_view word, meaning;
};

constexpr Word kWords[] = {
    {"B", "the whole backward of a chunk: input gradients, then weight gradients"},
    {"BI",
     "the half of a backward that gives the gradients of the inputs; the weights' half is `BW`"},
    {"BW", "the half of a backward that gives the gradients of the weights, postponed by `BI`"},
    {"F", "the forward of a chunk"},
    {"R", "the recomputed forward of work that a `recompute` line names"},
    {"and", "true when both sides are"},
    {"as", "the axes of a view of the same devices: `mesh experts = cluster as (pp: 4, ep: 2)`"},
    {"at", "puts a step into a numbered slot of its rank: `at 2*i: F stage[r] mb[i]`"},
    {"backward", "the order of a cursor's backwards, where it differs from that of its forwards"},
    {"by", "the step of a range (`0..m by 2`), or the dimensions of a `shard`"},
    {"cursor",
     "goes through a list of chunks: `F a` takes the next forward, `B a` the next backward"},
    {"def", "a function that gives a value, an `order`, or `steps`"},
    {"else", "the other case of an `if`, or the words of a `require` that is not met"},
    {"false", "a condition that never holds"},
    {"for",
     "repeats a block for each value of a list or range; the last of several names goes fastest"},
    {"if", "runs a block when a condition holds; as an expression, `if c then a else b`"},
    {"in", "the values that a name goes through: `for s in 0..p`"},
    {"input", "data that a model reads, with its dimensions"},
    {"into", "the name and the number of the parts"},
    {"let", "names a value"},
    {"loss", "a term of the minimised sum of losses"},
    {"machine",
     "memory and rates of the devices of a mesh and the links of its axes: `machine lab on cluster { all: device(memory: 80GiB) }`"},
    {"mesh", "devices as a grid with named axes: `mesh cluster(pp: 2, dp: 4)`"},
    {"model", "a function of tensors, independent of devices; in a strategy, the whole model"},
    {"names",
     "parameters of a model as tensors of a file with other names: `names mine { embed.token: \"wte.weight\"[vocab, dim] }`"},
    {"not", "the opposite of a condition"},
    {"on", "the devices of a `place`, or the mesh of a `train`"},
    {"or", "true when one side is"},
    {"order", "the order of work on each rank, as `rank` blocks or as a value"},
    {"over", "the axes of the mesh that a `replicate` or `shard` uses"},
    {"param", "a value that `-D NAME=VALUE` can replace"},
    {"rank", "the steps of each coordinate of an axis"},
    {"region", "gives the operations of a block a name in strategies"},
    {"repeat", "runs a block a number of times"},
    {"require",
     "a condition that must hold; with `peak_memory`, `host_memory`, `bubble` or `traffic` it is checked on the plan"},
    {"return", "the value of a function"},
    {"schedule", "a reusable strategy: how work is cut, placed and ordered"},
    {"then", "the value of an `if` whose condition holds: `if c then a else b`"},
    {"train", "a model on a mesh with data, an optimizer and a strategy"},
    {"true", "a condition that always holds"},
    {"use", "brings the declarations of another file: `use std.schedules.gpipe`"},
    {"var", "a name whose value changes"},
    {"weight", "parameters of the model, with their dimensions and initial values"},
    {"with", "settings of a directive: `with bucket: 25MiB`"},
    {"all", "every device of the machine's mesh"},
    {"checkpoint",
     "how often weights and optimizer state are written: `every(100, keep: 3)`, and at the end"},
    {"data", "where the samples come from: `bytes`, `tokens`, `arrays` or `synthetic`"},
    {"device", "the platform of the train: `cpu` or `cuda`"},
    {"dtype", "the type of the elements: `bf16`, `f32` or `f64`"},
    {"ema", "the decay of a moving average of the weights, `0.999`; it is kept beside them"},
    {"evaluate", "how often the held-out data is evaluated: `every(50)`, and at the end"},
    {"held_out", "data to evaluate at the end, and as often as `evaluate` says"},
    {"init", "the file with the first values of parameters: `weights(\"model.safetensors\")`"},
    {"optim", "the optimizer: `sgd` or `adamw`"},
    {"skip_step",
     "steps that change nothing: `norm > 10` those with a larger gradient norm, or one that is no number"},
    {"seed", "the number that all random values come from"},
    {"steps", "how many steps are trained"},
};

std::string type_text(const ast::TypeRef* type) {
  return type != nullptr ? ast::source_text(*type) : std::string();
}

}  // namespace

std::string headline(const ast::Item& item) {
  if (const auto* param = llvm::dyn_cast<ast::ParamItem>(&item))
    return "param " + std::string(param->name.name) + (param->has_choices ? " in " : " = ") +
           ast::source_text(*param->value);
  if (const auto* mesh = llvm::dyn_cast<ast::MeshItem>(&item)) {
    return "mesh " + std::string(mesh->name.name) +
           (mesh->is_view ? " = " + std::string(mesh->base.name) + " as " : "") + "(" +
           ast::source_text(mesh->axes) + ")";
  }
  if (const auto* function = llvm::dyn_cast<ast::FunctionItem>(&item)) {
    std::string text = std::string(ast::sort_text(function->sort)) + " " +
                       std::string(function->name.name) + "(" + ast::source_text(function->params) +
                       ")";
    return function->result != nullptr ? text + " -> " + type_text(function->result) : text;
  }
  if (const auto* train = llvm::dyn_cast<ast::TrainItem>(&item)) {
    return "train " + std::string(train->name.name) + " = " + ast::source_text(*train->model) +
           " on " + std::string(train->mesh.name);
  }
  if (const auto* machine = llvm::dyn_cast<ast::MachineItem>(&item))
    return "machine " + std::string(machine->name.name) + " on " + std::string(machine->mesh.name);
  if (const auto* names = llvm::dyn_cast<ast::NamesItem>(&item))
    return "names " + std::string(names->name.name);
  return {};
}

const ast::Identifier* name_of(const ast::Item& item) {
  if (const auto* param = llvm::dyn_cast<ast::ParamItem>(&item)) return &param->name;
  if (const auto* mesh = llvm::dyn_cast<ast::MeshItem>(&item)) return &mesh->name;
  if (const auto* function = llvm::dyn_cast<ast::FunctionItem>(&item)) return &function->name;
  if (const auto* train = llvm::dyn_cast<ast::TrainItem>(&item)) return &train->name;
  if (const auto* machine = llvm::dyn_cast<ast::MachineItem>(&item)) return &machine->name;
  if (const auto* names = llvm::dyn_cast<ast::NamesItem>(&item)) return &names->name;
  return nullptr;
}

const ast::Item* item_named_at(const sema::Program& program, SourceRange name) {
  for (const auto& module : program.modules) {
    if (module->syntax.file != name.file) continue;
    for (const ast::Item* item : module->syntax.items) {
      const ast::Identifier* own = name_of(*item);
      if (own != nullptr && own->range == name) return item;
    }
  }
  return nullptr;
}

std::string_view meaning_of_word(std::string_view word) {
  for (const Word& row : kWords) {
    if (row.word == word) return row.meaning;
  }
  const directive::DirectiveRow* const row = directive::find_directive(word);
  return row != nullptr ? row->meaning : std::string_view();
}

std::string setting_text(const directive::SettingRow& setting) {
  std::string type;
  switch (setting.type) {
    case directive::SettingType::count: type = "int"; break;
    case directive::SettingType::bytes: type = "bytes"; break;
    case directive::SettingType::counts: type = "[int]"; break;
    case directive::SettingType::factor: type = "float"; break;
    case directive::SettingType::word:
      for (const std::string_view word : directive::words_of(setting))
        type += (type.empty() ? "" : " | ") + std::string(word);
      break;
  }
  return std::string(setting.name) + ": " + type +
         (setting.value.empty() ? "" : " = " + std::string(setting.value));
}

std::span<const directive::SettingRow> settings_of(std::string_view keyword) {
  const directive::DirectiveRow* const row = directive::find_directive(keyword);
  return row != nullptr ? directive::settings_of(row->kind)
                        : std::span<const directive::SettingRow>();
}

std::string describe_local(Request& request, const ast::Module& module, SourceRange declaration) {
  const NodesAt nodes = nodes_at(module, declaration.begin);
  const std::string name(request.text(declaration));
  const auto typed = [&](std::string_view what, sema::Type type) {
    return std::string(what) + name +
           (type.is_error() ? "" : ": " + std::string(sema::type_name(type)));
  };
  if (nodes.statement == nullptr) {
    if (const auto* function = llvm::dyn_cast_or_null<ast::FunctionItem>(nodes.item)) {
      for (const ast::Param& param : function->params) {
        if (param.name.range == declaration)
          return "parameter " + std::string(request.text(param.range));
      }
      return "dimension " + name;
    }
    if (const auto* mesh = llvm::dyn_cast_or_null<ast::MeshItem>(nodes.item))
      return "axis of " + std::string(mesh->name.name) + "\n" + headline(*mesh);
    return name;
  }
  const ast::Stmt& stmt = *nodes.statement;
  if (const auto* let = llvm::dyn_cast<ast::LetStmt>(&stmt)) {
    for (const ast::Identifier& each : let->names) {
      if (each.range == declaration)
        return typed("let ", let->names.size() == 1 ? sema::type_of(*let->value) : sema::Type());
    }
  }
  if (const auto* var = llvm::dyn_cast<ast::VarStmt>(&stmt);
      var != nullptr && var->name.range == declaration) {
    return typed("var ", sema::Type::from_bits(var->type));
  }
  if (const auto* weight = llvm::dyn_cast<ast::WeightStmt>(&stmt)) {
    for (const ast::WeightDecl& decl : weight->weights) {
      if (decl.name.range == declaration) return "weight " + std::string(request.text(decl.range));
    }
  }
  if (const auto* input = llvm::dyn_cast<ast::InputStmt>(&stmt)) {
    for (const ast::Param& param : input->inputs) {
      if (param.name.range == declaration) return "input " + std::string(request.text(param.range));
    }
  }
  if (const auto* cursor = llvm::dyn_cast<ast::CursorStmt>(&stmt);
      cursor != nullptr && cursor->name.range == declaration) {
    return "cursor " + name + " = " + std::string(request.text(cursor->forward->range));
  }
  if (llvm::isa<ast::RankStmt>(stmt)) return "rank " + name + ": int";
  return "for " + name;
}

std::string code_block(std::string_view code) {
  return "```pipe\n" + std::string(code) + "\n```\n";
}

}  // namespace piper::lsp
