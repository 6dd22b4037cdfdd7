#include "binding/training/trainer_binding.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "binding/convert/convert.h"
#include "binding/convert/object_fields.h"
#include "binding/training/connect_ranks.h"
#include "binding/training/rendezvous.h"
#include "binding/training/session_calls.h"
#include "binding/training/session_operations.h"
#include "binding/training/snapshots.h"
#include "binding/training/trainer_results.h"
#include "binding/training/trainer_session.h"

namespace zerofleet::binding {
namespace {

class TrainerBinding : public Napi::ObjectWrap<TrainerBinding>, private SessionOperations {
 public:
  static Napi::Function define(Napi::Env env) {
    return DefineClass(env, "Trainer",
                       {InstanceMethod("deliver", &TrainerBinding::deliver),
                        InstanceMethod("connect", &TrainerBinding::connect),
                        InstanceMethod("initialize", &TrainerBinding::initialize),
                        InstanceMethod("initializeBase", &TrainerBinding::initialize_base),
                        InstanceMethod("slices", &TrainerBinding::slices),
                        InstanceMethod("baseSlices", &TrainerBinding::base_slices),
                        InstanceMethod("load", &TrainerBinding::load),
                        InstanceMethod("finishLoad", &TrainerBinding::finish_load),
                        InstanceMethod("computeReference", &TrainerBinding::compute_reference),
                        InstanceMethod("setReference", &TrainerBinding::set_reference),
                        InstanceMethod("lr", &TrainerBinding::lr),
                        InstanceMethod("memory", &TrainerBinding::memory),
                        InstanceMethod("step", &TrainerBinding::step),
                        InstanceMethod("evaluate", &TrainerBinding::evaluate),
                        InstanceMethod("forward", &TrainerBinding::forward),
                        InstanceMethod("forwardBackward", &TrainerBinding::forward_backward),
                        InstanceMethod("optimStep", &TrainerBinding::optim_step),
                        InstanceMethod("sample", &TrainerBinding::sample),
                        InstanceMethod("prepareSnapshot", &TrainerBinding::prepare_snapshot),
                        InstanceMethod("snapshot", &TrainerBinding::snapshot),
                        InstanceMethod("releaseSnapshot", &TrainerBinding::release_snapshot),
                        InstanceMethod("digestPart", &TrainerBinding::digest_part),
                        InstanceMethod("baseDigestPart", &TrainerBinding::base_digest_part),
                        InstanceMethod("close", &TrainerBinding::close)});
  }

  /// (config: object, onRendezvous: (key: string, value: Uint8Array) => void)
  explicit TrainerBinding(const Napi::CallbackInfo& info) : Napi::ObjectWrap<TrainerBinding>(info) {
    guarded(info.Env(), [&] {
      const auto object = info[0].As<Napi::Object>();
      session_->config = from_object<TrainerConfig>(object);
      validate(session_->config);
      const Napi::Object comm = object_field(object, "comm");
      session_->backend = string_field(comm, "backend");
      check_backend(session_->backend, session_->config);
      session_->gloo.rank = session_->config.rank;
      session_->gloo.world_size = session_->config.world_size;
      session_->gloo.bind_address = string_field(comm, "bind_address");
      session_->gloo.timeout = std::chrono::milliseconds(int_field(comm, "timeout_ms"));
      publisher_ = std::make_shared<RendezvousPublisher>(info.Env(), info[1].As<Napi::Function>());
      session_->rendezvous =
          std::make_shared<KvStore>([publisher = publisher_](const std::string& key, const KvStore::Bytes& value) {
            publisher->publish(key, value);
          });
    });
  }

 private:
  Napi::Value deliver(const Napi::CallbackInfo& info) {
    return guarded(info.Env(), [&]() -> Napi::Value {
      const auto value = info[1].As<Napi::Uint8Array>();
      session_->rendezvous->deliver(info[0].As<Napi::String>().Utf8Value(),
                                    {value.Data(), value.Data() + value.ByteLength()});
      return info.Env().Undefined();
    });
  }

