#pragma once
// Random legal programs: a model and a strategy, drawn widely.
//
// Guarantees: the same stream gives the same program; every program compiles. Models are chains, branches, tied weights and several
// losses; placements are lines, loops, V shapes, uneven, per instance, per pass side, in two copies; samples are cut into microbatches and replicas.
// With `order`, each rank runs one of all legal linearisations of its work, drawn by walking the data dependencies at random.

#include <string>

#include "ir/directive/directive.h"
#include "ir/tensor/graph.h"
#include "tests/support/random_cases.h"
#include "tests/support/sample_models.h"

namespace piper::test {

struct RandomProgram {
  tensor::Graph model;
  directive::Strategy strategy;
  std::string story;  // what was drawn, for failure messages
};

struct RandomProgramOptions {
  bool order = true;       // half of the programs have one; without, the default order is left to the compiler
  bool halves = true;      // some backwards are split into BI and BW
  std::uint32_t max_devices = 8;
};

RandomProgram random_program(Context& context, Random& random, const RandomProgramOptions& options = {});

}  // namespace piper::test
