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
#include "zero/exchange/param_gather.h"
#include "zero/offload/offload.h"
#include "zero/optimizer/optimizer_rule.h"
#include "zero/partition/digest.h"
#include "zero/partition/param_partition.h"
#include "zero/partition/shard_layout.h"

namespace zerofleet {

/// The optimizer's states of the blocks that one rank owns of one subset of the parameters. A state's array is laid out
/// like the rank's shard; padding is zero and stays zero. The master is fp32 or fp16, all other states are fp32;
/// readers and writers of values through this class see fp32 (fp16 widens exactly). Frozen parameters have no other state
/// and no memory for the master: it is the owned part of the parameters themselves, in their dtype.
class StateShard {
 public:
  using InitialValue = std::function<float(StateId)>;

  /// All referenced objects must outlive this one. `ids` begins with the master.
  StateShard(StatePlacement& placement, HostWindows& windows, const ShardLayout& layout, int rank,
             const ParamSubset& subset, std::span<const StateId> ids, DType master_dtype);
  /// A shard of frozen parameters, whose memory is that of the device of `context`.
  StateShard(const Context& context, HostWindows& windows, const ShardLayout& layout, int rank, const ParamSubset& subset,
             ParamGather& params);

  std::span<const StateId> ids() const { return ids_; }
  DType master_dtype() const { return master_dtype_; }
  /// Stretches of parameters (local numbers) in the shard, ascending.
  std::span<const ShardSlice> slices() const { return slices_; }
  /// The memory of a state from an element of the shard on; null for a state that is not kept.
  std::byte* data(StateId id, std::int64_t shard_offset);

  /// The master of canonical parameters from `first` on, from counter-based random numbers keyed by (seed, canonical parameter, element).
  void initialize_master(std::uint64_t seed, std::size_t first = 0);
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
  bool is_kept(StateId id) const { return frozen_ != nullptr ? id == StateId::kMaster : !buffer(id).empty(); }
  /// The slice that has these elements of a parameter.
  const ShardSlice& slice_of(StateId id, std::size_t param, const Range& elements) const;
  /// The memory of a state from an element of the slice's parameter on.
  const std::byte* at(StateId id, const ShardSlice& slice, std::int64_t element) const;
  /// Elements of a slice's parameter, from and to host memory.
  void fetch(StateId id, const ShardSlice& slice, std::int64_t begin, std::span<float> values) const;
  void store(StateId id, const ShardSlice& slice, std::int64_t begin, std::span<const float> values);
  /// Calls fill(slice, first element of the parameter, values) for all elements of the slices, chunk by chunk.
  template <class Fill>
  void store_all(StateId id, std::span<const ShardSlice> slices, Fill&& fill);

  Context context_;  // of the memory of the states
  HostWindows& windows_;
  Context host_;  // for values in transit
  const ParamSubset& subset_;
  std::vector<StateId> ids_;
  DType master_dtype_;
  std::vector<ShardSlice> slices_;
  ParamGather* frozen_ = nullptr;           // null: the parameters are trained
  std::array<Buffer, kMaxStates> buffers_;  // by StateId; empty where not kept, and of frozen parameters
};

}  // namespace zerofleet
