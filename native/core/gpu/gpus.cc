#include "core/gpu/gpus.h"

#include <array>
#include <memory>

#include "core/error.h"
#include "core/gpu/nvml_session.h"

namespace zerofleet {
namespace {

using nvml::DeviceHandle;
using nvml::Library;
using nvml::Return;

std::string failure(const Library& library, const char* call, Return result) {
  return std::string(call) + ": NVML: " + library.error_string(result);
}

void check(const Library& library, const char* call, Return result) {
  if (result != nvml::kSuccess) throw Error("device_unavailable", failure(library, call, result));
}

/// Text that a call writes.
template <class Call>
Return read_text(std::string& text, Call&& call) {
  std::array<char, nvml::kTextBytes> buffer{};
  const Return result = call(buffer.data(), nvml::kTextBytes);
  if (result == nvml::kSuccess) text = buffer.data();
  return result;
}

/// Reads one GPU; a failure is a problem of that GPU and does not affect the others.
class GpuReader {
 public:
  GpuReader(const Library& library, DeviceHandle* device, Gpu& gpu) : library_(library), device_(device), gpu_(gpu) {}

  void read() {
    note("nvmlDeviceGetUUID",
         read_text(gpu_.uuid, [&](char* text, unsigned length) { return library_.uuid(device_, text, length); }));
    note("nvmlDeviceGetName",
         read_text(gpu_.name, [&](char* text, unsigned length) { return library_.name(device_, text, length); }));
    nvml::Memory memory;
    note("nvmlDeviceGetMemoryInfo", library_.memory_info(device_, &memory));
    gpu_.memory_bytes = memory.total;
    gpu_.free_bytes = memory.free;
    note("nvmlDeviceGetCudaComputeCapability",
         library_.compute_capability(device_, &gpu_.compute_major, &gpu_.compute_minor));
    check_memory_errors();
    check_recovery();
    check_mode();
  }

 private:
  /// Returns true if there is an answer. Not every GPU has every counter; a missing counter is no fault of the GPU.
  bool note(const char* call, Return result) {
    if (result == nvml::kSuccess) return true;
    const bool none =
        result == nvml::kNotSupported || result == nvml::kNoPermission || result == nvml::kFunctionNotFound;
    if (!none)
      found(result == nvml::kGpuIsLost       ? "it is lost: it fell off the bus, or can't be reached"
            : result == nvml::kResetRequired ? "it needs a reset"
                                             : failure(library_, call, result));
    return false;
  }

  /// The first problem explains the others.
  void found(const std::string& problem) {
    if (gpu_.problem.empty()) gpu_.problem = problem;
  }

  void check_memory_errors() {
    unsigned long long errors = 0;
    if (note("nvmlDeviceGetTotalEccErrors",
             library_.total_ecc_errors(device_, nvml::kUncorrected, nvml::kVolatile, &errors)) &&
        errors > 0) {
      found(std::to_string(errors) + " memory errors that ECC could not correct since its driver was loaded");
    }
    int pending_pages = 0;
    if (note("nvmlDeviceGetRetiredPagesPendingStatus", library_.retired_pages_pending(device_, &pending_pages)) &&
        pending_pages == nvml::kEnabled) {
      found("pages of its memory wait to be retired: it needs a reset");
    }
    if (library_.remapped_rows == nullptr) return;
    unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
    if (!note("nvmlDeviceGetRemappedRows",
              library_.remapped_rows(device_, &corrected, &uncorrected, &pending, &failed))) {
      return;
    }
    if (failed != 0) found("rows of its memory could not be remapped");
    if (pending != 0) found("rows of its memory wait to be remapped: it needs a reset");
  }

  /// Drivers of 2025 and later report the action that would make the GPU healthy again, for any cause. The answer of
  /// other drivers to a field that they don't know is no problem of the GPU.
  void check_recovery() {
    nvml::FieldValue value;
    value.field = nvml::kRecoveryAction;
    if (library_.field_values == nullptr || library_.field_values(device_, 1, &value) != nvml::kSuccess) return;
    if (value.result != nvml::kSuccess || value.value_type != nvml::kUnsignedValue) return;
    const unsigned action = value.value.as_unsigned;
    if (action == nvml::kNoAction) return;
    found(action == nvml::kResetGpu        ? "its driver asks for a reset of it"
          : action == nvml::kRebootMachine ? "its driver asks for a reboot of the machine"
                                           : "its driver asks that work on it ends, and for its recovery (action " +
                                                 std::to_string(action) + "): look at nvidia-smi -q");
  }

  void check_mode() {
    unsigned current = 0, pending = 0;
    if (library_.mig_mode == nullptr || !note("nvmlDeviceGetMigMode", library_.mig_mode(device_, &current, &pending)))
      return;
    if (current == nvml::kEnabled) found("it is in MIG mode, and ranks take whole GPUs");
  }

  const Library& library_;
  DeviceHandle* device_;
  Gpu& gpu_;
};

Gpu gpu_at(const Library& library, unsigned index) {
  Gpu gpu;
  gpu.index = static_cast<int>(index);
  DeviceHandle* device = nullptr;
  const Return result = library.handle_by_index(index, &device);
  if (result == nvml::kSuccess) {
    GpuReader(library, device, gpu).read();
  } else {
    gpu.problem = failure(library, "nvmlDeviceGetHandleByIndex", result);
  }
  return gpu;
}

}  // namespace

std::vector<Gpu> list_gpus() { return list_gpus_through(nvml::default_file_names()); }

std::vector<Gpu> list_gpus_through(std::span<const std::string> file_names) {
  const std::shared_ptr<const Library> library = nvml::open_library(file_names);
  if (library == nullptr) return {};
  const nvml::Session session(*library);
  if (session.result() == nvml::kDriverNotLoaded) return {};  // its library alone, as in an image for all machines
  check(*library, "nvmlInit", session.result());
  std::string driver;
  check(*library, "nvmlSystemGetDriverVersion", read_text(driver, library->driver_version));
  int cuda = 0;
  check(*library, "nvmlSystemGetCudaDriverVersion", library->cuda_driver_version(&cuda));
  unsigned count = 0;
  check(*library, "nvmlDeviceGetCount", library->device_count(&count));
  std::vector<Gpu> gpus;
  for (unsigned index = 0; index < count; ++index) {
    Gpu gpu = gpu_at(*library, index);
    gpu.driver = driver;
    gpu.cuda_driver = std::to_string(cuda / 1000) + "." + std::to_string(cuda % 1000 / 10);
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

}  // namespace zerofleet
