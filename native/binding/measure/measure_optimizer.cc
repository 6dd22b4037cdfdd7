#include <vector>

#include "bench/memory_passes.h"
#include "bench/optimizer_run.h"
#include "bench/seconds_of.h"
#include "binding/convert/convert.h"
#include "binding/convert/promise.h"
#include "binding/measure/measure_binding.h"
#include "binding/measure/measure_tools.h"
#include "core/error.h"

namespace zerofleet::binding {
namespace {

struct OptimizerTask {
  OptimizerType type = OptimizerType::kAdamW;
  std::int64_t params = 0, repeats = 0;
  int num_threads = 1;
  CpuIsa isa = CpuIsa::kGeneric;
  double ema_decay = 0;
};

struct OptimizerSeconds {
  std::int64_t bytes_per_param = 0;  // read and written by one step
  std::vector<double> optimizer, in_place;
};

OptimizerSeconds run_optimizer(const OptimizerTask& task) {
  ThreadPool pool(task.num_threads);
  const Context context{Device{}, &pool, task.isa};
  bench::OptimizerRun run(context, task.type, task.params, task.ema_decay);
  OptimizerSeconds seconds;
  seconds.bytes_per_param = run.bytes_per_param();
  Buffer plain(context.device, static_cast<std::size_t>(task.params * seconds.bytes_per_param / 2));
  for (std::int64_t i = 0; i <= task.repeats; ++i) {
    const double step = bench::seconds_of([&] { run.step(); });
    const double plain_pass = bench::seconds_of([&] { bench::update_in_place(context, plain.as<float>()); });
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
                             int_field(options, "params"),
                             int_field(options, "repeats"),
                             static_cast<int>(int_field(options, "threads")),
                             cpu_isa_from_name(string_field(options, "cpu_isa")),
                             number_field(options, "ema_decay")};
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
