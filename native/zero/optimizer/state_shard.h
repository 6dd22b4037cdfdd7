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

/// Optimizer states of the blocks that one rank owns in a subset of the parameters.
///
/// A state's array has the layout of the rank's shard; padding is always zero. The master is fp32 or fp16, all other
/// states are fp32. Values are read and written as fp32, to which fp16 widens exactly. Frozen parameters have no other
/// state, and no memory for a master: their master is the owned part of the parameters themselves, in their dtype.
class StateShard {
 public:
  using InitialValue = std::function<float(StateId)>;

  /// All referenced objects must outlive this one. `ids`: the states, the master first.
  StateShard(StatePlacement& placement, HostWindows& windows, const ShardLayout& layout, int rank,
             const ParamSubset& subset, std::span<const StateId> ids, DType master_dtype);
  /// Makes a shard of frozen parameters. Their memory is that of the device of `context`.
  StateShard(const Context& context, HostWindows& windows, const ShardLayout& layout, int rank,
             const ParamSubset& subset, ParamGather& params);

  std::span<const StateId> ids() const { return ids_; }
  DType master_dtype() const { return master_dtype_; }
  /// Slices of parameters (local numbers) in the shard, ascending.
  std::span<const ShardSlice> slices() const { return slices_; }
  /// Returns the memory of a state from an element of the shard on; null for a state that is not kept.
  std::byte* data(StateId id, std::int64_t shard_offset);

  /// Sets the master of canonical parameters from `first` on to random numbers, keyed by (seed, canonical parameter,
  /// element).
  void initialize_master(std::uint64_t seed, std::size_t first = 0);
  /// Resets all states except the master.
  void reset_moments(const InitialValue& initial_value);

  /// Copies or loads elements [begin, begin + values.size()) of a parameter (local number). Throws
  /// Error{"slice_not_owned"} unless they lie in one owned slice of a kept state.
  void copy(StateId id, std::size_t param, std::int64_t begin, std::span<float> values) const;
  void load(StateId id, std::size_t param, std::int64_t begin, std::span<const float> values);

  /// Sum over states and blocks. Blocks have canonical numbers.
  Digest128 digest() const;

  std::size_t master_bytes() const { return buffer(StateId::kMaster).num_bytes(); }
  std::size_t moment_bytes() const;

 private:
  const Buffer& buffer(StateId id) const { return buffers_[static_cast<std::size_t>(id)]; }
  Buffer& buffer(StateId id) { return buffers_[static_cast<std::size_t>(id)]; }
  DType dtype_of(StateId id) const { return id == StateId::kMaster ? master_dtype_ : DType::kF32; }
  bool is_kept(StateId id) const { return frozen_ != nullptr ? id == StateId::kMaster : !buffer(id).empty(); }
  /// Returns the slice that contains these elements of a parameter.
  const ShardSlice& slice_of(StateId id, std::size_t param, const Range& elements) const;
  /// Returns the memory of a state from an element of the slice's parameter on.
  const std::byte* at(StateId id, const ShardSlice& slice, std::int64_t element) const;
  /// Copies elements of a slice's parameter from and to host memory.
  void fetch(StateId id, const ShardSlice& slice, std::int64_t begin, std::span<float> values) const;
  void store(StateId id, const ShardSlice& slice, std::int64_t begin, std::span<const float> values);
  /// Calls fill(slice, first element of the parameter, values) for all elements of the slices, in chunks, and stores
  /// the values.
  template <class Fill>
  void store_all(StateId id, std::span<const ShardSlice> slices, Fill&& fill);

  Context context_;  // of the states' memory
  HostWindows& windows_;
  Context host_;  // for values in transit
  const ParamSubset& subset_;
  std::vector<StateId> ids_;
  DType master_dtype_;
  std::vector<ShardSlice> slices_;
  ParamGather* frozen_ = nullptr;           // null: the parameters are trained
  std::array<Buffer, kMaxStates> buffers_;  // by StateId; empty if not kept, and for frozen parameters
};

}  // namespace zerofleet
