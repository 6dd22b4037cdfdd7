#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "comm/nccl_library.h"

namespace zerofleet::nccl {

/// An NCCL communicator in non-blocking mode: every call returns at once, and wait() polls until NCCL has queued what it does on the
/// stream. The caller can therefore give up on a peer that never answers: the communicator is aborted, which also ends kernels that
/// wait for the peer.
class Handle {
 public:
  using Milliseconds = std::chrono::milliseconds;

  /// Throws an Error when there is nothing to wait for any more.
  using Check = std::function<void()>;

  /// Blocks until all ranks with the same id are here. Throws Error{"comm_timeout"} when the time is up, and as run_group() does.
  Handle(std::shared_ptr<const Library> library, const UniqueId& id, int rank, int world_size, Milliseconds timeout);
  ~Handle();
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  /// Runs `calls(library, communicator)` as one group: it returns the first result that is not success. Then waits until NCCL has
  /// queued all of it on its stream. Throws what `check` throws, and Error{"comm_failed"} with NCCL's message; the communicator is aborted
  /// then.
  template <class Calls>
  void run_group(const char* during, Calls&& calls, const Check& check) {
    begin_group(during);
    const Result queued = calls(*library_, comm_);
    end_group(during, queued, check);
  }
  /// Looks after what is queued. Throws as run_group() does.
  void look(const char* during, const Check& check);
  /// Ends what is queued, with undefined results. run_group() throws Error{"comm_failed"} from now on.
  void abort() noexcept;

 private:
  using Clock = std::chrono::steady_clock;

  void begin_group(const char* during);
  void end_group(const char* during, Result queued, const Check& check);
  void wait(const char* during, const Check& check);
  /// Returns false while NCCL has something in progress on the host.
  bool is_settled(const char* during);
  void run(const Check& check, const char* during);
  [[noreturn]] void fail(const char* code, const std::string& message);
  std::string message_of(Result result) const;
  /// Returns true if nothing is in progress before the time is up.
  bool settles_within(Milliseconds time) noexcept;

  std::shared_ptr<const Library> library_;
  Milliseconds timeout_;
  CommHandle* comm_ = nullptr;  // null after a failure
};

}  // namespace zerofleet::nccl
