#include "binding/answer_engine_binding.h"

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "binding/convert/convert.h"
#include "binding/convert/object_fields.h"
#include "binding/convert/promise.h"
#include "serve/answer_engine.h"

namespace zerofleet::binding {
namespace {

SequenceRequest request_from(const Napi::CallbackInfo& info) {
  const auto options = info[2].As<Napi::Object>();
  SequenceRequest request;
  request.id = static_cast<std::uint64_t>(info[0].As<Napi::Number>().Int64Value());
  request.prompt = numbers_from<std::int32_t>(info[1]);
  request.max_tokens = int_field(options, "max_tokens");
  request.end_tokens = numbers_from<std::int32_t>(options.Get("end_tokens"));
  request.top_log_probs = int_field(options, "top_logprobs");
  request.is_constrained = bool_field(options, "is_constrained");
  request.adapter = static_cast<std::int32_t>(int_field(options, "adapter"));
  request.draw = from_object<DrawOptions>(options);
  return request;
}

Napi::Object likely_to(Napi::Env env, const LikelyToken& likely) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("token", likely.token);
  object.Set("logprob", likely.log_prob);
  return object;
}

Napi::Value finish_to(Napi::Env env, Finish finish) {
  switch (finish) {
    case Finish::kNone:
      break;
    case Finish::kEndToken:
      return Napi::String::New(env, "end");
    case Finish::kLength:
      return Napi::String::New(env, "length");
  }
  return env.Null();
}

Napi::Value drawn_to(Napi::Env env, const std::vector<DrawnToken>& tokens) {
  Napi::Array result = Napi::Array::New(env, tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const DrawnToken& token = tokens[i];
    Napi::Object object = likely_to(env, token.drawn);
    object.Set("id", static_cast<double>(token.id));
    object.Set("finish", finish_to(env, token.finish));
    object.Set("cached_tokens", static_cast<double>(token.cached_tokens));
    Napi::Array top = Napi::Array::New(env, token.top.size());
    for (std::size_t k = 0; k < token.top.size(); ++k)
      top.Set(static_cast<std::uint32_t>(k), likely_to(env, token.top[k]));
    object.Set("top", top);
    result.Set(static_cast<std::uint32_t>(i), object);
  }
  return result;
}

class AnswerEngineBinding : public Napi::ObjectWrap<AnswerEngineBinding> {
 public:
  static Napi::Function define(Napi::Env env) {
    return DefineClass(
        env, "AnswerEngine",
        {InstanceMethod("setParam", &AnswerEngineBinding::set_param), InstanceMethod("add", &AnswerEngineBinding::add),
         InstanceMethod("addAdapter", &AnswerEngineBinding::add_adapter),
         InstanceMethod("removeAdapter", &AnswerEngineBinding::remove_adapter),
         InstanceMethod("cancel", &AnswerEngineBinding::cancel), InstanceMethod("allow", &AnswerEngineBinding::allow),
         InstanceMethod("step", &AnswerEngineBinding::step),
         InstanceAccessor("maxLength", &AnswerEngineBinding::max_length, nullptr),
         InstanceAccessor("numBytes", &AnswerEngineBinding::num_bytes, nullptr),
         InstanceMethod("close", &AnswerEngineBinding::close)});
  }

  /// (model: object, {threads, dtype, device, cache_tokens, max_length, max_sequences}, cpu_isa: string)
  explicit AnswerEngineBinding(const Napi::CallbackInfo& info) : Napi::ObjectWrap<AnswerEngineBinding>(info) {
    guarded(info.Env(), [&] {
      const ModelConfig config = from_object<ModelConfig>(info[0].As<Napi::Object>());
      validate(config);
      const auto options = info[1].As<Napi::Object>();
      const Device device = string_field(options, "device") == "cuda" ? Device{DeviceKind::kCuda, 0} : Device{};
      shared_ = std::make_shared<Shared>(
          config, dtype_from_name(string_field(options, "dtype")), device,
          static_cast<int>(int_field(options, "threads")), cpu_isa_from_name(info[2].As<Napi::String>().Utf8Value()),
          AnswerEngine::Limits{int_field(options, "max_sequences"), int_field(options, "cache_tokens"),
                               int_field(options, "max_length")});
    });
  }

 private:
  /// State shared by the JavaScript thread and a step.
  struct Shared {
    template <class... Args>
    explicit Shared(Args&&... args) : engine(std::forward<Args>(args)...) {}
    AnswerEngine engine;
    std::atomic<bool> busy{false};
  };

