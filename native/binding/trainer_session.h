#pragma once

#include <napi.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "comm/gloo_comm.h"
#include "comm/kv_store.h"
#include "core/buffer.h"
#include "core/error.h"
#include "train/trainer.h"

namespace zerofleet::binding {

/// A snapshot buffer and the one ArrayBuffer over it. The memory is shared with JavaScript, so it lives as long as either
/// side uses it.
struct SnapshotSlot {
  std::shared_ptr<Buffer> buffer;
  Napi::Reference<Napi::ArrayBuffer> view;
  bool in_use = false;  // JavaScript thread only
};

struct Session {
  TrainerConfig config;
  std::string backend;
  GlooOptions gloo;  // what ranks that meet over NCCL have in common with it as well
  std::shared_ptr<KvStore> rendezvous;
  std::unique_ptr<Trainer> trainer;
  std::array<SnapshotSlot, 2> slots;
  std::atomic<bool> busy{false};
  bool closed = false;
  /// Fetches the pages of the first snapshot buffer. Declared last, so that it ends before the others go.
  std::jthread page_toucher;
};

/// Marks the session busy for the length of one operation. Operations of a rank are strictly one after the other.
inline void acquire(Session& session) {
  require(!session.closed, "closed", "the trainer is closed");
  require(!session.busy.exchange(true), "busy", "another operation of this trainer is still running");
}

class BusyGuard {
 public:
  explicit BusyGuard(Session& session) : session_(session) {}
  ~BusyGuard() { session_.busy.store(false); }
  BusyGuard(const BusyGuard&) = delete;
  BusyGuard& operator=(const BusyGuard&) = delete;

 private:
  Session& session_;
};

inline Trainer& connected(Session& session) {
  require(session.trainer != nullptr, "not_connected", "connect() must come first");
  return *session.trainer;
}

}  // namespace zerofleet::binding
