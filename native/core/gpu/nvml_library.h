#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/system/shared_library.h"

// The part of NVML that is used, declared here: the driver's library is opened at run time, so that neither building
// nor loading needs it. Everything is as nvml.h of CUDA 11 and later has it.
namespace zerofleet::nvml {

struct DeviceHandle;  // nvmlDevice_st
struct EventSet;      // nvmlEventSet_st
using Return = int;   // nvmlReturn_t
inline constexpr Return kSuccess = 0, kNotSupported = 3, kNoPermission = 4, kDriverNotLoaded = 9,
                        kFunctionNotFound = 13, kGpuIsLost = 15, kResetRequired = 16;
/// Buffer sizes that NVML requires: for names and UUIDs (v2), and for versions.
inline constexpr unsigned kTextBytes = 96;

struct Memory {  // nvmlMemory_t
  unsigned long long total = 0, free = 0, used = 0;
};
struct Utilization {  // nvmlUtilization_t, in percent of the time of the driver's last sample
  unsigned gpu = 0, memory = 0;
};
inline constexpr int kUncorrected = 1;  // nvmlMemoryErrorType_t
inline constexpr int kVolatile = 0;     // nvmlEccCounterType_t: since the driver was loaded
inline constexpr int kEnabled = 1;      // nvmlEnableState_t

struct FieldValue {  // nvmlFieldValue_t
  unsigned field = 0, scope = 0;
  long long timestamp = 0, latency_us = 0;
  int value_type = 0;
  Return result = kSuccess;
  union {
    unsigned as_unsigned;
    unsigned long long as_bits = 0;
  } value;
};
static_assert(sizeof(FieldValue) == 40);
inline constexpr unsigned kRecoveryAction = 230;  // NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
inline constexpr int kUnsignedValue = 1;          // nvmlValueType_t
enum RecoveryAction : unsigned { kNoAction = 0, kResetGpu = 1, kRebootMachine = 2 };  // nvmlDeviceGpuRecoveryAction_t

struct EventData {  // nvmlEventData_t
  DeviceHandle* device = nullptr;
  unsigned long long type = 0, data = 0;
  unsigned gpu_instance = 0, compute_instance = 0;
};
static_assert(sizeof(EventData) == 32);
inline constexpr unsigned long long kDoubleBitEccEvent = 2, kXidEvent = 8;  // nvmlEventType…

/// The opened library. Entries of later versions may be null.
struct Library {
  explicit Library(std::span<const std::string> file_names);

  SharedLibrary file;
  Return (*init)() = nullptr;
  Return (*shutdown)() = nullptr;
  const char* (*error_string)(Return) = nullptr;
  Return (*driver_version)(char*, unsigned length) = nullptr;
  Return (*cuda_driver_version)(int*) = nullptr;
  Return (*device_count)(unsigned*) = nullptr;
  Return (*handle_by_index)(unsigned, DeviceHandle**) = nullptr;
  Return (*uuid)(DeviceHandle*, char*, unsigned length) = nullptr;
  Return (*name)(DeviceHandle*, char*, unsigned length) = nullptr;
  Return (*memory_info)(DeviceHandle*, Memory*) = nullptr;
  Return (*compute_capability)(DeviceHandle*, int* major, int* minor) = nullptr;
  Return (*total_ecc_errors)(DeviceHandle*, int type, int counter, unsigned long long*) = nullptr;
  Return (*retired_pages_pending)(DeviceHandle*, int* state) = nullptr;
  Return (*remapped_rows)(DeviceHandle*, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                          unsigned* failed) = nullptr;  // null before 11.0
  Return (*mig_mode)(DeviceHandle*, unsigned* current,
                     unsigned* pending) = nullptr;  // null before 11.0
  Return (*field_values)(DeviceHandle*, int count, FieldValue*) = nullptr;
  Return (*handle_by_uuid)(const char*, DeviceHandle**) = nullptr;
  Return (*utilization)(DeviceHandle*, Utilization*) = nullptr;
  Return (*supported_event_types)(DeviceHandle*, unsigned long long*) = nullptr;
  Return (*register_events)(DeviceHandle*, unsigned long long types, EventSet*) = nullptr;
  Return (*event_set_create)(EventSet**) = nullptr;
  Return (*event_set_free)(EventSet*) = nullptr;
  Return (*event_set_wait)(EventSet*, EventData*, unsigned timeout_ms) = nullptr;  // null before 11.0
};

/// The name under which the driver installs NVML.
std::vector<std::string> default_file_names();

/// Opens the first of the named libraries that is there; null where there is none. Throws Error{"device_unavailable"}
/// with the function that the library lacks.
std::shared_ptr<const Library> open_library(std::span<const std::string> file_names);

}  // namespace zerofleet::nvml
