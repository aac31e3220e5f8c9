// The directives of schedules and trains.

#include "frontend/parse/ast_builder.h"

namespace piper::parse {

using namespace ast;
using Grammar = AstBuilder::Grammar;

Stmt* AstBuilder::directive(Grammar::StmtContext* context) {
  SourceRange where = range(context), end = behind(context);
  if (auto* partition = dynamic_cast<Grammar::PartitionStmtContext*>(context)) {
    auto* node = module_.make<PartitionStmt>(where);
    node->region = primary(partition->region() != nullptr ? partition->region()->primary() : nullptr, end);
    node->into = pair(partition->extent() != nullptr ? partition->extent()->pair() : nullptr, end);
    node->settings = settings(partition->settings());
    return node;
  }
  if (auto* split = dynamic_cast<Grammar::SplitStmtContext*>(context)) {
    auto* node = module_.make<SplitStmt>(where);
    node->dimension = identifier(split->name(), end);
    std::vector<Pair> into;
    for (Grammar::ExtentContext* extent : split->extent()) into.push_back(pair(extent->pair(), range(extent)));
    node->into = module_.copy(into);
    node->targets = targets(split->targets());
    return node;
  }
  if (auto* place = dynamic_cast<Grammar::PlaceStmtContext*>(context)) {
    auto* node = module_.make<PlaceStmt>(where);
    node->targets = targets(place->targets());
    node->devices = expr(place->devices() != nullptr ? place->devices()->expr() : nullptr, end);
    return node;
  }
  if (auto* replicate = dynamic_cast<Grammar::ReplicateStmtContext*>(context)) {
    auto* node = module_.make<ReplicateStmt>(where);
    node->targets = targets(replicate->targets());
    if (replicate->axes() != nullptr) node->axes = identifiers(replicate->axes()->name());
    node->settings = settings(replicate->settings());
    return node;
  }
  if (auto* shard = dynamic_cast<Grammar::ShardStmtContext*>(context)) {
    auto* node = module_.make<ShardStmt>(where);
    node->targets = targets(shard->targets());
    if (shard->axes() != nullptr) node->axes = identifiers(shard->axes()->name());
    if (shard->dimensions() != nullptr) node->dims = identifiers(shard->dimensions()->name());
    node->settings = settings(shard->settings());
    return node;
  }
  if (auto* treat = dynamic_cast<Grammar::TreatStmtContext*>(context)) {
    auto* node = module_.make<TreatStmt>(where);
    node->treatment = treat->RECOMPUTE() != nullptr ? Treatment::recompute
                      : treat->OFFLOAD() != nullptr ? Treatment::offload
                      : treat->FUSE() != nullptr    ? Treatment::fuse
                                                    : Treatment::freeze;
    node->targets = targets(treat->targets());
    node->settings = settings(treat->settings());
    return node;
  }
  if (auto* stream = dynamic_cast<Grammar::StreamStmtContext*>(context)) {
    auto* node = module_.make<StreamStmt>(where);
    node->name = identifier(stream->name(), end);
    node->targets = targets(stream->targets());
    node->settings = settings(stream->settings());
    return node;
  }
  return module_.make<ErrorStmt>(where);
}

}  // namespace piper::parse
