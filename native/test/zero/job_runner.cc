#include "test/zero/job_runner.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "test/zero/fake_job.h"
#include "test/zero/narrow_values.h"

namespace zerofleet::test {
namespace {

bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// A norm that is not finite may be infinite or no number, whichever.
bool same(const PlainSummary& a, const PlainSummary& b) {
  const bool same_norm = a.grad_norm == b.grad_norm || (!std::isfinite(a.grad_norm) && !std::isfinite(b.grad_norm));
  return same_norm && same_number(a.loss, b.loss) && a.loss_scale == b.loss_scale && a.finite == b.finite &&
         a.num_targets == b.num_targets;
}

ZeroOptions zero_options(const RandomJob& job) {
  const PlainOptions& o = job.options;
  ZeroOptions options;
  options.param_dtype = o.param_dtype;
  options.reduce_dtype = o.reduce_dtype;
  options.grad_accum_dtype = o.grad_accum_dtype;
  options.master_dtype = o.master_dtype;
  options.bucket_bytes = job.bucket_bytes;
  options.optimizer = o.optimizer;
  options.gradient_clipping = static_cast<float>(o.clipping);
  options.gradient_clipping_norm = o.clip_by_max ? NormKind::kMax : NormKind::kL2;
  options.loss_scale = o.loss_scale;
  options.num_leaves = o.num_leaves;
  options.num_lanes = o.num_lanes;
  options.lane_group = o.lane_group;
  options.grad_unit = o.grad_unit;
  options.gradient_predivide_factor = o.predivide;
  options.offload = job.offload ? Offload::kCpu : Offload::kNone;
  options.expert_parallel_size = o.num_expert_sets;
  auto& groups = options.param_groups.groups;
  for (const PlainParam& param : job.params) {
    const auto is_own = [&](const GroupOptions& group) {
      return group.lr_scale == param.lr_scale && group.weight_decay == param.weight_decay;
    };
    const auto index = static_cast<std::size_t>(std::ranges::find_if(groups, is_own) - groups.begin());
    if (index == groups.size()) groups.push_back({param.lr_scale, param.weight_decay});
    options.param_groups.settings.push_back({index, param.frozen, false});
  }
  return options;
}

std::vector<ParamSpec> specs_of(const RandomJob& job) {
  std::vector<ParamSpec> specs;
  for (const PlainParam& param : job.params) {
    specs.push_back(param.spec);
    specs.back().expert = param.expert_set;  // one expert per set
  }
  return specs;
}

}  // namespace

std::string difference(const Trace& a, const Trace& b) {
  for (std::size_t step = 0; step < static_cast<std::size_t>(kNumSteps); ++step) {
    if (!same(a.summaries[step], b.summaries[step])) return "summary of step " + std::to_string(step);
    if (a.digests[step] != b.digests[step]) return "digest after step " + std::to_string(step);
  }
  return a.params == b.params ? "" : "parameters";
}

Trace plain_trace(const RandomJob& job) {
  Trace trace;
  PlainTraining training = job.plain();
  for (std::int64_t step = 0; step < kNumSteps; ++step) {
    trace.summaries.push_back(training.step(step));
    trace.digests.push_back(training.digest());
  }
  trace.params = training.param_bytes();
  return trace;
}

JobRunner::Setting JobRunner::drawn_setting() {
  const auto isas = available_isas();
  const int num_threads = draws_.one_in(8) ? 2 : 1;
  const CpuIsa isa = draws_.one_of(std::span(isas));
  const auto first_param = static_cast<std::size_t>(draws_.below(static_cast<std::int64_t>(job_.params.size())));
  return {num_threads, isa, first_param, gradients_are_only_rounded(zero_options(job_)) && draws_.one_in(2)};
}

void JobRunner::run(int world_size, std::int64_t begin, std::int64_t end) {
  const Setting setting = drawn_setting();
  auto groups = make_thread_groups(world_size, job_.options.num_expert_sets, std::chrono::seconds(60));
  Saved before = std::exchange(saved_, Saved());
  rethrow_first(run_ranks(world_size, [&](Communicator& comm) {
    const auto group = std::move(groups[static_cast<std::size_t>(comm.rank())]);  // gone when this rank is
    ZeroComms comms(comm);
    if (job_.options.num_expert_sets > 1) comms.expert = group.get();
    ThreadPool pool(setting.num_threads);
    ZeroOptimizer zero({Device{}, &pool, setting.isa}, comms, specs_of(job_), zero_options(job_));
    begin == 0 ? zero.initialize(job_.seed) : load(zero, before);
    for (std::int64_t step = begin; step < end; ++step) {
      const PlainSummary summary = run_step(setting, zero, step);
      add_step(step, zero.digest_part(), summary, comm.rank() == world_size - 1);
    }
    finish(zero);
  }));
}

Trace JobRunner::trace() const {
  Trace trace{{}, summaries_, params_};
  for (const Digest128& sum : sums_) trace.digests.push_back(sum.to_hex());
  return trace;
}

PlainSummary JobRunner::run_step(const Setting& setting, ZeroOptimizer& zero, std::int64_t step) const {
  for (const std::int64_t leaf : zero.leaves()) {
    zero.begin_leaf(leaf);
    add_grads(setting, zero, step, leaf);
    zero.end_leaf(job_.loss_sum(step, leaf), RandomJob::kTargetsPerLeaf);
  }
  const StepSummary summary = zero.step({job_.options.lr, 0});
  return {summary.loss, summary.grad_norm, summary.loss_scale, summary.finite, summary.num_targets};
}

void JobRunner::add_rounded(ZeroOptimizer& zero, std::size_t param, std::span<const float> grad) const {
  const DType dtype = job_.options.reduce_dtype;
  const std::vector<std::byte> values = stored(grad, dtype);
  std::byte* room = zero.room_for(param, dtype);
  if (room != nullptr) std::ranges::copy(values, room);
  zero.add_grad(param, GradView{room != nullptr ? room : values.data(), dtype, grad.size()});
}

void JobRunner::add_grads(const Setting& setting, ZeroOptimizer& zero, std::int64_t step, std::int64_t leaf) const {
  const auto scale = static_cast<float>(zero.loss_scale());
  const int num_sets = job_.options.num_expert_sets;
  std::vector<float> scaled;
  for (std::size_t i = job_.params.size(); i > 0; --i) {
    const std::size_t param = (i + setting.first_param) % job_.params.size();
    const PlainParam& p = job_.params[param];
    const bool elsewhere = p.expert_set >= 0 && p.expert_set != leaf % num_sets;
    if (p.frozen || elsewhere) continue;
    // An expert's gradient is that of the run of leaves which num_sets ranks compute together.
    const auto grad = job_.grad(step, p.expert_set >= 0 ? leaf / num_sets : leaf, param);
    scaled.assign(grad.begin(), grad.end());
    for (float& value : scaled) value *= scale;
    setting.rounds_itself ? add_rounded(zero, param, scaled) : zero.add_grad(param, scaled);
  }
}

std::span<float> JobRunner::values_of(Saved& saved, const StateRange& range) const {
  auto& values = saved.states[{range.state, range.param}];
  values.resize(static_cast<std::size_t>(job_.params[range.param].spec.numel()), NAN);
  return std::span(values).subspan(static_cast<std::size_t>(range.elements.begin),
                                   static_cast<std::size_t>(range.elements.size()));
}

void JobRunner::load(ZeroOptimizer& zero, Saved& saved) {
  for (const StateRange& range : zero.state_ranges()) {
    const std::lock_guard lock(mutex_);
    zero.load_state(range.state, range.param, range.elements.begin, values_of(saved, range));
  }
  zero.finish_load(saved.progress);
}

void JobRunner::add_step(std::int64_t step, const Digest128& part, const PlainSummary& summary, bool reports) {
  const std::lock_guard lock(mutex_);
  sums_[static_cast<std::size_t>(step)] += part;
  if (reports) summaries_.push_back(summary);
}

void JobRunner::finish(ZeroOptimizer& zero) {
  const std::lock_guard lock(mutex_);
  collect_params(zero);
  saved_.progress = zero.progress();
  for (const StateRange& range : zero.state_ranges()) {
    zero.copy_state(range.state, range.param, range.elements.begin, values_of(saved_, range));
  }
}

void JobRunner::collect_params(const ZeroOptimizer& zero) {
  std::size_t begin = 0;
  for (std::size_t param = 0; param < job_.params.size(); ++param) {
    const auto num_bytes =
        static_cast<std::size_t>(job_.params[param].spec.numel()) * size_of(job_.options.param_dtype);
    params_.resize(std::max(params_.size(), begin + num_bytes));
    const std::byte* data = zero.params()[param];  // null: on other ranks
    if (data != nullptr) std::copy_n(data, num_bytes, params_.data() + begin);
    begin += num_bytes;
  }
}

}  // namespace zerofleet::test
