#pragma once

#include <cstdint>
#include <memory>

#include "core/cuda/cuda_runtime.h"
#include "core/device.h"

namespace zerofleet {

class Event;

/// A queue of work on one device. Kernels and copies of a Context run in the order of their calls, and concurrently
/// with those of other streams. A CUDA call returns before its work is done; errors of the work itself come from a
/// later call, at the latest from synchronize(). On the CPU every call works before it returns, and a stream is empty.
/// Errors: as core/cuda/cuda_runtime.h says.
class Stream {
 public:
  /// Exchanges between ranks are urgent: others wait for them.
  enum class Priority : std::uint8_t { kNormal, kUrgent };
  explicit Stream(Device device, Priority priority = Priority::kNormal);

  Device device() const { return device_; }
  /// A cudaStream_t; null for the CPU.
  CUstream_st* handle() const { return handle_.get(); }

  /// Waits until all queued work is done.
  void synchronize();
  /// Returns true if all queued work is done.
  bool is_done() const;
  /// Work queued here from now on begins only after the work that `event` has recorded.
  void wait(const Event& event);

 private:
  struct Destroy {
    void operator()(CUstream_st* stream) const noexcept { cuda::destroy_stream(stream); }
  };
  Device device_;
  std::unique_ptr<CUstream_st, Destroy> handle_;
};

/// A mark in a stream that another one can wait for. On the CPU, where nothing is queued, each is done.
class Event {
 public:
  /// Marks with times cost a little more.
  enum class Times : bool { kNone, kKept };
  explicit Event(Device device, Times times = Times::kNone);

  /// Marks all that `stream` has queued so far; an earlier mark is forgotten.
  void record(const Stream& stream);
  /// Waits until all that was marked is done; at once if nothing was.
  void synchronize() const;
  /// Returns true if all that was marked is done, or nothing was.
  bool is_done() const;
  /// Time of the device since `earlier` was done; both keep times and are done. 0 on the CPU.
  double seconds_since(const Event& earlier) const;
  CUevent_st* handle() const { return handle_.get(); }

 private:
  struct Destroy {
    void operator()(CUevent_st* event) const noexcept { cuda::destroy_event(event); }
  };
  std::unique_ptr<CUevent_st, Destroy> handle_;
};

}  // namespace zerofleet
