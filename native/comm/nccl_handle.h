#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "comm/nccl_library.h"
#include "core/device/stream.h"

namespace zerofleet::nccl {

/// An NCCL communicator in non-blocking mode: every call returns at once, and wait() polls it. The caller can therefore
/// give up on a peer that never answers: the communicator is aborted, which also ends kernels that wait for the peer.
class Handle {
 public:
  using Milliseconds = std::chrono::milliseconds;

  /// Throws an Error when there is nothing to wait for any more.
  using Check = std::function<void()>;

  /// Blocks until all ranks with the same id are here. Throws Error{"comm_timeout"} when the time is up, and as wait() does.
  Handle(std::shared_ptr<const Library> library, Stream& stream, const UniqueId& id, int rank, int world_size,
         Milliseconds timeout);
  ~Handle();
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  /// Runs `calls(library, communicator, stream)` as one group: it returns the first result that is not success, and
  /// queues on the stream. Then waits until all of it is done, or `check` throws.
  template <class Calls>
  void run_group(const char* during, Calls&& calls, const Check& check) {
    begin_group(during);
    const Result queued = calls(*library_, comm_, stream_.handle());
    end_group(during, queued, check);
  }

 private:
  using Clock = std::chrono::steady_clock;

  void begin_group(const char* during);
  void end_group(const char* during, Result queued, const Check& check);
  /// Waits until NCCL has nothing in progress and the stream is done. Throws what `check` throws, Error{"comm_failed"} with
  /// NCCL's message, Error{"device_failed"}; the communicator is aborted then.
  void wait(const char* during, const Check& check);
  [[noreturn]] void fail(const char* code, const std::string& message);
  std::string message_of(Result result) const;
  void abort() noexcept;
  /// Returns true if nothing is in progress before the time is up.
  bool settles_within(Milliseconds time) noexcept;

  std::shared_ptr<const Library> library_;
  Stream& stream_;
  Milliseconds timeout_;
  CommHandle* comm_ = nullptr;  // null after a failure
};

}  // namespace zerofleet::nccl
