#pragma once

#include <napi.h>

#include <algorithm>
#include <memory>
#include <string>

#include "comm/kv_store.h"

namespace zerofleet::binding {

/// A published key on its way to JavaScript.
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

/// `callback` (key: string, value: Uint8Array) as something that any thread may call. It does not keep the process alive.
inline std::shared_ptr<RendezvousFunction> rendezvous_function(Napi::Env env, const Napi::Function& callback) {
  auto function =
      std::make_shared<RendezvousFunction>(RendezvousFunction::New(env, callback, "zerofleet:rendezvous", 0, 1));
  function->Unref(env);
  return function;
}

/// What a store calls for each key that this rank publishes.
inline KvStore::OnSet publisher(const std::shared_ptr<RendezvousFunction>& function) {
  return [function](const std::string& key, const KvStore::Bytes& value) {
    auto publication = std::make_unique<Publication>(Publication{key, value});
    if (function->NonBlockingCall(publication.get()) == napi_ok) static_cast<void>(publication.release());
  };
}

}  // namespace zerofleet::binding
