#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "core/device/host_windows.h"
#include "core/dtype.h"
#include "zero/offload/offload.h"
#include "zero/optimizer/optimizer_rule.h"
#include "zero/partition/digest.h"
#include "zero/partition/param_partition.h"
#include "zero/partition/shard_layout.h"

namespace zerofleet {

/// The optimizer's states of the blocks that one rank owns of one subset of the parameters. A state's array is laid out
/// like the rank's shard; padding is zero and stays zero. The master is fp32 or fp16, all other states are fp32;
/// readers and writers of values through this class see fp32 (fp16 widens exactly).
class StateShard {
 public:
  using InitialValue = std::function<float(StateId)>;

  /// All referenced objects must outlive this one. `ids` begins with the master.
  StateShard(StatePlacement& placement, HostWindows& windows, const ShardLayout& layout, int rank,
             const ParamSubset& subset, std::span<const StateId> ids, DType master_dtype);

  std::span<const StateId> ids() const { return ids_; }
  DType master_dtype() const { return master_dtype_; }
  /// Stretches of parameters (local numbers) in the shard, ascending.
  std::span<const ShardSlice> slices() const { return slices_; }
  /// The memory of a state from an element of the shard on; null for a state that is not kept.
  std::byte* data(StateId id, std::int64_t shard_offset);

  /// The master from counter-based random numbers keyed by (seed, canonical parameter, element).
  void initialize_master(std::uint64_t seed);
  /// All states but the master.
  void reset_moments(const InitialValue& initial_value);

  /// Elements [begin, begin + values.size()) of a parameter (local number).
  /// Throw Error{"slice_not_owned"} where they are not in one owned stretch of a state that is kept.
  void copy(StateId id, std::size_t param, std::int64_t begin, std::span<float> values) const;
  void load(StateId id, std::size_t param, std::int64_t begin, std::span<const float> values);

  /// Sum over states and blocks, with canonical block numbers.
  Digest128 digest() const;

  std::size_t master_bytes() const { return buffer(StateId::kMaster).num_bytes(); }
  std::size_t moment_bytes() const;

 private:
  const Buffer& buffer(StateId id) const { return buffers_[static_cast<std::size_t>(id)]; }
  Buffer& buffer(StateId id) { return buffers_[static_cast<std::size_t>(id)]; }
  DType dtype_of(StateId id) const { return id == StateId::kMaster ? master_dtype_ : DType::kF32; }
  std::int64_t offset_of(StateId id, std::size_t param, const Range& elements) const;
  /// Elements of the shard, from and to host memory.
  void fetch(StateId id, std::int64_t shard_offset, std::span<float> values) const;
  void store(StateId id, std::int64_t shard_offset, std::span<const float> values);
  /// Calls fill(slice, first element of the parameter, values) for all elements of the shard, chunk by chunk.
  template <class Fill>
  void store_all(StateId id, Fill&& fill);

  StatePlacement& placement_;
  HostWindows& windows_;
  Context host_;  // for values in transit
  const ParamSubset& subset_;
  std::vector<StateId> ids_;
  DType master_dtype_;
  std::vector<ShardSlice> slices_;
  std::array<Buffer, kMaxStates> buffers_;  // by StateId; empty where not kept
};

}  // namespace zerofleet
