#pragma once
// Operations that run earlier, in the idle time of their rank.
//
//   1 waits at rank 1: F0 (idle) B0 F1   ->   F0 F1 B0

#include "ir/orders/search/problem.h"

namespace piper::orders {

struct FillRule {
  /// An operation runs in idle time only if it ends before the next one of the list can start, as
  /// far as that is known.
  bool fits = false;
  /// Weight gradients leave their places in the lists: the oldest one runs where nothing else can
  /// start, or where a forward needs its room.
  bool weights_last = false;
};
/// All rules.
inline constexpr FillRule kFillRules[] = {
    {true, false}, {false, false}, {true, true}, {false, true}};

/// If the next operation of a rank has to wait, the first later one that can start runs before it,
/// if the rank then holds at no time more parts than the cap. The result is incomplete if ranks
/// wait for each other forever.
CodeLists fill_idle(const SearchProblem& problem, CodeLists lists, const FillRule& rule);

}  // namespace piper::orders
