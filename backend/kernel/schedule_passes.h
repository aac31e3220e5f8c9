#pragma once
// Assigns the statements of a loop nest to passes over its columns and brings them into execution
// order.

#include <functional>

#include "backend/kernel/kernel.h"

namespace piper::backend {

/// Statements are in dependence order with `pass` unset. `temporary` returns a row of scratch;
/// without it, values that a later pass needs are computed again.
void schedule_passes(Kernel& kernel, const std::function<BufferIndex(tensor::DType)>& temporary,
                     const std::function<bool(BufferIndex)>& accumulates);

/// Whether the statement's result is one value per row: row statements and reductions.
bool gives_row_value(const Statement& statement);
bool is_reduction(Code code);
bool is_effect(Code code);
/// Whether the function has a shorter form for operations on bf16.
bool has_brief_form(Code code);

}  // namespace piper::backend
