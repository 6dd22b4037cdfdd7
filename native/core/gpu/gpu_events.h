#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace zerofleet {

/// Events that the driver reports of a GPU from construction on, by NVIDIA's event numbers (XIDs). The driver reports
/// an event only to processes that listen at that time, regardless of which process it concerns.
class GpuEvents {
 public:
  /// Listens. Without NVML, or where the driver has no events of this GPU, nothing will be heard: the errors of CUDA's
  /// calls remain.
  explicit GpuEvents(const std::string& uuid);
  /// The same with another library than the driver's.
  GpuEvents(const std::string& uuid, std::span<const std::string> file_names);
  ~GpuEvents();
  GpuEvents(const GpuEvents&) = delete;
  GpuEvents& operator=(const GpuEvents&) = delete;

  bool is_listening() const { return listener_ != nullptr; }
  /// The XIDs since the last call, in their order. It never waits.
  std::vector<unsigned> take_xids();

 private:
  class Listener;
  std::unique_ptr<Listener> listener_;
};

}  // namespace zerofleet
