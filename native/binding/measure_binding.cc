#include "binding/measure_binding.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "binding/convert.h"
#include "binding/promise.h"
#include "core/buffer.h"
#include "core/context.h"
#include "core/philox.h"
#include "kernels/adamw.h"
#include "kernels/cast.h"
#include "kernels/gemm.h"

namespace zerofleet::binding {
namespace {

template <class Body>
double seconds_of(Body&& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Napi::Array to_array(Napi::Env env, const std::vector<double>& values) {
  Napi::Array array = Napi::Array::New(env, values.size());
  for (std::uint32_t i = 0; i < values.size(); ++i) array.Set(i, values[i]);
  return array;
}

struct OptimizerSeconds {
  std::vector<double> adamw, in_place;
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

OptimizerSeconds run_optimizer(std::int64_t params, int num_threads, std::int64_t repeats, CpuIsa isa) {
  constexpr std::int64_t kBytesPerParam = 30;
  ThreadPool pool(num_threads);
  const Context context{Device{}, &pool, isa};
  const auto count = static_cast<std::size_t>(params);
  // Skewed as the ZeRO core has them.
  Buffer master(context.device, count * 4, 0), exp_avg(context.device, count * 4, 1),
      exp_avg_sq(context.device, count * 4, 2), grad(context.device, count * 4, 9), weights(context.device, count * 2),
      plain(context.device, count * kBytesPerParam / 2);
  std::ranges::fill(grad.as<float>(), 0.01F);
  const OptimizerSegment segment{master.data(), {exp_avg.as<float>().data(), exp_avg_sq.as<float>().data()},
                                 grad.data(),   weights.data(), params, 0};
  const AdamWScalars scalars{1.0F, 0.1F, 0.95F, 0.05F, 1e-8F, 0.9999F, 1e-3F, 1.0F};
  OptimizerSeconds seconds;
  for (std::int64_t i = 0; i <= repeats; ++i) {
    const double adamw_pass = seconds_of([&] { adamw(context, {&segment, 1}, {}, {&scalars, 1}); });
    const double plain_pass = seconds_of([&] { update_in_place(context, plain.as<float>()); });
    if (i == 0) continue;  // the first touch of the pages
    seconds.adamw.push_back(adamw_pass);
    seconds.in_place.push_back(plain_pass);
  }
  return seconds;
}

struct GemmTask {
  std::int64_t m = 0, n = 0, k = 0, repeats = 0;
  DType precision = DType::kBF16;
  int num_threads = 1;
  CpuIsa isa = CpuIsa::kGeneric;
};

/// Uniform values in (-1, 1), so that no product is trivially zero or denormal.
Buffer random_operand(const Context& context, std::int64_t numel, DType dtype, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(numel));
  for (std::int64_t i = 0; i < numel; ++i) {
    values[static_cast<std::size_t>(i)] =
        static_cast<float>(2.0 * uniform_open(philox(seed, {static_cast<std::uint32_t>(i), 0, 0, 0})[0]) - 1.0);
  }
  Buffer operand(context.device, values.size() * size_of(dtype));
  cast_from_f32(context, values, dtype, {operand.data(), operand.num_bytes()});
  return operand;
}

std::vector<double> run_gemm(const GemmTask& task) {
  ThreadPool pool(task.num_threads);
  const Context context{Device{}, &pool, task.isa};
  Scratch scratch(context);
  const Buffer a = random_operand(context, task.m * task.k, task.precision, 1);
  const Buffer b = random_operand(context, task.k * task.n, task.precision, 2);
  Buffer c(context.device, static_cast<std::size_t>(task.m * task.n) * size_of(task.precision));
  PackedMatrix packed(context, task.precision, task.k, task.n);
  const PackRequest request{{b.data(), task.precision, task.k, task.n, task.n}, SourceRows::kAlongK, &packed};
  pack(context, std::span(&request, 1));
  const GemmProblem problem{{a.data(), task.precision, task.m, task.k, task.k}, &packed,
                            {c.data(), task.precision, task.m, task.n, task.n}};
  std::vector<double> seconds;
  for (std::int64_t i = 0; i <= task.repeats; ++i) {
    const double pass = seconds_of([&] { gemm(context, scratch, std::span(&problem, 1)); });
    if (i > 0) seconds.push_back(pass);  // the first one warms up
  }
  return seconds;
}

}  // namespace

Napi::Value measure_gemm(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    const auto options = info[0].As<Napi::Object>();
    const GemmTask task{int_field(options, "m"),
                        int_field(options, "n"),
                        int_field(options, "k"),
                        int_field(options, "repeats"),
                        dtype_from_name(string_field(options, "precision")),
                        static_cast<int>(int_field(options, "threads")),
                        cpu_isa_from_name(string_field(options, "cpu_isa"))};
    require(task.m > 0 && task.n > 0 && task.k > 0 && task.repeats > 0, "invalid_argument",
            "m, n, k and repeats must be positive");
    return PromiseWorker<std::vector<double>>::start(
        env, [task] { return run_gemm(task); },
        [](Napi::Env on_env, std::vector<double>& seconds) -> Napi::Value { return to_array(on_env, seconds); });
  });
}

Napi::Value measure_optimizer(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    const auto options = info[0].As<Napi::Object>();
    const std::int64_t params = int_field(options, "params"), repeats = int_field(options, "repeats");
    const auto threads = static_cast<int>(int_field(options, "threads"));
    const CpuIsa isa = cpu_isa_from_name(string_field(options, "cpu_isa"));
    require(params > 0 && repeats > 0, "invalid_argument", "params and repeats must be positive");
    return PromiseWorker<OptimizerSeconds>::start(
        env, [=] { return run_optimizer(params, threads, repeats, isa); },
        [](Napi::Env on_env, OptimizerSeconds& seconds) -> Napi::Value {
          Napi::Object object = Napi::Object::New(on_env);
          object.Set("adamw_seconds", to_array(on_env, seconds.adamw));
          object.Set("in_place_seconds", to_array(on_env, seconds.in_place));
          return object;
        });
  });
}

}  // namespace zerofleet::binding
