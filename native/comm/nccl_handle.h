#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "comm/communicator.h"
#include "comm/nccl_library.h"
#include "comm/pulse.h"
#include "comm/queued_exchanges.h"
#include "core/device/stream.h"
#include "core/range.h"

namespace zerofleet::nccl {

/// Number of bytes, as NCCL's calls take it.
inline std::size_t count_of(const Range& bytes) { return static_cast<std::size_t>(bytes.size()); }

/// Queues the calls of a group. Stops at the first failure.
class GroupCalls {
 public:
  GroupCalls(const Library& library, CommHandle* comm, CUstream_st* stream)
      : library_(library), comm_(comm), stream_(stream) {}

  void send(std::span<const std::byte> buffer, const Range& bytes, int peer) {
    if (bytes.empty() || result_ != kSuccess) return;
    note(library_.send(buffer.data() + bytes.begin, count_of(bytes), kByte, peer, comm_, stream_));
  }
  void recv(std::span<std::byte> buffer, const Range& bytes, int peer) {
    if (bytes.empty() || result_ != kSuccess) return;
    note(library_.recv(buffer.data() + bytes.begin, count_of(bytes), kByte, peer, comm_, stream_));
  }
  /// In place. All pieces have the same size.
  void all_gather(const Gather& gather, const Range& own) {
    if (result_ != kSuccess) return;
    std::byte* const target = gather.data.data() + gather.pieces_bytes.front().begin;
    note(library_.all_gather(gather.data.data() + own.begin, target, count_of(own), kByte, comm_, stream_));
  }
  Result result() const { return result_; }

 private:
  void note(Result result) {
    if (result != kInProgress) result_ = result;
  }

  const Library& library_;
  CommHandle* comm_;
  CUstream_st* stream_;
  Result result_ = kSuccess;
};

/// An NCCL communicator in non-blocking mode. Calls return at once, and wait() polls until NCCL has queued their work
/// on the stream. The caller can therefore give up on a peer that never answers: abort() also ends the kernels that
/// wait for the peer.
class Handle {
 public:
  using Milliseconds = std::chrono::milliseconds;

  /// Throws an Error if waiting has become pointless.
  using Check = std::function<void()>;

  /// Blocks until all ranks with the same id have connected. Throws Error{"comm_timeout"}, and as run_group() does.
  Handle(std::shared_ptr<const Library> library, const UniqueId& id, int rank, int world_size, Milliseconds timeout);
  ~Handle();
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  /// Runs `body(calls)` as one group, and waits until NCCL has queued it on the stream. Throws the errors of `check`,
  /// or Error{"comm_failed"} with NCCL's message. An error aborts the communicator.
  template <class Body>
  void run_group(const char* during, const Stream& stream, Body&& body, const Check& check) {
    begin_group(during);
    GroupCalls calls(*library_, comm_, stream.handle());
    body(calls);
    end_group(during, calls.result(), check);
  }
  /// Checks the queued work. Throws as run_group() does.
  void look(const char* during, const Check& check);
  /// Ends the queued work, with undefined results. Later calls of run_group() throw Error{"comm_failed"}.
  void abort() noexcept;

 private:
  using Clock = std::chrono::steady_clock;

  void begin_group(const char* during);
  void end_group(const char* during, Result queued, const Check& check);
  void wait(const char* during, const Check& check);
  /// Returns false while NCCL has work in progress on the host.
  bool is_settled(const char* during);
  void run(const Check& check, const char* during);
  [[noreturn]] void fail(const char* code, const std::string& message);
  std::string message_of(Result result) const;
  /// Waits up to `time`. Returns true if no work is in progress.
  bool settles_within(Milliseconds time) noexcept;

  std::shared_ptr<const Library> library_;
  Milliseconds timeout_;
  CommHandle* comm_ = nullptr;  // null after a failure
};

/// Watches a queued exchange. Ends it when the pulse gives it up, or when NCCL reports a failure.
class Watch final : public QueuedExchanges::Watch {
 public:
  Watch(Handle& handle, Pulse& pulse, const char* during, Handle::Milliseconds more)
      : handle_(handle), pulse_(pulse), during_(during), more_(more) {}

  void begin() override { in_progress_.emplace(pulse_, nullptr, more_); }
  void check() override {
    handle_.look(during_, [this] { pulse_.check(); });
  }
  void abort() noexcept override { handle_.abort(); }

 private:
  Handle& handle_;
  Pulse& pulse_;
  const char* during_;
  Handle::Milliseconds more_;
  std::optional<Pulse::Exchange> in_progress_;
};

}  // namespace zerofleet::nccl