  Napi::Value connect(const Napi::CallbackInfo& info) {
    return start_void(info.Env(), [](Session& session) {
      require(!session.is_connected(), "invalid_argument", "the trainer is connected already");
      session.connected(std::make_unique<Trainer>(session.config, connect_ranks(session)));
    });
  }

  Napi::Value initialize(const Napi::CallbackInfo& info) {
    const auto first = static_cast<std::size_t>(info[0].As<Napi::Number>().Int64Value());
    return start_void(info.Env(), [first](Session& session) { session.trainer().initialize(first); });
  }

  Napi::Value initialize_base(const Napi::CallbackInfo& info) {
    const auto seed = static_cast<std::uint64_t>(info[0].As<Napi::Number>().Int64Value());
    return start_void(info.Env(), [seed](Session& session) { session.trainer().initialize_base(seed); });
  }

  Napi::Value slices(const Napi::CallbackInfo& info) {
    return at_once(info, [&](Trainer& trainer) { return slices_array(info.Env(), trainer.slices()); });
  }

  Napi::Value base_slices(const Napi::CallbackInfo& info) {
    return at_once(info, [&](Trainer& trainer) { return slices_array(info.Env(), trainer.base_slices()); });
  }

  /// (state: string, param: number, begin: number, data: Uint8Array of fp32)
  Napi::Value load(const Napi::CallbackInfo& info) {
    return at_once(info, [&](Trainer& trainer) {
      trainer.load(state_from_name(info[0].As<Napi::String>().Utf8Value()),
                   static_cast<std::size_t>(info[1].As<Napi::Number>().Int64Value()),
                   info[2].As<Napi::Number>().Int64Value(), floats_from(info[3]));
      return info.Env().Undefined();
    });
  }

  /// (TrainingPosition & {restore: string})
  Napi::Value finish_load(const Napi::CallbackInfo& info) {
    const auto at = info[0].As<Napi::Object>();
    const TrainingPosition position = position_from(at);
    const Restore restore = guarded(info.Env(), [&] { return restore_from(string_field(at, "restore")); });
    return start_void(info.Env(), [=](Session& session) { session.trainer().finish_load(position, restore); });
  }

  /// () → Float64Array
  Napi::Value compute_reference(const Napi::CallbackInfo& info) {
    return start<std::vector<double>>(
        info.Env(), [](Session& session) { return session.trainer().compute_reference(); },
        [](Napi::Env env, Session&, std::vector<double>& values) {
          auto array = Napi::Float64Array::New(env, values.size());
          std::ranges::copy(values, array.Data());
          return array;
        });
  }

  /// (logProbs: Float64Array)
  Napi::Value set_reference(const Napi::CallbackInfo& info) {
    return at_once(info, [&](Trainer& trainer) {
      const auto array = info[0].As<Napi::Float64Array>();
      trainer.set_reference({array.Data(), array.Data() + array.ElementLength()});
      return info.Env().Undefined();
    });
  }

  /// () → {part: bytes}
  Napi::Value memory(const Napi::CallbackInfo& info) {
    return at_once(info, [&](Trainer& trainer) { return memory_object(info.Env(), trainer.memory()); });
  }

  /// () → rate of the next step
  Napi::Value lr(const Napi::CallbackInfo& info) {
    return at_once(info, [&](Trainer& trainer) { return Napi::Number::New(info.Env(), trainer.lr()); });
  }

  /// (flags: number) → StepResult
  Napi::Value step(const Napi::CallbackInfo& info) {
    const std::uint32_t flags = info[0].As<Napi::Number>().Uint32Value();
    return start<StepResult>(
        info.Env(), [flags](Session& session) { return session.trainer().step(flags); },
        [](Napi::Env env, Session&, StepResult& result) { return step_result_object(env, result); });
  }

  /// (file: number) → EvalResult
  Napi::Value evaluate(const Napi::CallbackInfo& info) {
    const auto file = static_cast<std::size_t>(info[0].As<Napi::Number>().Int64Value());
    return start<EvalResult>(
        info.Env(), [file](Session& session) { return session.trainer().evaluate(file); },
        [](Napi::Env env, Session&, EvalResult& result) { return eval_result_object(env, result); });
  }

