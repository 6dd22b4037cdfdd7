#include "zero/zero_optimizer.h"

#include <cmath>
#include <string>
#include <utility>

#include "core/error.h"
#include "zero/bucket_order.h"
#include "zero/comm_queue.h"
#include "zero/grad_bucket.h"
#include "zero/grad_reducer.h"
#include "zero/grad_stats.h"
#include "zero/lane_accumulator.h"
#include "zero/leaf_arrivals.h"
#include "zero/leaf_progress.h"
#include "zero/leaf_schedule.h"
#include "zero/param_gather.h"
#include "zero/shard_layout.h"
#include "zero/sharded_optimizer.h"
#include "zero/staging_pool.h"
#include "zero/stopwatch.h"

namespace zerofleet {
namespace {

const ZeroOptions& checked(const ZeroOptions& options) {
  require(options.grad_unit > 0 && std::isfinite(options.grad_unit), "invalid_argument", "grad_unit must be positive");
  require(options.gradient_clipping >= 0, "invalid_argument", "gradient_clipping must not be negative; 0 turns it off");
  return options;
}

LeafSchedule schedule_of(const ZeroOptions& options, int world_size) {
  return {options.num_leaves, options.num_lanes == 0 ? options.num_leaves : options.num_lanes, world_size};
}

std::size_t largest_bucket_bytes(const ShardLayout& layout, DType reduce_dtype) {
  return static_cast<std::size_t>(layout.max_bucket_blocks() * kBlockNumel) * size_of(reduce_dtype);
}

/// Adds the wall time of a call to `seconds`.
template <class Call>
void timed(double& seconds, Call&& call) {
  const Stopwatch watch;
  call();
  seconds += watch.seconds();
}

}  // namespace

/// The components of one rank and where it stands within a step.
struct ZeroOptimizer::Parts {
  Parts(const Context& context, Communicator& communicator_of_rank, std::vector<ParamSpec> all_specs,
        const ZeroOptions& opts)
      : communicator(communicator_of_rank),
        specs(std::move(all_specs)),
        options(checked(opts)),
        rank_context(context),
        schedule(schedule_of(options, communicator.world_size())),
        progress(schedule.turns_of(communicator.rank())),
        arrivals(specs, std::vector<GradRole>(specs.size(), GradRole::kTrained)),
        layout(specs, communicator.world_size(), bucket_capacity_blocks(options.bucket_bytes, options.reduce_dtype)),
        staging(context.device, largest_bucket_bytes(layout, options.reduce_dtype)),
        reducer(context, layout, communicator, queue, staging, options.reduce_dtype, schedule),
        order(buckets_in_order(), [this](const BucketId& id, Buffer contents) {
          reducer.reduce_bucket(progress.current().round, id.bucket, std::move(contents));
        }),
        buckets(context, layout, options.reduce_dtype, staging,
                [this](std::int64_t bucket, Buffer contents) { order.add({0, bucket}, std::move(contents)); }),
        lanes(context, layout, schedule, DType::kF32),
        stats(NormGroups(NormKind::kL2, {{"all"}}), {stats_part()}, leaves_of_ranks(), communicator.rank()),
        optimizer(context, layout, communicator.rank(), specs, make_optimizer_rule(options.optimizer)),
        params(context, layout, communicator, queue, options.param_dtype) {}

  // The communication thread uses most of the members; it must be gone before the first of them is.
  ~Parts() { queue.close(); }

  std::vector<BucketId> buckets_in_order() const {
    std::vector<BucketId> ids;
    for (std::int64_t bucket = 0; bucket < layout.num_buckets(); ++bucket) ids.push_back({0, bucket});
    return ids;
  }

  /// Takes part in the rounds in which this rank has no lane.
  void join_other_rounds() {
    for (std::int64_t round = progress.turns().back().round + 1; round < schedule.num_rounds(); ++round) {
      for (const BucketId& id : order.order()) reducer.reduce_nothing(round, id.bucket);
    }
  }

