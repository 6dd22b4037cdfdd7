#include "binding/sampler_binding.h"

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "binding/convert/convert.h"
#include "binding/convert/model_config_from.h"
#include "binding/convert/promise.h"
#include "train/sampler.h"

namespace zerofleet::binding {
namespace {

class SamplerBinding : public Napi::ObjectWrap<SamplerBinding> {
 public:
  static Napi::Function define(Napi::Env env) {
    return DefineClass(env, "Sampler",
                       {InstanceMethod("setParam", &SamplerBinding::set_param),
                        InstanceMethod("sample", &SamplerBinding::sample), InstanceMethod("close", &SamplerBinding::close)});
  }

  /// (model: object, threads: number, cpu_isa: string)
  explicit SamplerBinding(const Napi::CallbackInfo& info) : Napi::ObjectWrap<SamplerBinding>(info) {
    guarded(info.Env(), [&] {
      const ModelConfig config = model_config_from(info[0].As<Napi::Object>());
      validate(config);
      shared_ = std::make_shared<Shared>(config, info[1].As<Napi::Number>().Int32Value(),
                                         cpu_isa_from_name(info[2].As<Napi::String>().Utf8Value()));
    });
  }

 private:
  /// State shared by the JavaScript thread and a draw.
  struct Shared {
    Shared(const ModelConfig& config, int num_threads, CpuIsa cpu_isa) : sampler(config, num_threads, cpu_isa) {}
    Sampler sampler;
    std::atomic<bool> busy{false};
  };

  /// The sampler for one operation: there is one at a time.
  class Turn {
   public:
    explicit Turn(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {
      require(shared_ != nullptr, "closed", "the sampler is closed");
      require(!shared_->busy.exchange(true), "busy", "another operation of this sampler is still running");
    }
    ~Turn() { shared_->busy.store(false); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    Sampler* operator->() const { return &shared_->sampler; }

   private:
    std::shared_ptr<Shared> shared_;
  };

  /// (index: number, values: Uint8Array of fp32)
  Napi::Value set_param(const Napi::CallbackInfo& info) {
    return guarded(info.Env(), [&]() -> Napi::Value {
      Turn(shared_)->set_param(static_cast<std::size_t>(info[0].As<Napi::Number>().Int64Value()), floats_from(info[1]));
      return info.Env().Undefined();
    });
  }

  /// (prompt: Int32Array, {max_tokens, temperature, top_k, top_p, num_tokens, end_token, seed}) → Promise<Int32Array>
  Napi::Value sample(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    const auto array = info[0].As<Napi::Int32Array>();
    std::vector<std::int32_t> prompt(array.Data(), array.Data() + array.ElementLength());
    const auto object = info[1].As<Napi::Object>();
    const SampleOptions options{int_field(object, "max_tokens"), number_field(object, "temperature"),
                                int_field(object, "top_k"), number_field(object, "top_p"), int_field(object, "num_tokens"),
                                int_field(object, "end_token"),
                                static_cast<std::uint64_t>(int_field(object, "seed"))};
    return PromiseWorker<std::vector<std::int32_t>>::start(
        env,
        [turn = guarded(env, [&] { return std::make_shared<Turn>(shared_); }), prompt = std::move(prompt), options] {
          return (*turn)->sample(prompt, options);
        },
        [](Napi::Env on_env, std::vector<std::int32_t>& tokens) -> Napi::Value {
          auto result = Napi::Int32Array::New(on_env, tokens.size());
          std::ranges::copy(tokens, result.Data());
          return result;
        });
  }

  Napi::Value close(const Napi::CallbackInfo& info) {
    shared_.reset();
    return info.Env().Undefined();
  }

  std::shared_ptr<Shared> shared_;
};

}  // namespace

void export_sampler(Napi::Env env, Napi::Object exports) { exports.Set("Sampler", SamplerBinding::define(env)); }

}  // namespace zerofleet::binding
