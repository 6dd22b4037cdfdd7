#include "zero/optimizer/state_shard.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "core/error.h"
#include "kernels/flat/cast.h"
#include "zero/partition/param_init.h"

namespace zerofleet {
namespace {

// Largest number of values that are copied into or out of a state at a time.
constexpr std::int64_t kChunkNumel = 64 * kBlockNumel;

/// Calls body(begin, count) for chunks of `numel` elements.
template <class Body>
void for_each_chunk(std::int64_t numel, std::int64_t chunk, Body&& body) {
  for (std::int64_t begin = 0; begin < numel; begin += chunk) body(begin, std::min(chunk, numel - begin));
}

}  // namespace

StateShard::StateShard(StatePlacement& placement, HostWindows& windows, const ShardLayout& layout, int rank,
                       const ParamSubset& subset, std::span<const StateId> ids, DType master_dtype)
    : context_(placement.context()),
      windows_(windows),
      host_{Device{}, context_.pool, context_.cpu_isa},
      subset_(subset),
      ids_(ids.begin(), ids.end()),
      master_dtype_(master_dtype),
      slices_(layout.shard_slices(rank)) {
  const auto numel = static_cast<std::size_t>(layout.shard_num_blocks(rank) * kBlockNumel);
  for (const StateId id : ids_) {
    buffer(id) = placement.allocate(numel * size_of(dtype_of(id)), static_cast<int>(id));
  }
}

StateShard::StateShard(const Context& context, HostWindows& windows, const ShardLayout& layout, int rank,
                       const ParamSubset& subset, ParamGather& params)
    : context_(context),
      windows_(windows),
      host_{Device{}, context.pool, context.cpu_isa},
      subset_(subset),
      ids_{StateId::kMaster},
      master_dtype_(params.dtype()),
      slices_(layout.shard_slices(rank)),
      frozen_(&params) {}

std::byte* StateShard::data(StateId id, std::int64_t shard_offset) {
  Buffer& state = buffer(id);
  return state.empty() ? nullptr : state.data() + static_cast<std::size_t>(shard_offset) * size_of(dtype_of(id));
}

const std::byte* StateShard::at(StateId id, const ShardSlice& slice, std::int64_t element) const {
  const std::size_t width = size_of(dtype_of(id));
  if (frozen_ != nullptr) return frozen_->data(slice.param) + static_cast<std::size_t>(element) * width;
  return buffer(id).data() + static_cast<std::size_t>(slice.shard_offset + element - slice.elements.begin) * width;
}

void StateShard::fetch(StateId id, const ShardSlice& slice, std::int64_t begin, std::span<float> values) const {
  const std::size_t width = size_of(dtype_of(id));
  windows_.read(context_, {at(id, slice, begin), values.size() * width}, [&](std::size_t offset, auto bytes) {
    cast_to_f32(host_, bytes, dtype_of(id), values.subspan(offset / width, bytes.size() / width));
  });
}

void StateShard::store(StateId id, const ShardSlice& slice, std::int64_t begin, std::span<const float> values) {
  const std::size_t width = size_of(dtype_of(id));
  std::byte* target = frozen_ != nullptr ? frozen_->data_to_write(slice.param) + static_cast<std::size_t>(begin) * width
                                         : const_cast<std::byte*>(at(id, slice, begin));
  windows_.write(context_, {target, values.size() * width}, [&](std::size_t offset, std::span<std::byte> bytes) {
    cast_from_f32(host_, values.subspan(offset / width, bytes.size() / width), dtype_of(id), bytes);
  });
}

template <class Fill>
void StateShard::store_all(StateId id, std::span<const ShardSlice> slices, Fill&& fill) {
  std::vector<float> values;
  for (const ShardSlice& slice : slices) {
    for_each_chunk(slice.elements.size(), kChunkNumel, [&](std::int64_t begin, std::int64_t count) {
      values.resize(static_cast<std::size_t>(count));
      host_.pool->parallel_for(num_blocks_of(count), [&](std::int64_t block, int) {
        const std::int64_t first = block * kBlockNumel, size = std::min(kBlockNumel, count - first);
        fill(slice, slice.elements.begin + begin + first,
             std::span(values).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(size)));
      });
      store(id, slice, slice.elements.begin + begin, values);
    });
  }
}

