#include "core/gpu/gpu_use.h"

#include "core/gpu/nvml_session.h"

namespace zerofleet {

/// A session with the handle of one GPU.
class GpuUse::Meter {
 public:
  Meter(std::shared_ptr<const nvml::Library> library, const std::string& uuid)
      : library_(std::move(library)), session_(*library_) {
    if (session_.result() != nvml::kSuccess) return;
    if (library_->handle_by_uuid(uuid.c_str(), &device_) != nvml::kSuccess) device_ = nullptr;
  }

  std::optional<double> busy() const {
    nvml::Utilization utilization;
    if (device_ == nullptr || library_->utilization(device_, &utilization) != nvml::kSuccess) return std::nullopt;
    return utilization.gpu / 100.0;
  }

 private:
  std::shared_ptr<const nvml::Library> library_;
  nvml::Session session_;
  nvml::DeviceHandle* device_ = nullptr;
};

GpuUse::GpuUse(const std::string& uuid) : GpuUse(uuid, nvml::default_file_names()) {}

GpuUse::GpuUse(const std::string& uuid, std::span<const std::string> file_names) {
  std::shared_ptr<const nvml::Library> library = nvml::open_library(file_names);
  if (library == nullptr || !library->handle_by_uuid || !library->utilization) return;
  meter_ = std::make_unique<const Meter>(std::move(library), uuid);
}

GpuUse::~GpuUse() = default;

std::optional<double> GpuUse::busy() const { return meter_ ? meter_->busy() : std::nullopt; }

}  // namespace zerofleet
