#include "binding/measure/measure_memory_binding.h"

#include "binding/convert/convert.h"
#include "binding/convert/promise.h"
#include "train/memory_probe.h"

namespace zerofleet::binding {
namespace {

Napi::Value parts_object(Napi::Env env, const ZeroMemory& memory) {
  const auto bytes = [](std::size_t count) { return static_cast<double>(count); };
  Napi::Object object = Napi::Object::New(env);
  object.Set("params", bytes(memory.params));
  object.Set("grad_shard", bytes(memory.grad_shard));
  object.Set("master", bytes(memory.master));
  object.Set("moments", bytes(memory.moments));
  object.Set("lane_accumulator", bytes(memory.lane_accumulator));
  object.Set("send_staging", bytes(memory.send_staging));
  object.Set("receive_staging", bytes(memory.receive_staging));
  return object;
}

}  // namespace

Napi::Value measure_zero_memory(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    const auto options = info[0].As<Napi::Object>();
    MemoryProbe probe;
    probe.num_params = int_field(options, "params");
    probe.param_numel = int_field(options, "param_numel");
    probe.world_size = static_cast<int>(int_field(options, "world_size"));
    return PromiseWorker<ZeroMemory>::start(
        env, [probe] { return run_memory_probe(probe); },
        [](Napi::Env on_env, ZeroMemory& memory) { return parts_object(on_env, memory); });
  });
}

}  // namespace zerofleet::binding
