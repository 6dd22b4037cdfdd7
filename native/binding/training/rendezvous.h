#pragma once

#include <napi.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>

#include "comm/kv_store.h"

namespace zerofleet::binding {

/// A published key in transit to JavaScript.
struct Publication {
  std::string key;
  KvStore::Bytes value;
};

inline void call_on_rendezvous(Napi::Env env, Napi::Function callback, std::nullptr_t*, Publication* publication) {
  const std::unique_ptr<Publication> owned(publication);
  if (env == nullptr || callback.IsEmpty()) return;  // the environment is shutting down
  auto value = Napi::Uint8Array::New(env, owned->value.size());
  std::ranges::copy(owned->value, value.Data());
  callback.Call({Napi::String::New(env, owned->key), value});
}

using RendezvousFunction = Napi::TypedThreadSafeFunction<std::nullptr_t, Publication, call_on_rendezvous>;

/// `callback` (key: string, value: Uint8Array) as something that any thread may call, also after close(), which frees
/// it. It does not keep the process alive.
class RendezvousPublisher {
 public:
  RendezvousPublisher(Napi::Env env, const Napi::Function& callback)
      : function_(RendezvousFunction::New(env, callback, "zerofleet:rendezvous", 0, 1)) {
    function_.Unref(env);
  }

  void publish(const std::string& key, const KvStore::Bytes& value) {
    auto publication = std::make_unique<Publication>(Publication{key, value});
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    if (function_.NonBlockingCall(publication.get()) == napi_ok) static_cast<void>(publication.release());
  }

  /// Once.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    function_.Release();
  }

 private:
  std::mutex mutex_;
  RendezvousFunction function_;
  bool closed_ = false;
};

}  // namespace zerofleet::binding
