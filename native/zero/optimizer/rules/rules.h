#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "kernels/optimizer/optimizer_segment.h"
#include "zero/optimizer/optimizer_options.h"
#include "zero/optimizer/optimizer_rule.h"

// For make_rule.cc and the files beside this one: one file per optimizer.
namespace zerofleet {

#define ZF_MAKE(type, name, constants) \
  std::unique_ptr<OptimizerRule> make_##name##_rule(const OptimizerOptions& options);
ZF_OPTIMIZERS(ZF_MAKE)
#undef ZF_MAKE

/// Converts segments for the kernels; states[i] of a kernel is the i-th of `states`.
std::vector<OptimizerSegment> kernel_segments(std::span<const UpdateSegment> segments, const UpdateScalars& scalars,
                                              std::initializer_list<StateId> states);

/// Returns constants(group) for each parameter group: the scalars of a kernel.
template <class Constants>
auto per_group(const UpdateScalars& scalars, const Constants& constants) {
  std::vector<decltype(constants(GroupScalars{}))> groups;
  groups.reserve(scalars.groups.size());
  for (const GroupScalars& group : scalars.groups) groups.push_back(constants(group));
  return groups;
}

}  // namespace zerofleet
