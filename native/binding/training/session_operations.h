#pragma once

#include <napi.h>

#include <functional>
#include <memory>
#include <utility>

#include "binding/convert/promise.h"
#include "binding/training/trainer_session.h"

namespace zerofleet::binding {

/// Runs the operations of a session for JavaScript.
class SessionOperations {
 protected:
  template <class Result>
  Napi::Promise start(Napi::Env env, std::function<Result(Session&)> work,
                      std::function<Napi::Value(Napi::Env, Session&, Result&)> convert) {
    guarded(env, [&] { session_->acquire(); });
    return PromiseWorker<Result>::start(
        env,
        [session = session_, work = std::move(work)] {
          const BusyGuard guard(*session);
          return work(*session);
        },
        [session = session_, convert = std::move(convert)](Napi::Env on_env, Result& result) {
          return convert(on_env, *session, result);
        });
  }

  /// An operation without a result.
  Napi::Promise start_void(Napi::Env env, std::function<void(Session&)> work) {
    return start<bool>(
        env,
        [work = std::move(work)](Session& session) {
          work(session);
          return true;
        },
        [](Napi::Env on_env, Session&, bool&) { return on_env.Undefined(); });
  }

  /// An operation short enough for the JavaScript thread.
  template <class Call>
  Napi::Value at_once(const Napi::CallbackInfo& info, Call&& call) {
    return guarded(info.Env(), [&]() -> Napi::Value {
      session_->acquire();
      const BusyGuard guard(*session_);
      return call(session_->trainer());
    });
  }

  std::shared_ptr<Session> session_ = std::make_shared<Session>();
};

}  // namespace zerofleet::binding