  StatsPart stats_part() const {
    StatsPart part{&layout, {}, std::vector<std::size_t>(specs.size(), 0)};
    for (int rank = 0; rank < layout.world_size(); ++rank) part.ranks.push_back(rank);
    return part;
  }
  GradStats::LeavesOfRanks leaves_of_ranks() const {
    GradStats::LeavesOfRanks of_ranks;
    for (int rank = 0; rank < schedule.world_size(); ++rank) of_ranks.push_back(schedule.leaves_of(rank));
    return of_ranks;
  }

  void flush() { queue.drain(); }

  GlobalStats global_stats(std::uint32_t flags, StepSummary& summary) {
    timed(summary.optimizer_seconds, [&] { stats.measure(rank_context, 0, std::as_bytes(reducer.grad_shard()), DType::kF32); });
    GlobalStats global;
    timed(summary.exchange_seconds, [&] { global = stats.exchange(communicator, nullptr, progress.records(), flags); });
    return global;
  }

  /// The factor from the gradient sum, which is of loss_sum × grad_unit, to the gradient of the mean over all targets.
  double average_factor(std::int64_t num_targets) const {
    return 1.0 / options.grad_unit / static_cast<double>(num_targets);
  }

  void judge(const GlobalStats& global, StepSummary& summary) const {
    summary.loss = global.loss_sum / static_cast<double>(global.num_targets);
    summary.grad_norm = global.norm * average_factor(global.num_targets);
    summary.num_targets = global.num_targets;
    summary.flags = global.flags;
    summary.finite = global.num_targets > 0 && std::isfinite(summary.grad_norm) && std::isfinite(summary.loss);
  }

  /// Averaging and clipping are one factor of the optimizer's pass. With peers, a bucket travels while the next is
  /// being updated.
  void update_params(double lr, const StepSummary& summary) {
    const double clip = clip_coefficient(summary.grad_norm, static_cast<double>(options.gradient_clipping));
    const auto factor = static_cast<float>(average_factor(summary.num_targets) * clip);
    const GroupScalars groups[] = {{lr, options.optimizer.weight_decay}, {lr, 0}};
    const UpdateScalars scalars{groups, factor, ++optimizer_steps};
    const bool has_peers = communicator.world_size() > 1;
    const std::int64_t stride = has_peers ? 1 : layout.num_buckets();
    for (std::int64_t first = 0; first < layout.num_buckets(); first += stride) {
      optimizer.update({first, first + stride}, reducer.grad_shard(), params.flat(), options.param_dtype, scalars);
      if (has_peers) params.gather(first);
    }
  }

  void begin_step() {
    queue.take_busy_seconds();  // of gathering, which is not part of the exchange
    progress.begin_step();
  }

  /// All parameters anew from the master.
  void refresh_params() {
    optimizer.write_params({0, layout.num_buckets()}, params.flat(), options.param_dtype);
    for (std::int64_t bucket = 0; bucket < layout.num_buckets(); ++bucket) params.gather(bucket);
    flush();
  }

  Communicator& communicator;
  const std::vector<ParamSpec> specs;
  const ZeroOptions options;
  Context rank_context;
  LeafSchedule schedule;
  LeafProgress progress;
  LeafArrivals arrivals;
  ShardLayout layout;
  CommQueue queue;
  StagingPool staging;
  GradReducer reducer;
  BucketOrder order;
  GradBuckets buckets;
  LaneAccumulator lanes;
  GradStats stats;
  ShardedOptimizer optimizer;
  ParamGather params;

