#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/device/context.h"
#include "core/range.h"
#include "test/zero/narrow_values.h"
#include "test/zero/on_device.h"
#include "zero/optimizer/optimizer_rule.h"
#include "zero/partition/shard_layout.h"

namespace zerofleet::test {

/// A parameter with all arrays that a rule updates, in the storage that `dtypes` says.
struct OptimizerArrays {
  OptimizerDTypes dtypes;
  std::vector<std::byte> master, grad, params;
  std::vector<StateId> ids;                // of `states`
  std::vector<std::vector<float>> states;  // besides the master

  OptimizerArrays(const OptimizerRule& rule, const OptimizerDTypes& storage, std::span<const float> initial)
      : dtypes(storage),
        master(stored(initial, storage.master)),
        grad(initial.size() * size_of(storage.grad)),
        params(initial.size() * size_of(storage.params)) {
    for (const StateId id : rule.states().subspan(1)) {
      ids.push_back(id);
      states.emplace_back(initial.size(), rule.initial_value(id));
    }
  }

  std::size_t numel() const { return master.size() / size_of(dtypes.master); }

  /// The arrays of elements [part.begin, part.end).
  UpdateSegment segment(const Range& part, bool with_params = true) {
    const auto begin = static_cast<std::size_t>(part.begin);
    UpdateSegment segment;
    segment.master = master.data() + begin * size_of(dtypes.master);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      segment.states[static_cast<std::size_t>(ids[i])] = states[i].data() + begin;
    }
    segment.grad = grad.data() + begin * size_of(dtypes.grad);
    if (with_params) segment.params = params.data() + begin * size_of(dtypes.params);
    segment.numel = part.size();
    segment.first_stat = part.begin / kBlockNumel;
    return segment;
  }
};

/// The segment as the context's device finds it.
inline UpdateSegment mirrored(Mirror& there, UpdateSegment segment, const OptimizerDTypes& dtypes) {
  const auto numel = static_cast<std::size_t>(segment.numel);
  segment.master = there.inout(std::span(segment.master, numel * size_of(dtypes.master))).data();
  segment.grad = there.in(std::span(segment.grad, numel * size_of(dtypes.grad))).data();
  if (segment.params != nullptr)
    segment.params = there.inout(std::span(segment.params, numel * size_of(dtypes.params))).data();
  for (float*& state : segment.states) {
    if (state != nullptr) state = there.inout(std::span(state, numel)).data();
  }
  return segment;
}

/// Runs one step of a parameter that lies in `arrays`, with the norms that the rule needs, on the context's device.
inline void run_rule(const OptimizerRule& rule, const Context& context, std::span<const UpdateSegment> arrays,
                     const OptimizerDTypes& dtypes, const UpdateScalars& scalars) {
  Mirror there(context);
  std::vector<UpdateSegment> segments;
  for (const UpdateSegment& segment : arrays) segments.push_back(mirrored(there, segment, dtypes));
  if (rule.needs_param_norms()) {
    std::int64_t num_blocks = 0;
    for (const UpdateSegment& segment : segments) num_blocks += segment.numel / kBlockNumel;
    std::vector<double> weights(static_cast<std::size_t>(num_blocks)), updates(weights.size());
    rule.prepare(context, segments, dtypes, scalars, weights, updates);
    double weight = 0, update = 0;
    for (const double sum : weights) weight += sum;
    for (const double sum : updates) update += sum;
    const float ratio = rule.trust_ratio(std::sqrt(weight), std::sqrt(update));
    for (UpdateSegment& segment : segments) segment.trust_ratio = ratio;
  }
  rule.update(context, segments, dtypes, scalars);
  there.fetch();
}

}  // namespace zerofleet::test
