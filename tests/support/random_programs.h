#pragma once
// Random legal programs as `.pipe` text, read by the front end.
//
// Guarantees: the same stream gives the same text; every program compiles and trains, in f64 unless
// asked otherwise, on synthetic data whose samples all differ. Models (random_models.h) have
// chains, skips, branches, shared weights and one to three losses; they are partitioned by cost, by
// sizes or at their marks, or placed call by call. Placements are lines, loops, V shapes, uneven,
// per instance, with a separate pass, in two copies; samples are split into microbatches and over
// one or two axes of replicas, gradients go in buckets of any size. With `order`, each rank runs
// one of all legal linearisations of its work (random_orders.h). Optimizers, learning rates,
// clipping, skipped steps, averages, streams, windows, recomputation, frozen and tuned parameters
// are random, too.
//
//   const RandomProgram program = random_program(context, random);
//   SCOPED_TRACE(program.source);

#include <string>

#include "ir/directive/directive.h"
#include "ir/tensor/graph.h"
#include "tests/support/random_cases.h"

namespace piper::test {

struct RandomProgram {
  std::string source;  // the whole text
  tensor::Graph model;
  directive::Strategy strategy;
};

struct RandomProgramOptions {
  // Most programs have one; without, the compiler chooses the default order.
  bool order = true;
  bool halves = true;   // some backwards are split into BI and BW
  bool dropout = true;  // some models draw random numbers
  bool streams = true;  // some put communication on separate streams
  std::uint32_t max_devices = 8;
  const char* dtype = "f64";
};

RandomProgram random_program(Context& context, Random& random,
                             const RandomProgramOptions& options = {});

/// The only train of a text, through parser, analysis and lowering; fails the test, with an empty
/// model, if there is a diagnostic of any kind.
RandomProgram read_program(Context& context, std::string source);
/// The text with one more line in its train.
std::string with_line(const std::string& source, const std::string& line);

}  // namespace piper::test
