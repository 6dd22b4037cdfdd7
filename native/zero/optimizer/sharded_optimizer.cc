#include "zero/optimizer/sharded_optimizer.h"

namespace zerofleet {

ShardedOptimizer::ShardedOptimizer(const StatePlacement& placement, const ShardLayout& layout, int rank,
                                   const ParamSubset& subset, StateShard& states, const OptimizerRule& rule)
    : placement_(placement), layout_(layout), states_(states), rule_(rule), trust_ratios_(layout.num_params(), 1.0F) {
  if (rule.needs_param_norms()) norms_.emplace(layout, rank);
  for (std::int64_t bucket = 0; bucket < layout.num_buckets(); ++bucket) {
    first_runs_.push_back(runs_.size());
    add_runs(layout.owned_blocks(bucket, rank), layout.shard_offset(bucket, rank), subset);
  }
  first_runs_.push_back(runs_.size());
}

void ShardedOptimizer::add_runs(const Range& owned, std::int64_t shard_offset, const ParamSubset& subset) {
  for (std::int64_t block = owned.begin; block < owned.end;) {
    const std::size_t param = layout_.param_of_block(block);
    const Range piece = intersect(owned, layout_.param_blocks(param));
    const std::size_t group = subset.settings[param].group;
    // Rules with a trust ratio for each parameter need runs of one parameter.
    if (block > owned.begin && runs_.back().group == group && !norms_) {
      runs_.back().num_blocks += piece.size();
    } else {
      runs_.push_back({param, block, piece.size(), shard_offset, group});
    }
    shard_offset += piece.size() * kBlockNumel;
    block = piece.end;
  }
}

std::span<const ShardedOptimizer::Run> ShardedOptimizer::runs_of(const Range& buckets) const {
  const std::size_t begin = first_runs_[static_cast<std::size_t>(buckets.begin)];
  return std::span(runs_).subspan(begin, first_runs_[static_cast<std::size_t>(buckets.end)] - begin);
}

UpdateSegment ShardedOptimizer::segment_of(const Run& run, const GradShardView& grads) {
  UpdateSegment segment;
  for (const StateId id : states_.ids()) {
    std::byte* data = states_.data(id, run.shard_offset);
    if (id == StateId::kMaster) {
      segment.master = data;
    } else {
      segment.states[static_cast<std::size_t>(id)] = reinterpret_cast<float*>(data);
    }
  }
  segment.grad = grads.bytes.data() + static_cast<std::size_t>(run.shard_offset) * size_of(grads.dtype);
  segment.numel = run.num_blocks * kBlockNumel;
  segment.group = run.group;
  segment.trust_ratio = trust_ratios_[run.param];
  segment.first_stat = run.shard_offset / kBlockNumel;
  return segment;
}

void ShardedOptimizer::prepare(const GradShardView& grads, const UpdateScalars& scalars, Communicator& communicator) {
  if (!norms_) return;
  std::vector<UpdateSegment> segments;
  for (const Run& run : runs_) segments.push_back(segment_of(run, grads));
  const OptimizerDTypes dtypes{.master = states_.master_dtype(), .grad = grads.dtype};
  rule_.prepare(placement_.context(), segments, dtypes, scalars, norms_->weight_sums(), norms_->update_sums());
  const std::vector<ParamNorm> norms = norms_->exchange(communicator);
  for (std::size_t param = 0; param < norms.size(); ++param) {
    trust_ratios_[param] = rule_.trust_ratio(norms[param].weight, norms[param].update);
  }
}

void ShardedOptimizer::update(const Range& buckets, const GradShardView& grads, const UpdateScalars& scalars,
                              const ParamWindow& window, DType param_dtype) {
  std::vector<UpdateSegment> segments;
  for (const Run& run : runs_of(buckets)) {
    UpdateSegment segment = segment_of(run, grads);
    const auto offset = static_cast<std::size_t>((run.first_block - window.first_block) * kBlockNumel);
    segment.params = window.bytes.data() + offset * size_of(param_dtype);
    segments.push_back(segment);
  }
  rule_.update(placement_.context(), segments, {states_.master_dtype(), grads.dtype, param_dtype}, scalars);
}

}  // namespace zerofleet
