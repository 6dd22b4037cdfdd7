#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>

#include "comm/communicator.h"
#include "comm/nccl_handle.h"
#include "comm/pulse.h"
#include "comm/queued_exchanges.h"
#include "core/range.h"

namespace zerofleet::nccl {

/// Counts bytes in NCCL's calls.
inline std::size_t count_of(const Range& bytes) { return static_cast<std::size_t>(bytes.size()); }

/// Queues calls of a group until the first that fails.
class GroupCalls {
 public:
  GroupCalls(const Library& library, CommHandle* comm, CUstream_st* stream)
      : library_(library), comm_(comm), stream_(stream) {}

  void send(std::span<const std::byte> buffer, const Range& bytes, std::size_t peer) {
    if (bytes.empty() || result_ != kSuccess) return;
    note(library_.send(buffer.data() + bytes.begin, count_of(bytes), kByte, static_cast<int>(peer), comm_, stream_));
  }
  void recv(std::span<std::byte> buffer, const Range& bytes, std::size_t peer) {
    if (bytes.empty() || result_ != kSuccess) return;
    note(library_.recv(buffer.data() + bytes.begin, count_of(bytes), kByte, static_cast<int>(peer), comm_, stream_));
  }
  /// In place, of equal pieces.
  void all_gather(const Gather& gather, const Range& own) {
    if (result_ != kSuccess) return;
    note(library_.all_gather(gather.data.data() + own.begin, gather.data.data() + gather.pieces_bytes.front().begin, count_of(own),
                             kByte, comm_, stream_));
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

/// An exchange until it is done: it is given up when the pulse does, or when NCCL reports a failure.
class Watch final : public QueuedExchanges::Watch {
 public:
  Watch(Handle& handle, Pulse& pulse, const char* during, std::chrono::milliseconds more)
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
  std::chrono::milliseconds more_;
  std::optional<Pulse::Exchange> in_progress_;
};

}  // namespace zerofleet::nccl
