#include "zero/optimizer/rules/rules.h"

namespace zerofleet {

std::vector<OptimizerSegment> kernel_segments(std::span<const UpdateSegment> segments, const UpdateScalars& scalars,
                                              std::initializer_list<StateId> states) {
  std::vector<OptimizerSegment> arrays;
  arrays.reserve(segments.size());
  for (const UpdateSegment& segment : segments) {
    OptimizerSegment& array = arrays.emplace_back();
    array.master = segment.master;
    std::size_t next = 0;
    for (const StateId id : states) array.states[next++] = segment.states[static_cast<std::size_t>(id)];
    array.grad = segment.grad;
    array.params = segment.params;
    array.numel = segment.numel;
    array.group = segment.group;
    array.average = {segment.states[static_cast<std::size_t>(StateId::kEma)], scalars.ema_weight};
  }
  return arrays;
}

}  // namespace zerofleet
