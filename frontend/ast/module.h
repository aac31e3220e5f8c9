#pragma once
// The AST of one file: its items, and the arena that owns every node.
//
// Guarantees: moving a Module keeps all node addresses; names and texts live in the arena, so the
// source text may go. Node guarantees as in frontend/ast/expr.h.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "frontend/ast/comment.h"
#include "frontend/ast/names.h"
#include "frontend/ast/stmt.h"
#include "llvm/Support/Allocator.h"

namespace piper::ast {

enum class ItemKind : std::uint8_t { error, use, param, mesh, function, train, machine, names };

struct Item {
  ItemKind kind;
  SourceRange range;
  // The lines of the `///` comment before it, without the marks, joined by line breaks.
  std::string_view doc;

 protected:
  Item(ItemKind kind_of_node, SourceRange range_of_node)
      : kind(kind_of_node), range(range_of_node) {}
};

template <ItemKind K>
struct ItemNode : Item {
  explicit ItemNode(SourceRange range_of_node) : Item(K, range_of_node) {}
  static bool classof(const Item* item) { return item->kind == K; }
};

/// Text that is not an item. Reported by the parser.
struct ErrorItem : ItemNode<ItemKind::error> {
  using ItemNode::ItemNode;
};

/// `use std.schedules.zbv`
struct UseItem : ItemNode<ItemKind::use> {
  using ItemNode::ItemNode;
  std::span<const Identifier> path;
};

/// `param corpus = "corpus.txt"`, `param zero in [0, 1, 3]`
struct ParamItem : ItemNode<ItemKind::param> {
  using ItemNode::ItemNode;
  Identifier name;
  bool has_choices = false;  // `value` is the list of its choices
  Expr* value = nullptr;
};

/// `mesh cluster(pp: 2, dp: 2)`, `mesh moe_mesh = cluster as (pp: 4, ep: 4)`
struct MeshItem : ItemNode<ItemKind::mesh> {
  using ItemNode::ItemNode;
  Identifier name;
  bool is_view = false;
  Identifier base;  // of a view: the mesh whose devices it factors again
  std::span<const Pair> axes;
};

enum class FunctionSort : std::uint8_t { def, schedule, model };

/// The keyword.
std::string_view sort_text(FunctionSort sort);

/// `model norm(x: tensor[batch, dim]) -> tensor[batch, dim] { }`, likewise `def` and `schedule`
struct FunctionItem : ItemNode<ItemKind::function> {
  using ItemNode::ItemNode;
  FunctionSort sort{};
  Identifier name;
  std::span<const Param> params;
  const TypeRef* result = nullptr;  // null: none written
  Block* body = nullptr;
};

/// `train small = gpt(layers: 8) on cluster { }`
struct TrainItem : ItemNode<ItemKind::train> {
  using ItemNode::ItemNode;
  Identifier name;
  Expr* model = nullptr;
  Identifier mesh;
  Block* body = nullptr;
};

/// `machine lab on cluster { all: device(memory: 80GiB) }`
struct MachineItem : ItemNode<ItemKind::machine> {
  using ItemNode::ItemNode;
  Identifier name;
  Identifier mesh;
  Block* body = nullptr;
};

/// `names llama { embed.token: "model.embed_tokens.weight"[vocab, dim] }`
struct NamesItem : ItemNode<ItemKind::names> {
  using ItemNode::ItemNode;
  Identifier name;
  std::span<const NamesLine> lines;
  SourceRange body;  // with the braces
};

class Module {
 public:
  FileId file;
  std::span<Item* const> items;
  SourceRange range;                  // the whole text
  std::span<const Comment> comments;  // in text order
  std::vector<std::uint32_t> faults;  // where the text is none of the language, ascending
  bool brackets_differ = false;       // some bracket has no partner: the nesting is a guess

  /// A node in the arena. Nodes are trivially destructible: nothing runs when the module goes.
  template <typename Node, typename... Args>
  Node* make(Args&&... args) {
    static_assert(std::is_trivially_destructible_v<Node>);
    return new (arena_->Allocate(sizeof(Node), llvm::Align(alignof(Node))))
        Node(std::forward<Args>(args)...);
  }
  std::string_view copy(std::string_view text) {
    char* bytes = static_cast<char*>(arena_->Allocate(text.size(), llvm::Align(1)));
    std::copy(text.begin(), text.end(), bytes);
    return {bytes, text.size()};
  }
  template <typename T>
  std::span<T> copy(const std::vector<T>& elements) {
    static_assert(std::is_trivially_destructible_v<T>);
    T* first =
        static_cast<T*>(arena_->Allocate(elements.size() * sizeof(T), llvm::Align(alignof(T))));
    std::uninitialized_copy(elements.begin(), elements.end(), first);
    return {first, elements.size()};
  }

 private:
  std::unique_ptr<llvm::BumpPtrAllocator> arena_ = std::make_unique<llvm::BumpPtrAllocator>();
};

/// The text of `show ast`: one node per line, indented, with its range as
/// `[line:column-line:column]`.
std::string print(const Module& module, const SourceTable& files);

/// The same text without the ranges: equal for two texts that differ in layout only.
std::string print_without_ranges(const Module& module);

/// An expression on one line in source form, parenthesised only where needed; `<error>` for text
/// that did not parse.
std::string source_text(const Expr& expr);

}  // namespace piper::ast