  std::int64_t optimizer_steps = 0;
  std::int64_t skipped_steps = 0;
};

ZeroOptimizer::ZeroOptimizer(const Context& context, Communicator& communicator, std::vector<ParamSpec> params,
                             const ZeroOptions& options)
    : parts_(std::make_unique<Parts>(context, communicator, std::move(params), options)) {}

ZeroOptimizer::~ZeroOptimizer() = default;

std::span<const std::byte* const> ZeroOptimizer::params() const { return parts_->params.pointers(); }

void ZeroOptimizer::initialize(std::uint64_t seed) {
  parts_->optimizer.initialize(seed);
  finish_load(0, 0);
}

std::vector<std::int64_t> ZeroOptimizer::leaves() const {
  return parts_->schedule.leaves_of(parts_->communicator.rank());
}

void ZeroOptimizer::begin_leaf(std::int64_t leaf) {
  Parts& p = *parts_;
  const LeafTurn& turn = p.progress.begin(leaf);
  p.arrivals.begin();
  p.lanes.begin_leaf(turn);
  if (!turn.last_of_lane) return;
  p.order.begin();
  p.buckets.begin();
}

void ZeroOptimizer::add_grad(std::size_t param, std::span<const float> grad) {
  Parts& p = *parts_;
  p.progress.current();
  p.arrivals.add(param, grad.size());
  if (const auto sum = p.lanes.add(param, GradView::of(grad))) p.buckets.add(param, *sum);
}

void ZeroOptimizer::end_leaf(double loss_sum, std::int64_t num_targets) {
  Parts& p = *parts_;
  p.progress.current();
  for (const std::size_t param : p.arrivals.missing()) {
    throw Error("gradient_missing", "no gradient came for parameter '" + p.specs[param].name + "'");
  }
  p.progress.end({loss_sum, num_targets});
  if (p.progress.done()) p.join_other_rounds();
}

StepSummary ZeroOptimizer::step(const StepRequest& request) {
  Parts& p = *parts_;
  require(p.progress.done(), "leaf_out_of_order", "the step has leaves left to compute");
  StepSummary summary;
  timed(summary.exchange_seconds, [&] { p.flush(); });
  summary.exchange_busy_seconds = p.queue.take_busy_seconds();
  p.judge(p.global_stats(request.flags, summary), summary);
  if (summary.finite) {
    timed(summary.optimizer_seconds, [&] { p.update_params(request.lr, summary); });
    timed(summary.gather_seconds, [&] { p.flush(); });
  } else {
    ++p.skipped_steps;
  }
  p.begin_step();
  return summary;
}

std::vector<StateSlice> ZeroOptimizer::state_slices() {
  std::vector<StateSlice> slices;
  const auto owned = parts_->layout.shard_slices(parts_->communicator.rank());
  for (const StateId id : parts_->optimizer.states()) {
    const auto values = parts_->optimizer.state(id);
    for (const ShardSlice& slice : owned) {
      slices.push_back({id, slice.param, slice.elements,
                        values.subspan(static_cast<std::size_t>(slice.shard_offset),
                                       static_cast<std::size_t>(slice.elements.size()))});
    }
  }
  return slices;
}

void ZeroOptimizer::finish_load(std::int64_t optimizer_steps, std::int64_t skipped_steps) {
  require(optimizer_steps >= 0 && skipped_steps >= 0, "invalid_argument", "step counters must not be negative");
  parts_->optimizer_steps = optimizer_steps;
  parts_->skipped_steps = skipped_steps;
  parts_->refresh_params();
}

Digest128 ZeroOptimizer::digest_part() const { return parts_->optimizer.digest(); }

std::int64_t ZeroOptimizer::optimizer_steps() const { return parts_->optimizer_steps; }

std::int64_t ZeroOptimizer::skipped_steps() const { return parts_->skipped_steps; }

ZeroMemory ZeroOptimizer::memory() const {
  const Parts& p = *parts_;
  ZeroMemory memory;
  memory.param_bytes = p.params.num_bytes();
  memory.grad_shard_bytes = p.reducer.grad_shard().size_bytes();
  memory.state_bytes = p.optimizer.state_bytes();
  memory.staging_bytes = p.staging.allocated_bytes() + p.reducer.staging_bytes();
  return memory;
}

}  // namespace zerofleet
