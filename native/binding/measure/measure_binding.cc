#include "binding/measure/measure_binding.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "bench/seconds_of.h"
#include "binding/convert/convert.h"
#include "binding/convert/promise.h"
#include "binding/measure/measure_tools.h"
#include "core/device/buffer.h"
#include "core/device/context.h"
#include "core/philox.h"
#include "kernels/flat/cast.h"
#include "kernels/gemm/gemm.h"

namespace zerofleet::binding {
namespace {

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
  const GemmProblem problem{
      {a.data(), task.precision, task.m, task.k, task.k}, &packed, {c.data(), task.precision, task.m, task.n, task.n}};
  std::vector<double> seconds;
  for (std::int64_t i = 0; i <= task.repeats; ++i) {
    const double pass = bench::seconds_of([&] { gemm(context, scratch, std::span(&problem, 1)); });
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

}  // namespace zerofleet::binding
