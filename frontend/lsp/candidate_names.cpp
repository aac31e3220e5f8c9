#include "frontend/lsp/candidate_names.h"

#include "frontend/sema/analyser.h"

namespace piper::lsp {

using sema::Type;
using sema::TypeKind;

bool is_special(TypeKind kind) {
  switch (kind) {
    case TypeKind::order:
    case TypeKind::steps:
    case TypeKind::cursor:
    case TypeKind::dimension:
    case TypeKind::op:
    case TypeKind::measure:
    case TypeKind::initializer:
    case TypeKind::data:
    case TypeKind::optimizer:
    case TypeKind::rate:
    case TypeKind::every:
    case TypeKind::sampling:
    case TypeKind::objective:
    case TypeKind::token_type:
    case TypeKind::weights:
    case TypeKind::fallback:
    case TypeKind::decay:
    case TypeKind::norm_test:
    case TypeKind::names:
    case TypeKind::dtype:
    case TypeKind::platform:
    case TypeKind::device:
    case TypeKind::processor:
    case TypeKind::link: return true;
    default: return false;
  }
}

bool fits(Type value, Type place) {
  if (value.is_error()) return !is_special(place.kind);
  if (value.kind == TypeKind::none || value.kind == TypeKind::steps) return false;
  if (value.kind == TypeKind::any)
    return place.list || place.is_error() || place.kind == TypeKind::any;
  if (is_special(place.kind) && value.kind != place.kind && place.kind != TypeKind::rate)
    return false;
  if (place.kind == TypeKind::rate && value.is_number()) return true;
  if (is_special(value.kind)) return value.kind == place.kind && value.list == place.list;
  if (place.is_error() || place.kind == TypeKind::any) return true;
  if (value.kind == TypeKind::number)
    return place.is_number() || place.kind == TypeKind::number || place.kind == TypeKind::rate;
  if (place.is(TypeKind::number)) return value.is_number();
  return sema::converts(value, place);
}

}  // namespace piper::lsp
