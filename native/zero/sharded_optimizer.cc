#include "zero/sharded_optimizer.h"

#include <algorithm>
#include <utility>

#include "kernels/cast.h"
#include "zero/param_init.h"

namespace zerofleet {
namespace {

std::span<float> part(std::span<float> shard, std::int64_t begin, std::int64_t numel) {
  return shard.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(numel));
}

}  // namespace

ShardedOptimizer::ShardedOptimizer(const Context& context, const ShardLayout& layout, int rank,
                                   std::span<const ParamSpec> specs, std::unique_ptr<OptimizerRule> rule)
    : context_(context), layout_(layout), rank_(rank), specs_(specs), rule_(std::move(rule)), states_(kMaxStates) {
  const auto shard_bytes = static_cast<std::size_t>(layout.shard_num_blocks(rank) * kBlockNumel) * sizeof(float);
  for (const StateId id : rule_->states()) {
    const auto index = static_cast<std::size_t>(id);
    states_[index] = Buffer(context.device, shard_bytes, static_cast<int>(index));
  }
  for (std::int64_t bucket = 0; bucket < layout.num_buckets(); ++bucket) {
    first_runs_.push_back(runs_.size());
    add_runs(bucket, layout.shard_offset(bucket, rank));
  }
  first_runs_.push_back(runs_.size());
}

void ShardedOptimizer::add_runs(std::int64_t bucket, std::int64_t shard_offset) {
  const Range owned = layout_.owned_blocks(bucket, rank_);
  for (std::int64_t block = owned.begin; block < owned.end;) {
    const std::size_t param = layout_.param_of_block(block);
    const Range piece = intersect(owned, layout_.param_blocks(param));
    const bool decay = specs_[param].group == ParamGroup::kDecay;
    if (block > owned.begin && runs_.back().decay == decay) {
      runs_.back().num_blocks += piece.size();
    } else {
      runs_.push_back({bucket, block, piece.size(), shard_offset, decay});
    }
    shard_offset += piece.size() * kBlockNumel;
    block = piece.end;
  }
}

std::span<const ShardedOptimizer::Run> ShardedOptimizer::runs_of(const Range& buckets) const {
  const std::size_t begin = first_runs_[static_cast<std::size_t>(buckets.begin)];
  return std::span(runs_).subspan(begin, first_runs_[static_cast<std::size_t>(buckets.end)] - begin);
}

void ShardedOptimizer::initialize(std::uint64_t seed) {
  for (const StateId id : states()) std::ranges::fill(state(id), 0.0F);
  const auto master = state(StateId::kMaster);
  for (const ShardSlice& slice : layout_.shard_slices(rank_)) {
    const std::int64_t num_tasks = (slice.elements.size() + kBlockNumel - 1) / kBlockNumel;
    context_.pool->parallel_for(num_tasks, [&](std::int64_t task, int) {
      const std::int64_t begin = task * kBlockNumel, numel = std::min(kBlockNumel, slice.elements.size() - begin);
      init_param(specs_[slice.param], seed, slice.param, slice.elements.begin + begin,
                 part(master, slice.shard_offset + begin, numel));
    });
  }
}

void ShardedOptimizer::update(const Range& buckets, std::span<const float> grad_shard, std::span<std::byte> params,
                              DType param_dtype, const UpdateScalars& scalars) {
  std::vector<UpdateSegment> segments;
  for (const Run& run : runs_of(buckets)) {
    UpdateSegment segment;
    for (const StateId id : states()) {
      segment.states[static_cast<std::size_t>(id)] = state(id).data() + run.shard_offset;
    }
    segment.master = reinterpret_cast<std::byte*>(segment.states[static_cast<std::size_t>(StateId::kMaster)]);
    segment.grad = reinterpret_cast<const std::byte*>(grad_shard.data() + run.shard_offset);
    segment.params = params.data() + static_cast<std::size_t>(run.first_block * kBlockNumel) * size_of(param_dtype);
    segment.numel = run.num_blocks * kBlockNumel;
    segment.group = run.decay ? 0 : 1;
    segments.push_back(segment);
  }
  rule_->update(context_, segments, {DType::kF32, DType::kF32, param_dtype}, scalars);
}

void ShardedOptimizer::write_params(const Range& buckets, std::span<std::byte> params, DType param_dtype) const {
  const std::size_t width = size_of(param_dtype);
  const auto master = state(StateId::kMaster);
  for (const Run& run : runs_of(buckets)) {
    const auto numel = static_cast<std::size_t>(run.num_blocks * kBlockNumel);
    const auto begin = static_cast<std::size_t>(run.first_block * kBlockNumel) * width;
    cast_from_f32(context_, master.subspan(static_cast<std::size_t>(run.shard_offset), numel), param_dtype,
                  params.subspan(begin, numel * width));
  }
}

Digest128 ShardedOptimizer::digest() const {
  Digest128 sum;
  for (const StateId id : states()) {
    for (const Run& run : runs_) {
      const auto values = state(id).subspan(static_cast<std::size_t>(run.shard_offset),
                                            static_cast<std::size_t>(run.num_blocks * kBlockNumel));
      sum += digest_blocks(context_, static_cast<std::uint8_t>(id), run.first_block, values);
    }
  }
  return sum;
}

std::size_t ShardedOptimizer::state_bytes() const {
  std::size_t num_bytes = 0;
  for (const Buffer& buffer : states_) num_bytes += buffer.num_bytes();
  return num_bytes;
}

}  // namespace zerofleet
