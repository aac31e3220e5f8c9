#pragma once
// The attributes of an operation in the order of the text, described once for its printer and its
// reader.

#include "ir/tensor/op.h"

namespace piper::tensor {

/// Calls `io(bit, name, value)` for each attribute; `attrs` is `Attrs`, const for a printer.
template <typename Io, typename AttrsRef>
void attr_fields(Io&& io, AttrsRef& attrs) {
  io(kDims, "dims", attrs.dims);
  io(kDims2, "dims2", attrs.dims2);
  io(kScalar, "scalar", attrs.scalar);
  io(kScalar2, "scalar2", attrs.scalar2);
  io(kFrom, "from", attrs.from);
  io(kExtent, "extent", attrs.extent);
  io(kDType, "dtype", attrs.dtype);
  io(kCausal, "causal", attrs.causal);
  io(kShape, "shape", attrs.shape);
  io(kSeed, "seed", attrs.seed);
  io(kIgnore, "ignore", attrs.ignore);
  io(kPieces, "pieces", attrs.pieces);
}

}  // namespace piper::tensor
