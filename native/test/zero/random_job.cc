#include "test/zero/random_job.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/philox.h"

namespace zerofleet::test {
namespace {

constexpr std::int64_t kNumels[] = {1, 7, 300, 4095, 4096, 4097, 8191, 8192, 8193, 12289};
constexpr std::size_t kNoiseNumel = 1 << 16, kMaxNumel = 12289;

/// Numbers of very different sizes, so that another order of addition gives other bits. If `overflow`, some of them are
/// infinite or not numbers.
std::vector<float> make_noise(bool overflow) {
  std::vector<float> values(kNoiseNumel);
  Draws draws(overflow ? 2 : 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double uniform = static_cast<double>(draws.below(1 << 24)) * 0x1p-24 - 0.5;
    values[i] = static_cast<float>(std::ldexp(uniform, -static_cast<int>(draws.below(12))));
    if (overflow && i % 5000 == 77) values[i] = std::numeric_limits<float>::infinity();
    if (overflow && i % 7000 == 78) values[i] = std::numeric_limits<float>::quiet_NaN();
  }
  return values;
}

std::uint64_t mixed(std::uint64_t seed, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  const auto bits = philox(
      seed, {static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(c), 0x9ad1U});
  return (std::uint64_t{bits[1]} << 32) | bits[0];
}

const char* name_of(JobKind::Clipping clipping) {
  constexpr const char* kNames[] = {"no clipping", "l2", "max"};
  return kNames[static_cast<std::size_t>(clipping)];
}

void draw_params(RandomJob& job, Draws& draws) {
  const std::int64_t num_shared = 1 + draws.below(4);
  const bool has_experts = job.options.num_expert_sets > 1;
  const auto add = [&](std::string name, int set, std::int64_t numel) {
    PlainParam& param = job.params.emplace_back();
    param.spec.name = std::move(name);
    param.spec.shape = numel % 7 == 0 ? std::vector<std::int64_t>{7, numel / 7} : std::vector<std::int64_t>{numel};
    param.spec.init = draws.one_in(4) ? ParamInit::kOnes : ParamInit::kNormal;
    param.expert_set = set;
  };
  for (std::int64_t i = 0; i < num_shared; ++i) {
    add("shared." + std::to_string(i), -1, draws.one_of(kNumels));
    if (!has_experts || i > 1) continue;
    // Expert by expert, between shared parameters, so that block ids of parts are interleaved.
    const std::int64_t numel = draws.one_of(kNumels);
    for (int set = 0; set < job.options.num_expert_sets; ++set) {
      add("expert." + std::to_string(i) + "." + std::to_string(set), set, numel);
    }
  }
}

void draw_leaves(RandomJob& job, Draws& draws) {
  PlainOptions& o = job.options;
  o.num_expert_sets = draws.one_in(3) ? 2 : 1;
  o.num_leaves = o.num_expert_sets * (1 + draws.below(o.num_expert_sets == 1 ? 8 : 4));
  o.num_lanes = o.num_leaves;
  if (job.kind.stage == 1) o.num_lanes = o.num_expert_sets * (1 + draws.below(o.num_leaves / o.num_expert_sets));
  for (int world_size = o.num_expert_sets; world_size <= std::min<std::int64_t>(8, o.num_lanes);
       world_size += o.num_expert_sets) {
    job.world_sizes.push_back(world_size);
  }
}

void draw_groups(RandomJob& job, Draws& draws) {
  for (PlainParam& param : job.params) {
    param.lr_scale = draws.one_in(3) ? 0.25 : 1;
    param.weight_decay = draws.one_in(3) ? 0 : 0.1;
    param.frozen = draws.one_in(6);
  }
  job.params[static_cast<std::size_t>(draws.below(static_cast<std::int64_t>(job.params.size())))].frozen = false;
}

void draw_loss_scale(RandomJob& job, Draws& draws) {
  if (job.kind.param_dtype != DType::kF16 && !draws.one_in(4)) return;
  LossScaleOptions& scale = job.options.loss_scale;
  scale.type = draws.one_in(4) ? LossScaleType::kStatic : LossScaleType::kDynamic;
  scale.initial_scale = std::ldexp(1.0, static_cast<int>(draws.below(18)));
  scale.window = 1 + draws.below(4);
  scale.hysteresis = 1 + draws.below(2);
  scale.consecutive_hysteresis = draws.one_in(2);
  scale.min_scale = 0x1p-20;
}

RandomJob job_of_kind(const JobKind& kind, std::uint64_t seed) {
  RandomJob job;
  job.kind = kind;
  job.seed = seed;
  PlainOptions& o = job.options;
  o.optimizer.type = kind.optimizer;
  o.param_dtype = kind.param_dtype;
  o.reduce_dtype = kind.reduce_dtype;
  o.grad_accum_dtype = kind.grad_accum_dtype;
  o.clip_by_max = kind.clipping == JobKind::Clipping::kMax;
  o.grad_unit = 1.0 / 64;
  return job;
}

void draw_clipping(RandomJob& job, Draws& draws) {
  constexpr double kLimits[] = {1.0 / 64, 0.25, 32};
  if (job.kind.clipping != JobKind::Clipping::kOff) job.options.clipping = draws.one_of(kLimits);
}

void draw_optimizer(RandomJob& job, Draws& draws) {
  OptimizerOptions& o = job.options.optimizer;
  o.momentum = draws.one_in(3) ? 0 : 0.9;
  o.dampening = draws.one_in(2) ? 0.25 : 0;
  o.nesterov = o.momentum > 0 && o.dampening == 0 && draws.one_in(2);
  o.lr_decay = draws.one_in(2) ? 0.1 : 0;
  o.initial_accumulator_value = draws.one_in(2) ? 0.5 : 0;
  o.ema.decay = draws.one_in(3) ? 0.75 : 0;
}

}  // namespace

std::int64_t Draws::below(std::int64_t limit) {
  return static_cast<std::int64_t>(philox(seed_, {next_++, 0, 0, 0})[0] % static_cast<std::uint64_t>(limit));
}

std::string JobKind::text() const {
  return std::string(zerofleet::name_of(optimizer)) + ", params " + zerofleet::name_of(param_dtype) + ", reduce " +
         zerofleet::name_of(reduce_dtype) + ", accumulate " + zerofleet::name_of(grad_accum_dtype) + ", stage " +
         std::to_string(stage) + ", " + name_of(clipping);
}

std::string RandomJob::text() const {
  return kind.text() + ", seed " + std::to_string(seed) + ": " + std::to_string(params.size()) + " parameters, V " +
         std::to_string(options.num_leaves) + ", L " + std::to_string(options.num_lanes) + ", groups of " +
         std::to_string(options.lane_group) + ", expert sets " + std::to_string(options.num_expert_sets) + ", bucket " +
         std::to_string(bucket_bytes);
}

std::span<const float> RandomJob::grad(std::int64_t step, std::int64_t leaf, std::size_t param) const {
  static const std::vector<float> noise = make_noise(false), bad_noise = make_noise(true);
  const std::uint64_t draw = mixed(seed, static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(leaf), param);
  const bool bad = has_overflow && (draw >> 8) % 64 == 0;
  const std::size_t begin = (draw >> 16) % (kNoiseNumel - kMaxNumel);
  return std::span(bad ? bad_noise : noise).subspan(begin, static_cast<std::size_t>(params[param].spec.numel()));
}

double RandomJob::loss_sum(std::int64_t step, std::int64_t leaf) const {
  return 100.0 / static_cast<double>(step + 1) + 0.1 * static_cast<double>(leaf);
}

PlainTraining RandomJob::plain() const {
  PlainData data;
  data.grad = [this](std::int64_t step, std::int64_t leaf, std::size_t param) { return grad(step, leaf, param); };
  data.loss_sum = [this](std::int64_t step, std::int64_t leaf) { return loss_sum(step, leaf); };
  data.targets_per_leaf = kTargetsPerLeaf;
  return PlainTraining(params, options, data, seed);
}

RandomJob random_job(const JobKind& kind, std::uint64_t seed) {
  RandomJob job = job_of_kind(kind, seed);
  Draws draws(seed);
  draw_leaves(job, draws);
  draw_params(job, draws);
  draw_groups(job, draws);
  draw_loss_scale(job, draws);
  draw_clipping(job, draws);
  draw_optimizer(job, draws);
  constexpr double kFactors[] = {1, 2, 3};
  constexpr std::int64_t kBucketBytes[] = {16384, 40000, 100000, 1 << 20};
  job.bucket_bytes = draws.one_of(kBucketBytes);
  job.options.predivide = draws.one_of(kFactors);
  constexpr std::int64_t kGroups[] = {1, 2, 3, 4};
  job.options.lane_group = draws.one_of(kGroups);
  job.has_overflow = draws.one_in(4);
  job.offload = draws.one_in(4);
  if (job.offload && kind.param_dtype == DType::kF16) job.options.master_dtype = DType::kF16;
  return job;
}

RandomJob plain_job(const JobKind& kind, std::uint64_t seed) {
  RandomJob job = job_of_kind(kind, seed);
  Draws draws(seed);
  job.options.num_leaves = job.options.num_lanes = 1 + draws.below(4);
  job.world_sizes = {1};
  draw_params(job, draws);
  draw_clipping(job, draws);
  draw_optimizer(job, draws);
  return job;
}

}  // namespace zerofleet::test