void StateShard::initialize_master(std::uint64_t seed, std::size_t first) {
  const auto fresh =
      std::ranges::find_if(slices_, [&](const ShardSlice& slice) { return subset_.params[slice.param] >= first; });
  store_all(StateId::kMaster, {fresh, slices_.end()},
            [&](const ShardSlice& slice, std::int64_t begin, std::span<float> values) {
              init_param(subset_.specs[slice.param], seed, subset_.params[slice.param], begin, values);
            });
}

void StateShard::reset_moments(const InitialValue& initial_value) {
  for (const StateId id : ids_) {
    if (id == StateId::kMaster) continue;
    const float initial = initial_value(id);
    store_all(id, slices_,
              [&](const ShardSlice&, std::int64_t, std::span<float> values) { std::ranges::fill(values, initial); });
  }
}

const ShardSlice& StateShard::slice_of(StateId id, std::size_t param, const Range& elements) const {
  const auto after =
      std::ranges::upper_bound(slices_, std::pair(param, elements.begin), {},
                               [](const ShardSlice& slice) { return std::pair(slice.param, slice.elements.begin); });
  if (is_kept(id) && after != slices_.begin()) {
    const ShardSlice& slice = *std::prev(after);
    if (slice.param == param && elements.end <= slice.elements.end) return slice;
  }
  throw Error("slice_not_owned", std::string(name_of(id)) + ": elements " + std::to_string(elements.begin) + " to " +
                                     std::to_string(elements.end) + " of '" + subset_.specs[param].name +
                                     "' are not in one slice of this rank");
}

void StateShard::copy(StateId id, std::size_t param, std::int64_t begin, std::span<float> values) const {
  fetch(id, slice_of(id, param, {begin, begin + static_cast<std::int64_t>(values.size())}), begin, values);
}

void StateShard::load(StateId id, std::size_t param, std::int64_t begin, std::span<const float> values) {
  store(id, slice_of(id, param, {begin, begin + static_cast<std::int64_t>(values.size())}), begin, values);
}

Digest128 StateShard::digest() const {
  Digest128 sum;
  std::vector<float> copied;
  for (const StateId id : ids_) {
    const bool direct = dtype_of(id) == DType::kF32;  // where it lies, on whatever device
    for (const ShardSlice& slice : slices_) {
      const std::int64_t first_block = subset_.first_blocks[slice.param] + slice.elements.begin / kBlockNumel;
      // A slice begins with a block, and behind its last element the shard is padded to a whole one.
      const std::int64_t padded = num_blocks_of(slice.elements.size()) * kBlockNumel;
      for_each_chunk(padded, direct ? padded : kChunkNumel, [&](std::int64_t begin, std::int64_t count) {
        std::span<const float> values;
        const std::int64_t element = slice.elements.begin + begin;
        if (direct) {
          values = {reinterpret_cast<const float*>(at(id, slice, element)), static_cast<std::size_t>(count)};
        } else {
          copied.resize(static_cast<std::size_t>(count));
          fetch(id, slice, element, copied);
          values = copied;
        }
        const Context& context = direct ? context_ : host_;
        sum += digest_blocks(context, static_cast<std::uint8_t>(id), first_block + begin / kBlockNumel, values);
      });
    }
  }
  return sum;
}

std::size_t StateShard::moment_bytes() const {
  std::size_t num_bytes = 0;
  for (const StateId id : ids_) num_bytes += id == StateId::kMaster ? 0 : buffer(id).num_bytes();
  return num_bytes;
}

}  // namespace zerofleet
