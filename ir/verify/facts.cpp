#include "ir/verify/facts.h"

#include "ir/alignment.h"

namespace piper::verify {

std::int64_t shares_of(const Dag& dag, const dag::Bucket& bucket) {
  const AxisMask axes = sharded_over(dag, bucket);
  std::int64_t shares = 1;
  for (std::size_t axis = 0; axis < dag.mesh.axes.size(); ++axis)
    shares *= (axes >> axis & 1) != 0 ? dag.mesh.axes[axis].size : 1;
  return shares;
}

tensor::DType parameter_dtype(const Dag& dag, const dag::Bucket& bucket) {
  return dag.param_types[bucket.params.front().index()].dtype;
}

std::int64_t parameter_bytes(const Dag& dag, const dag::Bucket& bucket, std::int64_t elements) {
  return elements * static_cast<std::int64_t>(tensor::dtype_bytes(parameter_dtype(dag, bucket)));
}

std::int64_t gradient_bytes(const Dag& dag, const dag::Bucket& bucket, std::int64_t elements) {
  return elements *
         static_cast<std::int64_t>(tensor::dtype_bytes(tensor::wide(parameter_dtype(dag, bucket))));
}

std::int64_t whole_elements(const Dag& dag, tensor::ParamId param) {
  const tensor::Type& type = dag.param_types[param.index()];
  return aligned(type.bytes()) / static_cast<std::int64_t>(tensor::dtype_bytes(type.dtype));
}

std::int64_t bucket_elements(const Dag& dag, const dag::Bucket& bucket) {
  std::int64_t elements = 0;
  for (const tensor::ParamId param : bucket.params) elements += whole_elements(dag, param);
  const std::int64_t whole =
      kAlignment / static_cast<std::int64_t>(tensor::dtype_bytes(parameter_dtype(dag, bucket))) *
      shares_of(dag, bucket);
  return round_up(elements, whole);
}

std::int64_t slots_of(const Dag& dag, const dag::Bucket& bucket) {
  if (!dag.settings.optimizer) return 0;
  const directive::Optimizer& optimizer = *dag.settings.optimizer;
  const std::int64_t beside =
      (tensor::is_narrow(parameter_dtype(dag, bucket)) ? 1 : 0) + (dag.settings.ema ? 1 : 0);
  switch (optimizer.kind) {
    case directive::Optimizer::Kind::sgd: return beside + (optimizer.momentum != 0 ? 1 : 0);
    case directive::Optimizer::Kind::adamw: return beside + 2;
  }
  return 0;
}

}  // namespace piper::verify
