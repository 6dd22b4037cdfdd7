#include "core/device/stream.h"

namespace zerofleet {

Stream::Stream(Device device, Priority priority) : device_(device) {
  if (device.kind == DeviceKind::kCuda) handle_.reset(cuda::create_stream(device, priority == Priority::kUrgent));
}

void Stream::synchronize() {
  if (handle_) cuda::synchronize(handle_.get());
}

bool Stream::is_done() const { return !handle_ || cuda::is_done(handle_.get()); }

void Stream::wait(const Event& event) {
  if (handle_ && event.handle() != nullptr) cuda::wait(handle_.get(), event.handle());
}

Event::Event(Device device, Times times) {
  if (device.kind == DeviceKind::kCuda) handle_.reset(cuda::create_event(device, times == Times::kKept));
}

bool Event::is_done() const { return !handle_ || cuda::is_done(handle_.get()); }

double Event::seconds_since(const Event& earlier) const {
  return handle_ && earlier.handle_ ? cuda::seconds_between(earlier.handle_.get(), handle_.get()) : 0;
}

void Event::synchronize() const {
  if (handle_) cuda::synchronize(handle_.get());
}

void Event::record(const Stream& stream) {
  if (handle_ && stream.handle() != nullptr) cuda::record(handle_.get(), stream.handle());
}

}  // namespace zerofleet
