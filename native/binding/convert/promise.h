#pragma once

#include <napi.h>

#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "core/error.h"

namespace zerofleet::binding {

/// A JavaScript Error whose `code` is the native error's stable code. The only file where codes cross over.
inline Napi::Error make_error(Napi::Env env, const std::string& code, const std::string& message) {
  Napi::Error error = Napi::Error::New(env, message);
  error.Set("code", Napi::String::New(env, code));
  return error;
}

/// Runs `body` on the JavaScript thread and turns native errors into JavaScript ones.
template <class Body>
auto guarded(Napi::Env env, Body&& body) -> std::invoke_result_t<Body> {
  try {
    return body();
  } catch (const Error& error) {
    throw make_error(env, error.code(), error.what());
  } catch (const std::bad_alloc&) {
    throw make_error(env, "out_of_memory", "the process is out of memory");
  } catch (const Napi::Error&) {
    throw;
  } catch (const std::exception& error) {
    throw make_error(env, "internal", error.what());
  }
}

/// A native operation on a thread of libuv's pool, where `work` must not touch JavaScript. `convert` runs on the
/// JavaScript thread and makes the value that the promise resolves to. Objects that `work` holds are released on the
/// JavaScript thread, just before the promise settles: for JavaScript an operation runs exactly as long as its promise
/// is pending.
template <class Result>
class PromiseWorker : public Napi::AsyncWorker {
 public:
  using Work = std::function<Result()>;
  using Convert = std::function<Napi::Value(Napi::Env, Result&)>;

  static Napi::Promise start(Napi::Env env, Work work, Convert convert) {
    auto* worker = new PromiseWorker(env, std::move(work), std::move(convert));  // deletes itself when it has settled
    const Napi::Promise promise = worker->deferred_.Promise();
    worker->Queue();
    return promise;
  }

 protected:
  void Execute() override {
    try {
      result_.emplace(work_());
    } catch (const Error& error) {
      fail(error.code(), error.what());
    } catch (const std::bad_alloc&) {
      fail("out_of_memory", "the process is out of memory");
    } catch (const std::exception& error) {
      fail("internal", error.what());
    }
  }
  void OnOK() override {
    work_ = nullptr;
    try {
      deferred_.Resolve(guarded(Env(), [&] { return convert_(Env(), *result_); }));
    } catch (const Napi::Error& error) {
      deferred_.Reject(error.Value());
    }
  }
  void OnError(const Napi::Error& error) override {
    work_ = nullptr;
    deferred_.Reject(make_error(Env(), code_, error.Message()).Value());
  }

 private:
  PromiseWorker(Napi::Env env, Work work, Convert convert)
      : Napi::AsyncWorker(env), deferred_(env), work_(std::move(work)), convert_(std::move(convert)) {}

  void fail(const std::string& code, const std::string& message) {
    code_ = code;
    SetError(message);
  }

  Napi::Promise::Deferred deferred_;
  Work work_;
  Convert convert_;
  std::optional<Result> result_;
  std::string code_;
};

}  // namespace zerofleet::binding
