#pragma once
// Random models as `.pipe` text.
//
// Guarantees: the same stream gives the same text; the text is legal, every value reaches a loss
// and every weight a value, so that it trains. Values flow through chains, skips and branches that
// meet again, and in some models everything after one value reads it; weights are shared between
// calls, calls nest; there are one to three losses over features, vectors of a sequence, or
// samples. Some models rename the looked-up integers or the targets.
//
//   const RandomModel model = random_model(random);
//   model.text          // model layer0(x: tensor[batch, wide]) -> tensor[batch, wide] { ... }  model net(wide: int) { ... }
//   "train t = " + model.call + " on grid { data: synthetic(batch: 8" + model.extents + ") ..."

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/random_cases.h"

namespace piper::test {

struct RandomModel {
  std::string text;     // declarations; the outermost model is `net`
  std::string call;     // `net(wide: 4)`
  std::string extents;  // of the data, after the batch: `, seq: 3, classes: 5`
  // The calls directly inside `net`, with names that no other call has.
  std::vector<std::pair<std::string, std::uint32_t>> regions;
};

struct RandomModelOptions {
  std::uint32_t stages = 0;  // > 0: `net` marks that many regions `stage`
  bool dropout = true;       // some models draw random numbers
};

RandomModel random_model(Random& random, const RandomModelOptions& options = {});

}  // namespace piper::test
