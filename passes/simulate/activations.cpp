#include "passes/simulate/activations.h"

namespace piper::passes {

using namespace dag;

namespace {

constexpr Pass kBackwards[] = {Pass::B, Pass::BI, Pass::BW};

}  // namespace

Activations::Activations(const Dag& dag, const WorkFractions& fractions,
                         const OperationCosts& costs)
    : dag_(dag), fractions_(fractions), costs_(costs), instances_(dag), work_(dag) {}

double Activations::part(const Node& node) const {
  switch (node.pass) {
    case Pass::F: return sibling(node, Pass::R).valid() ? costs_.keep : 1;
    case Pass::R: return 1 - costs_.keep;
    case Pass::B: return 1;
    case Pass::BI: return 1 - costs_.w;
    case Pass::BW: return costs_.w;
  }
  return 0;
}

double Activations::from_start(const Node& node) const {
  if (is_backward(node.pass)) return 0;
  for (const Pass pass : kBackwards) {
    if (sibling(node, pass).valid()) return part(node) * fractions_.of(node, Pass::F);
  }
  return 0;  // it is never read
}

double Activations::until_finish(const Node& node) const {
  if (is_backward(node.pass)) return part(node) * fractions_.of(node, Pass::F);
  double elsewhere = 0;
  for (const Pass pass : kBackwards) {
    const NodeId backward = sibling(node, pass);
    if (backward.valid() && dag_.node(backward).devices != node.devices)
      elsewhere += part(dag_.node(backward));
  }
  return elsewhere * part(node) * fractions_.of(node, Pass::F);
}

void Activations::arrivals(const Node& backward,
                           const std::function<void(NodeId maker, double part)>& each) const {
  for (const Pass pass : {Pass::F, Pass::R}) {
    const NodeId maker = sibling(backward, pass);
    if (maker.valid() && dag_.node(maker).devices != backward.devices)
      each(maker, part(backward) * part(dag_.node(maker)) * fractions_.of(backward, Pass::F));
  }
}

}  // namespace piper::passes
