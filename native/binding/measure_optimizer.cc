#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "binding/convert.h"
#include "binding/measure_binding.h"
#include "binding/measure_tools.h"
#include "binding/promise.h"
#include "core/buffer.h"
#include "core/context.h"
#include "core/error.h"
#include "zero/optimizer_rule.h"
#include "zero/shard_layout.h"

namespace zerofleet::binding {
namespace {

struct OptimizerTask {
  OptimizerType type = OptimizerType::kAdamW;
  std::int64_t params = 0, repeats = 0;
  int num_threads = 1;
  CpuIsa isa = CpuIsa::kGeneric;
};

struct OptimizerSeconds {
  std::int64_t bytes_per_param = 0;  // read and written by one step
  std::vector<double> optimizer, in_place;
};

/// One shard of the common kind: master, states and gradient in fp32, parameters in bf16.
class OptimizerRun {
 public:
  OptimizerRun(const Context& context, OptimizerType type, std::int64_t numel)
      : context_(context), rule_(make_optimizer_rule(options_of(type))) {
    const auto bytes = static_cast<std::size_t>(numel) * sizeof(float);
    segment_.numel = numel;
    // Skewed as the ZeRO core has them.
    for (const StateId id : rule_->states()) {
      Buffer& array = arrays_.emplace_back(context.device, bytes, static_cast<int>(id));
      if (id != StateId::kMaster) segment_.states[static_cast<std::size_t>(id)] = array.as<float>().data();
    }
    segment_.master = arrays_.front().data();
    arrays_.emplace_back(context.device, bytes, 9);
    std::ranges::fill(arrays_.back().as<float>(), 0.01F);
    segment_.grad = arrays_.back().data();
    segment_.params = arrays_.emplace_back(context.device, bytes / 2).data();
    weight_sums_.resize(static_cast<std::size_t>(numel / kBlockNumel));
    update_sums_.resize(weight_sums_.size());
  }

  /// As ShardedOptimizer does it on a rank that owns everything.
  void step() {
    const GroupScalars group{1e-3, 0.1};
    const UpdateScalars scalars{{&group, 1}, 1.0F, ++steps_};
    const OptimizerDTypes dtypes;
    if (rule_->needs_param_norms()) {
      rule_->prepare(context_, {&segment_, 1}, dtypes, scalars, weight_sums_, update_sums_);
      segment_.trust_ratio = rule_->trust_ratio(norm_of(weight_sums_), norm_of(update_sums_));
    }
    rule_->update(context_, {&segment_, 1}, dtypes, scalars);
  }

  /// Per element: each array read once and, but for the gradient, written once; the parameters are written only. With
  /// norms, master and states are read once more, and the moments are written in the first pass.
  std::int64_t bytes_per_param() const {
    const auto num_states = static_cast<std::int64_t>(rule_->states().size());
    const std::int64_t again = rule_->needs_param_norms() ? num_states * 4 : 0;
    return 4 * (2 * num_states + 1) + 2 + again;
  }

 private:
  static OptimizerOptions options_of(OptimizerType type) {
    OptimizerOptions options;
    options.type = type;
    return options;
  }
  static double norm_of(const std::vector<double>& sums) {
    return std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0));
  }

  Context context_;
  std::unique_ptr<OptimizerRule> rule_;
  std::vector<Buffer> arrays_;
  UpdateSegment segment_;
  std::vector<double> weight_sums_, update_sums_;
  std::int64_t steps_ = 0;
};

/// The floor: reads and writes each byte of an array once. Half of the bytes moved are reads and half writes, so the
/// array is half as large as the traffic that it stands for.
void update_in_place(const Context& context, std::span<float> values) {
  constexpr std::int64_t kTile = 1 << 16;
  const auto numel = static_cast<std::int64_t>(values.size());
  context.pool->parallel_for((numel + kTile - 1) / kTile, [&](std::int64_t task, int) {
    float* begin = values.data() + task * kTile;
    const std::int64_t count = std::min(kTile, numel - task * kTile);
    for (std::int64_t i = 0; i < count; ++i) begin[i] = begin[i] * 0.999F + 1e-3F;
  });
}

OptimizerSeconds run_optimizer(const OptimizerTask& task) {
  ThreadPool pool(task.num_threads);
  const Context context{Device{}, &pool, task.isa};
  OptimizerRun run(context, task.type, task.params);
  OptimizerSeconds seconds;
  seconds.bytes_per_param = run.bytes_per_param();
  Buffer plain(context.device, static_cast<std::size_t>(task.params * seconds.bytes_per_param / 2));
  for (std::int64_t i = 0; i <= task.repeats; ++i) {
    const double step = seconds_of([&] { run.step(); });
    const double plain_pass = seconds_of([&] { update_in_place(context, plain.as<float>()); });
    if (i == 0) continue;  // the first touch of the pages
    seconds.optimizer.push_back(step);
    seconds.in_place.push_back(plain_pass);
  }
  return seconds;
}

}  // namespace

Napi::Value measure_optimizer(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    const auto options = info[0].As<Napi::Object>();
    const OptimizerTask task{optimizer_type_from_name(string_field(options, "optimizer")),
                             int_field(options, "params"), int_field(options, "repeats"),
                             static_cast<int>(int_field(options, "threads")),
                             cpu_isa_from_name(string_field(options, "cpu_isa"))};
    require(task.params > 0 && task.params % kBlockNumel == 0 && task.repeats > 0, "invalid_argument",
            "params must be a positive multiple of 4096, and repeats positive");
    return PromiseWorker<OptimizerSeconds>::start(
        env, [task] { return run_optimizer(task); },
        [](Napi::Env on_env, OptimizerSeconds& seconds) -> Napi::Value {
          Napi::Object object = Napi::Object::New(on_env);
          object.Set("bytes_per_param", static_cast<double>(seconds.bytes_per_param));
          object.Set("optimizer_seconds", to_array(on_env, seconds.optimizer));
          object.Set("in_place_seconds", to_array(on_env, seconds.in_place));
          return object;
        });
  });
}

}  // namespace zerofleet::binding
