#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/buffer.h"
#include "core/context.h"
#include "core/dtype.h"
#include "core/param_spec.h"
#include "zero/digest.h"
#include "zero/optimizer_rule.h"
#include "zero/shard_layout.h"

namespace zerofleet {

/// The optimizer's states of the blocks that one rank owns, fp32, and their update. A state's array is laid out like
/// the rank's shard; padding is zero and stays zero.
class ShardedOptimizer {
 public:
  /// `layout` and `specs` must outlive the object.
  ShardedOptimizer(const Context& context, const ShardLayout& layout, int rank, std::span<const ParamSpec> specs,
                   std::unique_ptr<OptimizerRule> rule);

  std::span<const StateId> states() const { return rule_->states(); }
  std::span<float> state(StateId id) { return states_[static_cast<std::size_t>(id)].as<float>(); }
  std::span<const float> state(StateId id) const { return states_[static_cast<std::size_t>(id)].as<float>(); }

  /// Master from the seed, all other states zero.
  void initialize(std::uint64_t seed);

  /// Updates the owned blocks of `buckets`: `grad_shard` is laid out like the states, `params` is the flat array of all
  /// blocks in `param_dtype`, of which the owned elements are written. Groups: 0 with decay, 1 without.
  void update(const Range& buckets, std::span<const float> grad_shard, std::span<std::byte> params, DType param_dtype,
              const UpdateScalars& scalars);
  /// Writes the owned blocks of `buckets` to `params`, rounded from the master.
  void write_params(const Range& buckets, std::span<std::byte> params, DType param_dtype) const;

  Digest128 digest() const;
  std::size_t state_bytes() const;

 private:
  /// Owned blocks that lie together, in one bucket and with one weight-decay setting.
  struct Run {
    std::int64_t bucket = 0;
    std::int64_t first_block = 0;   // of the flat array
    std::int64_t num_blocks = 0;
    std::int64_t shard_offset = 0;  // in elements
    bool decay = true;
  };

  void add_runs(std::int64_t bucket, std::int64_t shard_offset);
  std::span<const Run> runs_of(const Range& buckets) const;

  Context context_;
  const ShardLayout& layout_;
  int rank_;
  std::span<const ParamSpec> specs_;
  std::unique_ptr<OptimizerRule> rule_;
  std::vector<Buffer> states_;  // by StateId; empty where the rule does not use it
  std::vector<Run> runs_;       // bucket by bucket
  std::vector<std::size_t> first_runs_;  // (num_buckets + 1)
};

}  // namespace zerofleet
