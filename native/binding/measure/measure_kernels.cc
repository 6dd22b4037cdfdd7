#include "binding/measure/measure_kernels.h"

#include <string>
#include <vector>

#include "bench/kernel_bench.h"
#include "bench/memory_passes.h"
#include "bench/seconds_of.h"
#include "binding/convert/choice.h"
#include "binding/convert/convert.h"
#include "binding/convert/object_fields.h"
#include "binding/convert/promise.h"
#include "binding/measure/measure_tools.h"
#include "core/device/buffer.h"
#include "core/error.h"

namespace zerofleet::binding {
namespace {

using bench::KernelBench;
using bench::KernelCase;
using bench::KernelEntry;

struct KernelTask {
  KernelEntry entry;
  ModelConfig config;
  PassShape shape;
  DType dtype = DType::kBF16;
  std::int64_t repeats = 0;
  int num_threads = 1;
  CpuIsa isa = CpuIsa::kGeneric;
};

struct KernelTimes {
  KernelCase made;  // its operands are gone
  double mean_magnitude = 0;
  std::vector<double> seconds = {};
};

KernelTimes run_kernel(const KernelTask& task) {
  ThreadPool pool(task.num_threads);
  KernelBench operands({Device{}, &pool, task.isa}, task.config, task.shape, task.dtype);
  KernelTimes times{task.entry.make(operands)};
  for (std::int64_t i = 0; i <= task.repeats; ++i) {
    const double pass = bench::seconds_of(times.made.run);
    if (i > 0) times.seconds.push_back(pass);  // the first one touches the pages
  }
  times.mean_magnitude = bench::mean_magnitude(operands.ctx, times.made.results);
  return times;
}

enum class MemoryPass : std::uint8_t { kInPlace, kCopy, kRead };

struct BandwidthTask {
  std::int64_t num_bytes = 0, repeats = 0;
  MemoryPass pass = MemoryPass::kRead;
  int num_threads = 1;
};

std::vector<double> run_bandwidth(const BandwidthTask& task) {
  ThreadPool pool(task.num_threads);
  const Context context{Device{}, &pool};
  const auto all = static_cast<std::size_t>(task.num_bytes), half = all / 2;
  Buffer from(context.device, task.pass == MemoryPass::kRead ? all : half),
      to(context.device, task.pass == MemoryPass::kCopy ? half : 0, 1);
  bench::update_in_place(context, from.as<float>());
  std::vector<double> seconds;
  for (std::int64_t i = 0; i <= task.repeats; ++i) {
    const double pass = bench::seconds_of([&] {
      switch (task.pass) {
        case MemoryPass::kInPlace:
          return bench::update_in_place(context, from.as<float>());
        case MemoryPass::kCopy:
          return bench::copy(context, from.as<float>(), to.as<float>());
        case MemoryPass::kRead:
          static_cast<void>(bench::read(context, from.as<std::uint32_t>()));
      }
    });
    if (i > 0) seconds.push_back(pass);
  }
  return seconds;
}

Napi::Value times_object(Napi::Env env, const KernelTimes& times) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("shape", times.made.shape);
  object.Set("operations", times.made.operations);
  object.Set("bytes", times.made.bytes);
  object.Set("in_place", times.made.in_place);
  object.Set("mean_magnitude", times.mean_magnitude);
  object.Set("seconds", to_array(env, times.seconds));
  return object;
}

}  // namespace

Napi::Value kernel_names(const Napi::CallbackInfo& info) {
  const std::vector<KernelEntry> entries = bench::all_kernels();
  Napi::Array names = Napi::Array::New(info.Env(), entries.size());
  for (std::uint32_t i = 0; i < entries.size(); ++i) names.Set(i, entries[i].op);
  return names;
}

Napi::Value measure_kernel(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    const auto options = info[0].As<Napi::Object>();
    const KernelTask task{bench::kernel_named(string_field(options, "op")),
                          from_object<ModelConfig>(object_field(options, "model")),
                          {int_field(options, "micro_batch_size"), int_field(options, "sequence_length")},
                          dtype_from_name(string_field(options, "precision")),
                          int_field(options, "repeats"),
                          static_cast<int>(int_field(options, "threads")),
                          cpu_isa_from_name(string_field(options, "cpu_isa"))};
    validate(task.config);
    require(task.shape.batch > 0 && task.shape.length > 0 && task.repeats > 0, "invalid_argument",
            "micro_batch_size, sequence_length and repeats must be positive");
    return PromiseWorker<KernelTimes>::start(
        env, [task] { return run_kernel(task); },
        [](Napi::Env on_env, KernelTimes& times) { return times_object(on_env, times); });
  });
}

Napi::Value measure_bandwidth(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    const auto options = info[0].As<Napi::Object>();
    const BandwidthTask task{
        int_field(options, "bytes"), int_field(options, "repeats"),
        choice<MemoryPass>(
            options, "pass",
            {{"in_place", MemoryPass::kInPlace}, {"copy", MemoryPass::kCopy}, {"read", MemoryPass::kRead}}),
        static_cast<int>(int_field(options, "threads"))};
    require(task.num_bytes >= 8 && task.repeats > 0, "invalid_argument", "bytes must be at least 8, repeats positive");
    return PromiseWorker<std::vector<double>>::start(
        env, [task] { return run_bandwidth(task); },
        [](Napi::Env on_env, std::vector<double>& seconds) -> Napi::Value { return to_array(on_env, seconds); });
  });
}

}  // namespace zerofleet::binding