  /// The engine for one step or change of weights: there is one at a time.
  class Turn {
   public:
    explicit Turn(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {
      require(!shared_->busy.exchange(true), "busy", "a step of this engine is still running");
    }
    ~Turn() { shared_->busy.store(false); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    AnswerEngine* operator->() const { return &shared_->engine; }

   private:
    std::shared_ptr<Shared> shared_;
  };

  const std::shared_ptr<Shared>& open() const {
    require(shared_ != nullptr, "closed", "the engine is closed");
    return shared_;
  }

  /// (index: number, begin: number, dtype: string, elements: Uint8Array)
  Napi::Value set_param(const Napi::CallbackInfo& info) {
    return guarded(info.Env(), [&]() -> Napi::Value {
      Turn(open())->set_param(static_cast<std::size_t>(info[0].As<Napi::Number>().Int64Value()),
                              info[1].As<Napi::Number>().Int64Value(),
                              dtype_from_name(info[2].As<Napi::String>().Utf8Value()), bytes_from(info[3]));
      return info.Env().Undefined();
    });
  }

  /// (id: number, prompt: Int32Array, {max_tokens, end_tokens: Int32Array, top_logprobs, adapter, is_constrained, … of
  /// DrawOptions})
  Napi::Value add(const Napi::CallbackInfo& info) {
    return guarded(info.Env(), [&]() -> Napi::Value {
      open()->engine.add(request_from(info));
      return info.Env().Undefined();
    });
  }

  struct AddedAdapter {
    std::int32_t number = 0;
    std::size_t num_bytes = 0;
  };

  /// (adapter: object, values: Uint8Array[] of fp32) → Promise<{adapter: number, num_bytes: number}>
  Napi::Value add_adapter(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    return guarded(env, [&]() -> Napi::Value {
      auto turn = std::make_shared<Turn>(open());
      const auto arrays = info[1].As<Napi::Array>();
      std::vector<std::vector<float>> values;
      for (std::uint32_t i = 0; i < arrays.Length(); ++i) {
        const std::span<const float> floats = floats_from(arrays.Get(i));
        values.emplace_back(floats.begin(), floats.end());
      }
      return PromiseWorker<AddedAdapter>::start(
          env,
          [turn = std::move(turn), config = from_object<AdapterConfig>(info[0].As<Napi::Object>()),
           values = std::move(values)] {
            const std::int32_t number = (*turn)->add_adapter(config, values);
            return AddedAdapter{number, (*turn)->num_bytes(number)};
          },
          [](Napi::Env on_env, const AddedAdapter& added) {
            Napi::Object object = Napi::Object::New(on_env);
            object.Set("adapter", added.number);
            object.Set("num_bytes", static_cast<double>(added.num_bytes));
            return object;
          });
    });
  }

  /// (adapter: number) → Promise<void>
  Napi::Value remove_adapter(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    return guarded(env, [&]() -> Napi::Value {
      return PromiseWorker<bool>::start(
          env,
          [turn = std::make_shared<Turn>(open()), number = info[0].As<Napi::Number>().Int32Value()] {
            (*turn)->remove_adapter(number);
            return true;
          },
          [](Napi::Env on_env, bool) { return on_env.Undefined(); });
    });
  }

  /// (id: number)
  Napi::Value cancel(const Napi::CallbackInfo& info) {
    return guarded(info.Env(), [&]() -> Napi::Value {
      open()->engine.cancel(static_cast<std::uint64_t>(info[0].As<Napi::Number>().Int64Value()));
      return info.Env().Undefined();
    });
  }

  /// (id: number, mask: Uint32Array)
  Napi::Value allow(const Napi::CallbackInfo& info) {
    return guarded(info.Env(), [&]() -> Napi::Value {
      const auto mask = info[1].As<Napi::Uint32Array>();
      open()->engine.allow(static_cast<std::uint64_t>(info[0].As<Napi::Number>().Int64Value()),
                           {mask.Data(), mask.Data() + mask.ElementLength()});
      return info.Env().Undefined();
    });
  }

  /// () → Promise<[{id, token, logprob, top, finish, cached_tokens}]>
  Napi::Value step(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    return PromiseWorker<std::vector<DrawnToken>>::start(
        env, [turn = guarded(env, [&] { return std::make_shared<Turn>(open()); })] { return (*turn)->step(); },
        [](Napi::Env on_env, std::vector<DrawnToken>& tokens) { return drawn_to(on_env, tokens); });
  }

  Napi::Value max_length(const Napi::CallbackInfo& info) {
    return guarded(info.Env(),
                   [&] { return Napi::Number::New(info.Env(), static_cast<double>(open()->engine.max_length())); });
  }

  Napi::Value num_bytes(const Napi::CallbackInfo& info) {
    return guarded(info.Env(),
                   [&] { return Napi::Number::New(info.Env(), static_cast<double>(open()->engine.num_bytes())); });
  }

  Napi::Value close(const Napi::CallbackInfo& info) {
    shared_.reset();
    return info.Env().Undefined();
  }

  std::shared_ptr<Shared> shared_;
};

}  // namespace

void export_answer_engine(Napi::Env env, Napi::Object exports) {
  exports.Set("AnswerEngine", AnswerEngineBinding::define(env));
}

}  // namespace zerofleet::binding