  using RunPass = PassResult (PassRunner::*)(const PassLoss& loss, const PassRows& rows);
  Napi::Value pass(const Napi::CallbackInfo& info, RunPass run) {
    auto call = guarded(info.Env(), [&] { return pass_from(info[0], info[1]); });
    return start<PassResult>(
        info.Env(),
        [run, call = std::move(call)](Session& session) {
          return (session.trainer().passes().*run)(call.loss, call.rows);
        },
        [](Napi::Env env, Session&, PassResult& result) { return pass_result_object(env, result); });
  }

  /// (loss: PassLoss, rows: PassRows) → PassResult; both
  Napi::Value forward(const Napi::CallbackInfo& info) { return pass(info, &PassRunner::forward); }
  Napi::Value forward_backward(const Napi::CallbackInfo& info) { return pass(info, &PassRunner::forward_backward); }

  /// (update: OptimStep) → StepResult
  Napi::Value optim_step(const Napi::CallbackInfo& info) {
    const OptimCall call = optim_from(info[0]);
    return start<StepResult>(
        info.Env(), [call](Session& session) { return session.trainer().optim_step(call.lr, call.settings); },
        [](Napi::Env env, Session&, StepResult& result) { return step_result_object(env, result); });
  }

  /// (requests: SampleRequest[]) → SampledAnswer[]
  Napi::Value sample(const Napi::CallbackInfo& info) {
    auto requests = guarded(info.Env(), [&] { return requests_from(info[0]); });
    return start<std::vector<SampledAnswer>>(
        info.Env(), [requests = std::move(requests)](Session& session) { return session.trainer().sample(requests); },
        [](Napi::Env env, Session&, std::vector<SampledAnswer>& answers) { return answers_array(env, answers); });
  }

  /// () → undefined
  Napi::Value prepare_snapshot(const Napi::CallbackInfo& info) {
    return at_once(info, [&](Trainer&) {
      binding::prepare_snapshot(*session_);
      return info.Env().Undefined();
    });
  }

  /// () → TrainingPosition & {slot, digest_part, buffer: ArrayBuffer, slices}
  Napi::Value snapshot(const Napi::CallbackInfo& info) {
    const std::size_t slot = guarded(info.Env(), [&] { return free_slot(*session_); });
    return start<SnapshotResult>(
        info.Env(), [slot](Session& session) { return take_snapshot(session, slot); },
        [](Napi::Env env, Session& session, SnapshotResult& result) { return snapshot_object(env, session, result); });
  }

  Napi::Value release_snapshot(const Napi::CallbackInfo& info) {
    return guarded(info.Env(), [&]() -> Napi::Value {
      session_->slots.at(info[0].As<Napi::Number>().Uint32Value()).in_use = false;
      return info.Env().Undefined();
    });
  }

  Napi::Value digest_part(const Napi::CallbackInfo& info) {
    return at_once(info,
                   [&](Trainer& trainer) { return Napi::String::New(info.Env(), trainer.digest_part().to_hex()); });
  }

  /// () → Promise<string>
  Napi::Value base_digest_part(const Napi::CallbackInfo& info) {
    return start<Digest128>(
        info.Env(), [](Session& session) { return session.trainer().base_digest_part(); },
        [](Napi::Env env, Session&, Digest128& digest) { return Napi::String::New(env, digest.to_hex()); });
  }

  /// () → Promise<undefined>. Ends waits for other ranks, and frees the trainer off the JavaScript thread, or lets the
  /// operation that still runs do so. May be called more than once.
  Napi::Value close(const Napi::CallbackInfo& info) {
    if (!closed_) publisher_->close();
    closed_ = true;
    auto left_over = std::make_shared<std::unique_ptr<Trainer>>(session_->close());
    return PromiseWorker<bool>::start(
        info.Env(),
        [left_over] {
          left_over->reset();
          return true;
        },
        [](Napi::Env env, bool&) { return env.Undefined(); });
  }

  std::shared_ptr<RendezvousPublisher> publisher_;
  bool closed_ = false;
};

}  // namespace

void export_trainer(Napi::Env env, Napi::Object exports) { exports.Set("Trainer", TrainerBinding::define(env)); }

}  // namespace zerofleet::binding
