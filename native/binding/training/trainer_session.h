#pragma once

#include <napi.h>

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "comm/gloo_comm.h"
#include "comm/kv_store.h"
#include "core/device/buffer.h"
#include "core/error.h"
#include "train/trainer.h"

namespace zerofleet::binding {

/// A snapshot buffer and the one ArrayBuffer over it. The memory is shared with JavaScript, so it lives as long as
/// either side uses it.
struct SnapshotSlot {
  std::shared_ptr<Buffer> buffer;
  Napi::Reference<Napi::ArrayBuffer> view;
  bool in_use = false;  // JavaScript thread only
};

/// A rank's session. Operations run strictly one after the other: on a thread of libuv's pool, or short ones on the
/// JavaScript thread.
class Session {
 public:
  TrainerConfig config;
  std::string backend;
  GlooOptions gloo;  // what ranks that meet over NCCL have in common with it as well
  std::shared_ptr<KvStore> rendezvous;
  std::array<SnapshotSlot, 2> slots;
  /// Fetches the pages of the first snapshot buffer.
  std::jthread page_toucher;

  /// Begins an operation. Throws Error{"closed"}, Error{"busy"}.
  void acquire() {
    const std::lock_guard lock(mutex_);
    require(!closed_, "closed", "the trainer is closed");
    require(!busy_, "busy", "another operation of this trainer is still running");
    busy_ = true;
  }

  /// Ends an operation. The last one of a session that was closed meanwhile frees the trainer, on its own thread.
  void release() {
    std::unique_ptr<Trainer> left_over;  // freed after the lock
    const std::lock_guard lock(mutex_);
    busy_ = false;
    if (closed_) left_over = std::move(trainer_);
  }

  /// During an operation: its trainer. Throws Error{"not_connected"}.
  Trainer& trainer() {
    const std::lock_guard lock(mutex_);
    require(trainer_ != nullptr, "not_connected", "connect() must come first");
    return *trainer_;
  }
  bool is_connected() {
    const std::lock_guard lock(mutex_);
    return trainer_ != nullptr;
  }
  /// Throws Error{"closed"}, with which the trainer goes.
  void connected(std::unique_ptr<Trainer> trainer) {
    const std::lock_guard lock(mutex_);
    require(!closed_, "closed", "the trainer was closed while it connected");
    trainer_ = std::move(trainer);
  }

  /// Refuses new operations, and aborts an operation that waits for other ranks. Returns the trainer for the caller to
  /// free, which may take long. Returns null if there is none, or if a running operation will free it.
  std::unique_ptr<Trainer> close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    rendezvous->close();
    if (trainer_) trainer_->abort();
    return busy_ ? nullptr : std::move(trainer_);
  }

 private:
  std::mutex mutex_;  // guards the members below
  std::unique_ptr<Trainer> trainer_;
  bool busy_ = false;
  bool closed_ = false;
};

class BusyGuard {
 public:
  explicit BusyGuard(Session& session) : session_(session) {}
  ~BusyGuard() { session_.release(); }
  BusyGuard(const BusyGuard&) = delete;
  BusyGuard& operator=(const BusyGuard&) = delete;

 private:
  Session& session_;
};

}  // namespace zerofleet::binding
