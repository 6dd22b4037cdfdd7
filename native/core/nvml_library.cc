#include "core/nvml_library.h"

#include <dlfcn.h>

#include "core/error.h"

namespace zerofleet::nvml {
namespace {

template <class Function>
void find_if_there(void* handle, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(handle, name));
}

template <class Function>
void find(void* handle, const Library& library, const char* name, Function*& function) {
  find_if_there(handle, name, function);
  require(function != nullptr, "device_unavailable",
          library.file_name + " has no " + name + ": a driver for CUDA 11 or later is needed");
}

}  // namespace

std::vector<std::string> default_file_names() { return {"libnvidia-ml.so.1"}; }

std::shared_ptr<const Library> open_library(std::span<const std::string> file_names) {
  auto library = std::make_shared<Library>();
  void* handle = nullptr;
  for (const std::string& file_name : file_names) {
    handle = ::dlopen(file_name.c_str(), RTLD_NOW | RTLD_LOCAL);
    library->file_name = file_name;
    if (handle != nullptr) break;
  }
  if (handle == nullptr) return nullptr;
  find(handle, *library, "nvmlInit_v2", library->init);
  find(handle, *library, "nvmlShutdown", library->shutdown);
  find(handle, *library, "nvmlErrorString", library->error_string);
  find(handle, *library, "nvmlSystemGetDriverVersion", library->driver_version);
  find(handle, *library, "nvmlSystemGetCudaDriverVersion_v2", library->cuda_driver_version);
  find(handle, *library, "nvmlDeviceGetCount_v2", library->device_count);
  find(handle, *library, "nvmlDeviceGetHandleByIndex_v2", library->handle_by_index);
  find(handle, *library, "nvmlDeviceGetUUID", library->uuid);
  find(handle, *library, "nvmlDeviceGetName", library->name);
  find(handle, *library, "nvmlDeviceGetMemoryInfo", library->memory_info);
  find(handle, *library, "nvmlDeviceGetCudaComputeCapability", library->compute_capability);
  find(handle, *library, "nvmlDeviceGetTotalEccErrors", library->total_ecc_errors);
  find(handle, *library, "nvmlDeviceGetRetiredPagesPendingStatus", library->retired_pages_pending);
  find_if_there(handle, "nvmlDeviceGetRemappedRows", library->remapped_rows);
  find_if_there(handle, "nvmlDeviceGetMigMode", library->mig_mode);
  return library;
}

}  // namespace zerofleet::nvml
