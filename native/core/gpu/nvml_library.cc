#include "core/gpu/nvml_library.h"

namespace zerofleet::nvml {
namespace {

constexpr SharedLibrary::About kAbout{"NVML", "a driver for CUDA 11 or later", "device_unavailable",
                                      "Install NVIDIA's driver, or give the container the driver capability utility"};

}  // namespace

Library::Library(std::span<const std::string> file_names) : file(kAbout, file_names) {}

std::vector<std::string> default_file_names() { return {"libnvidia-ml.so.1"}; }

std::shared_ptr<const Library> open_library(std::span<const std::string> file_names) {
  auto library = std::make_shared<Library>(file_names);
  const SharedLibrary& file = library->file;
  if (!file.is_open()) return nullptr;
  file.find("nvmlInit_v2", library->init);
  file.find("nvmlShutdown", library->shutdown);
  file.find("nvmlErrorString", library->error_string);
  file.find("nvmlSystemGetDriverVersion", library->driver_version);
  file.find("nvmlSystemGetCudaDriverVersion_v2", library->cuda_driver_version);
  file.find("nvmlDeviceGetCount_v2", library->device_count);
  file.find("nvmlDeviceGetHandleByIndex_v2", library->handle_by_index);
  file.find("nvmlDeviceGetUUID", library->uuid);
  file.find("nvmlDeviceGetName", library->name);
  file.find("nvmlDeviceGetMemoryInfo", library->memory_info);
  file.find("nvmlDeviceGetCudaComputeCapability", library->compute_capability);
  file.find("nvmlDeviceGetTotalEccErrors", library->total_ecc_errors);
  file.find("nvmlDeviceGetRetiredPagesPendingStatus", library->retired_pages_pending);
  file.find_if_there("nvmlDeviceGetRemappedRows", library->remapped_rows);
  file.find_if_there("nvmlDeviceGetMigMode", library->mig_mode);
  file.find_if_there("nvmlDeviceGetFieldValues", library->field_values);
  file.find_if_there("nvmlDeviceGetHandleByUUID", library->handle_by_uuid);
  file.find_if_there("nvmlDeviceGetUtilizationRates", library->utilization);
  file.find_if_there("nvmlDeviceGetSupportedEventTypes", library->supported_event_types);
  file.find_if_there("nvmlDeviceRegisterEvents", library->register_events);
  file.find_if_there("nvmlEventSetCreate", library->event_set_create);
  file.find_if_there("nvmlEventSetFree", library->event_set_free);
  file.find_if_there("nvmlEventSetWait_v2", library->event_set_wait);
  return library;
}

}  // namespace zerofleet::nvml
