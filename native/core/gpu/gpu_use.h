#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

namespace zerofleet {

/// How busy a GPU is, as its driver measures it.
class GpuUse {
 public:
  explicit GpuUse(const std::string& uuid);
  /// The same with another library than the driver's.
  GpuUse(const std::string& uuid, std::span<const std::string> file_names);
  ~GpuUse();
  GpuUse(const GpuUse&) = delete;
  GpuUse& operator=(const GpuUse&) = delete;

  /// The share of the last second or less in which some kernel ran, 0 to 1. None where the driver does not measure it.
  std::optional<double> busy() const;

 private:
  class Meter;
  std::unique_ptr<const Meter> meter_;
};

}  // namespace zerofleet
