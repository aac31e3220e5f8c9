#include "frontend/lsp/builtin_meanings.h"

namespace piper::lsp {

namespace {

struct Meaning {
  sema::Builtin builtin;
  std::string_view words;
};

constexpr Meaning kMeanings[] = {
    {sema::Builtin::abs, "the number without its sign"},
    {sema::Builtin::ceil, "the next whole number at or above x"},
    {sema::Builtin::ceil_div, "a / b, rounded up"},
    {sema::Builtin::floor, "the next whole number at or below x"},
    {sema::Builtin::round, "the nearest whole number"},
    {sema::Builtin::number_exp, "e to the power of x"},
    {sema::Builtin::number_log, "the natural logarithm"},
    {sema::Builtin::number_sqrt, "the square root"},
    {sema::Builtin::number_max, "the largest of the values"},
    {sema::Builtin::number_min, "the smallest of the values"},
    {sema::Builtin::number_sum, "the sum of the values"},
    {sema::Builtin::len, "how many elements a list has"},
    {sema::Builtin::reversed, "the list from its end to its beginning"},
    {sema::Builtin::held, "the numbers of the parts that are placed on these devices, ascending"},
    {sema::Builtin::left,
     "how many such operations a cursor still has; of `BW` how many weight gradients wait"},
    {sema::Builtin::trim, "the order without operations beyond these extents: `.trim(mb: m)`"},
    {sema::Builtin::attend,
     "scaled dot-product attention over the last two dimensions, position and width"},
    {sema::Builtin::concat, "a followed by b along one dimension"},
    {sema::Builtin::cos, "the cosine of each element"},
    {sema::Builtin::cross_entropy, "minus the log probability of the targets, from logits"},
    {sema::Builtin::dot, "the sum of the products along one dimension"},
    {sema::Builtin::dropout,
     "zeroes elements at random in training and scales up the others; on held-out data x"},
    {sema::Builtin::exp, "e to the power of each element"},
    {sema::Builtin::gelu, "the Gaussian error linear unit"},
    {sema::Builtin::iota,
     "the numbers of positions along one dimension, in the shape of another tensor"},
    {sema::Builtin::layer_norm, "mean 0 and deviation 1 along one dimension"},
    {sema::Builtin::log, "the natural logarithm of each element"},
    {sema::Builtin::log_softmax, "the logarithm of `softmax`"},
    {sema::Builtin::lookup, "rows of a table, by index"},
    {sema::Builtin::max, "the largest element along one dimension"},
    {sema::Builtin::maximum, "the larger of each two elements"},
    {sema::Builtin::mean, "the mean along one dimension"},
    {sema::Builtin::mean_squared, "the mean of the squared differences"},
    {sema::Builtin::minimum, "the smaller of each two elements"},
    {sema::Builtin::pad, "x with zeros before and after it along one dimension"},
    {sema::Builtin::relu, "each element, or 0 where it is negative"},
    {sema::Builtin::rename, "x with other names of its dimensions: `rename(x, old: new)`"},
    {sema::Builtin::rename_indices, "x with other names of its dimensions: `rename(x, old: new)`"},
    {sema::Builtin::rms_norm, "root mean square 1 along one dimension"},
    {sema::Builtin::rotary, "rotates pairs of elements of the last dimension by their position"},
    {sema::Builtin::shift, "moves elements along one dimension and fills with 0"},
    {sema::Builtin::sigmoid, "1 / (1 + exp(-x)) of each element"},
    {sema::Builtin::silu, "x * sigmoid(x) of each element"},
    {sema::Builtin::sin, "the sine of each element"},
    {sema::Builtin::slice, "neighbouring positions of one dimension: `slice(x, 2..5)`"},
    {sema::Builtin::softmax, "positive elements that add up to 1 along one dimension"},
    {sema::Builtin::softplus, "log(1 + exp(x)) of each element"},
    {sema::Builtin::sqrt, "the square root of each element"},
    {sema::Builtin::square, "each element times itself"},
    {sema::Builtin::sum, "the sum along one dimension"},
    {sema::Builtin::tanh, "the hyperbolic tangent of each element"},
    {sema::Builtin::constant, "weights begin with one value"},
    {sema::Builtin::normal, "weights begin with normally distributed values around 0"},
    {sema::Builtin::ones, "weights begin with 1"},
    {sema::Builtin::uniform, "weights begin with values between -bound and bound"},
    {sema::Builtin::zeros, "weights begin with 0"},
    {sema::Builtin::adamw, "Adam with decoupled weight decay"},
    {sema::Builtin::arrays,
     "samples from a file of numbers, whose columns or arrays have the names of the inputs"},
    {sema::Builtin::bytes, "windows of a text, byte by byte: inputs `tokens` and `targets`"},
    {sema::Builtin::cpu,
     "the train runs on processors of this machine, and its plan has the workspaces of their kernels"},
    {sema::Builtin::cuda,
     "the train runs on GPUs, and its plan has the workspaces of their kernels"},
    {sema::Builtin::cosine, "a rate that warms up, then falls to its floor along a cosine"},
    {sema::Builtin::epoch, "each sample once per epoch, in an order of the epoch's own"},
    {sema::Builtin::every, "after every so many steps, and at the end"},
    {sema::Builtin::f32, "elements of 32 bits"},
    {sema::Builtin::bf16,
     "elements of 16 bits, their sums, gradients and the optimizer's state in f32"},
    {sema::Builtin::f64, "elements of 64 bits"},
    {sema::Builtin::flat, "a rate that warms up, then stays"},
    {sema::Builtin::i32, "token ids of 32 bits with a sign"},
    {sema::Builtin::linear, "a rate that warms up, then falls to its floor along a line"},
    {sema::Builtin::replacement, "each sample of each step drawn by itself"},
    {sema::Builtin::sgd, "stochastic gradient descent"},
    {sema::Builtin::synthetic, "random samples, the same in every run"},
    {sema::Builtin::tokens, "windows of a file of token ids: inputs `tokens` and `targets`"},
    {sema::Builtin::u16, "token ids of 16 bits"},
    {sema::Builtin::u32, "token ids of 32 bits"},
    {sema::Builtin::u8, "token ids of 8 bits"},
    {sema::Builtin::device, "memory and rates of devices, for `piper simulate`"},
#define PROCESSOR(name, f64, f32, bf16, bandwidth) \
  {sema::Builtin::name, "the rates of one such GPU, by its data sheet"},
#include "ir/processors.def"
#undef PROCESSOR
    {sema::Builtin::link, "the link for messages and collectives of an axis, for `piper simulate`"},
    {sema::Builtin::bubble, "the idle fraction of the span"},
    {sema::Builtin::peak_memory, "the bytes of the largest arena of a device"},
    {sema::Builtin::host_memory,
     "the bytes of the largest arena that a device has in the memory of the host, where `offload` brings values"},
    {sema::Builtin::traffic, "the bytes that all ranks send in a step"},
};

struct Argument {
  // of an empty builtin: of all that have no line of their own before
  std::string_view builtin, name, meaning;
};

constexpr Argument kArguments[] = {
    {"adamw", "betas",
     "how much of the averages of gradients and of their squares is kept in a step"},
    {"adamw", "eps", "added to the root of the squares, to avoid a division by 0"},
    {"adamw", "weight_decay",
     "the fraction of a weight, times the learning rate, that each step subtracts, whatever its gradient"},
    {"arrays", "path", "a file of numbers: CSV, `.npz`, `.npy` or `.safetensors`"},
    {"attend", "causal", "each position reads itself and those before it alone"},
    {"attend", "k", "keys; the number of their heads divides that of the queries"},
    {"attend", "q", "queries"},
    {"attend", "scale", "the factor of the products of queries and keys"},
    {"attend", "v", "values, one for each key"},
    {"bytes", "path", "a file, or a folder of text files that are read in sorted order"},
    {"bytes", "seq", "how many bytes a sample has"},
    {"ceil_div", "a", "the dividend"},
    {"ceil_div", "b", "the divisor"},
    {"constant", "value", "the value of each element"},
    {"cosine", "floor", "the rate at the last step"},
    {"cross_entropy", "ignore", "the target whose elements are left out of loss and gradient"},
    {"cross_entropy", "logits", "unnormalised scores of the classes"},
    {"cross_entropy", "targets", "the number of the right class"},
    {"device", "at", "the devices of the line: `pp[3]`"},
    {"device", "memory", "the memory of the device: `80GiB`"},
    {"device", "host",
     "bytes per second to and from the memory of the host, for `offload`: `25GiB`"},
    {"device", "overlap",
     "the factor by which work takes longer while a communication runs on the device"},
    {"device", "bandwidth", "bytes per second between the device and its memory: `3350GiB`"},
    {"device", "efficiency", "the fraction of its rates that the device reaches: 0.5"},
    {"device", "flops", "operations per second, of types that have no rate of their own: `67e12`"},
    {"device", "flops_bf16", "operations per second in bf16"},
    {"device", "flops_f64", "operations per second in f64"},
    {"device", "kind", "a device whose data sheet has the rates: `h100`"},
    {"device", "speed", "a device of speed 2 does work in half the time"},
    {"dropout", "p", "the probability of an element to become 0"},
    {"every", "keep", "how many checkpoints are kept, the newest ones; all of them by default"},
    {"every", "steps", "the number of steps from one time to the next"},
    {"held", "devices", "devices, as `place` has them: `p[r]`"},
    {"held", "work", "the parts of a `partition`: `stage`"},
    {"iota", "first", "the number of the first position"},
    {"iota", "like", "the tensor whose shape the result has"},
    {"iota", "step", "from one position to the next"},
    {"left", "of", "an operation of a cursor, `F a`, or a pass alone, `BW`"},
    {"linear", "floor", "the rate at the last step"},
    {"link", "bandwidth", "bytes per second, in each direction: `50GiB`"},
    {"link", "latency", "seconds before the first byte arrives: `5us`"},
    {"link", "shared", "the number of neighbouring devices that share one link in equal parts"},
    {"lookup", "indices", "which rows"},
    {"lookup", "table", "a tensor, whose first dimension is looked up"},
    {"normal", "deviation", "the standard deviation"},
    {"pad", "after", "how many zeros after the last position"},
    {"pad", "before", "how many zeros before the first position"},
    {"rotary", "along", "the dimension of the positions"},
    {"rotary", "base", "the slowest pair turns about this many times slower than the fastest"},
    {"sgd", "momentum", "how much of the sum of gradients so far a step keeps"},
    {"sgd", "weight_decay", "how much of a weight is added to its gradient"},
    {"shift", "places", "how far; a negative number goes to the beginning"},
    {"slice", "part", "the positions, as a range: `2..5`"},
    {"synthetic", "classes", "integers of the data are below this one"},
    {"tokens", "dtype", "the type of the ids in a file without a header; `u16` by default"},
    {"tokens", "path",
     "a file of token ids: `.bin`, `.npy` or Megatron's `.idx`; or a folder of such files"},
    {"tokens", "seq", "how many tokens a sample has"},
    {"uniform", "bound", "how far from 0 a value can be"},
    {"", "a", "the first operand"},
    {"", "along", "the dimension that it works on"},
    {"", "b", "the second operand"},
    {"", "base", "the rate after the warm-up"},
    {"", "batch", "samples of a step, over all devices"},
    {"", "batches",
     "held-out data: the maximum number of batches, spread evenly; all of them by default"},
    {"", "clip", "the largest norm of all gradients together; larger ones are scaled down to it"},
    {"", "eps", "added to the variance, to avoid a division by 0"},
    {"", "lr",
     "the learning rate: a number, or one that changes over the steps: `cosine(3e-4, warmup: 20)`"},
    {"", "sampling", "the order of training samples: `epoch` or `replacement`"},
    {"", "values", "a list, or numbers beside each other"},
    {"", "warmup", "steps in which the rate rises from 0 to `base`"},
    {"", "x", "the operand"},
};

}  // namespace

std::string_view meaning_of(sema::Builtin builtin) {
  for (const Meaning& row : kMeanings) {
    if (row.builtin == builtin) return row.words;
  }
  return {};
}

std::string_view meaning_of_argument(std::string_view builtin, std::string_view argument) {
  for (const Argument& row : kArguments) {
    if (row.name == argument && (row.builtin == builtin || row.builtin.empty())) return row.meaning;
  }
  return {};
}

}  // namespace piper::lsp
