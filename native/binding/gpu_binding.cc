#include "binding/gpu_binding.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "binding/convert/promise.h"
#include "core/cuda/cuda_runtime.h"
#include "core/cuda/traits.h"
#include "core/gpu/gpu_events.h"
#include "core/gpu/gpu_use.h"
#include "core/gpu/gpus.h"
#include "kernels/backends/numerics.h"

namespace zerofleet::binding {
namespace {

Napi::Value text_or_null(Napi::Env env, const std::string& text) {
  return text.empty() ? env.Null() : Napi::String::New(env, text);
}

Napi::Object gpu_object(Napi::Env env, const Gpu& gpu) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("index", gpu.index);
  object.Set("uuid", text_or_null(env, gpu.uuid));
  object.Set("name", gpu.name);
  object.Set("memory_bytes", static_cast<double>(gpu.memory_bytes));
  object.Set("free_bytes", static_cast<double>(gpu.free_bytes));
  object.Set("compute_capability", std::to_string(gpu.compute_major) + "." + std::to_string(gpu.compute_minor));
  object.Set("driver", gpu.driver);
  object.Set("cuda_driver", gpu.cuda_driver);
  object.Set("problem", text_or_null(env, gpu.problem));
  return object;
}

}  // namespace

Napi::Value gpus(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    Napi::Array list = Napi::Array::New(env);
    for (const Gpu& gpu : list_gpus()) list.Set(list.Length(), gpu_object(env, gpu));
    return list;
  });
}

Napi::Value watch_gpu(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    const auto events = std::make_shared<GpuEvents>(info[0].As<Napi::String>().Utf8Value());
    const auto take = [events](const Napi::CallbackInfo& call) -> Napi::Value {
      return guarded(call.Env(), [&]() -> Napi::Value {
        Napi::Array xids = Napi::Array::New(call.Env());
        for (const unsigned xid : events->take_xids()) xids.Set(xids.Length(), xid);
        return xids;
      });
    };
    return Napi::Function::New(env, take, "takeXids");
  });
}

Napi::Value measure_gpu(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    const auto use = std::make_shared<const GpuUse>(info[0].As<Napi::String>().Utf8Value());
    const auto busy = [use](const Napi::CallbackInfo& call) -> Napi::Value {
      return guarded(call.Env(), [&]() -> Napi::Value {
        const std::optional<double> share = use->busy();
        return share ? Napi::Number::New(call.Env(), *share) : call.Env().Null();
      });
    };
    return Napi::Function::New(env, busy, "busy");
  });
}

Napi::Value cuda_devices(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    if (!cuda::built_in()) return env.Null();
    Napi::Array list = Napi::Array::New(env);
    for (int index = 0; index < cuda::num_devices(); ++index) {
      const Device device{DeviceKind::kCuda, index};
      Napi::Object object = Napi::Object::New(env);
      object.Set("uuid", cuda::traits(device).uuid);
      object.Set("fingerprint", numerics_fingerprint(device, CpuIsa::kGeneric));
      list.Set(list.Length(), object);
    }
    return list;
  });
}

Napi::Value cuda_problem(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value { return text_or_null(env, cuda::driver_problem()); });
}

}  // namespace zerofleet::binding
