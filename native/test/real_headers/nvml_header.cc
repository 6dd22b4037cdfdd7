#include "test/real_headers/real_headers.h"

#if __has_include(<nvml.h>)
#include <nvml.h>

#include <cstddef>

#include "core/gpu/nvml_library.h"
#include "test/real_headers/same_call.h"

namespace zerofleet::test {
namespace {

using namespace nvml;

static_assert(kSuccess == NVML_SUCCESS && kNotSupported == NVML_ERROR_NOT_SUPPORTED);
static_assert(kNoPermission == NVML_ERROR_NO_PERMISSION && kDriverNotLoaded == NVML_ERROR_DRIVER_NOT_LOADED);
static_assert(kFunctionNotFound == NVML_ERROR_FUNCTION_NOT_FOUND && kGpuIsLost == NVML_ERROR_GPU_IS_LOST);
static_assert(kResetRequired == NVML_ERROR_RESET_REQUIRED && sizeof(Return) == sizeof(nvmlReturn_t));
static_assert(kTextBytes >= NVML_DEVICE_NAME_V2_BUFFER_SIZE && kTextBytes >= NVML_DEVICE_UUID_V2_BUFFER_SIZE);
static_assert(kTextBytes >= NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE);

static_assert(sizeof(Memory) == sizeof(nvmlMemory_t) && offsetof(Memory, total) == offsetof(nvmlMemory_t, total));
static_assert(offsetof(Memory, free) == offsetof(nvmlMemory_t, free) &&
              offsetof(Memory, used) == offsetof(nvmlMemory_t, used));
static_assert(sizeof(Utilization) == sizeof(nvmlUtilization_t));
static_assert(offsetof(Utilization, gpu) == offsetof(nvmlUtilization_t, gpu) &&
              offsetof(Utilization, memory) == offsetof(nvmlUtilization_t, memory));
static_assert(kUncorrected == NVML_MEMORY_ERROR_TYPE_UNCORRECTED && kVolatile == NVML_VOLATILE_ECC);
static_assert(kEnabled == NVML_FEATURE_ENABLED);

static_assert(sizeof(FieldValue) == sizeof(nvmlFieldValue_t));
static_assert(offsetof(FieldValue, field) == offsetof(nvmlFieldValue_t, fieldId));
static_assert(offsetof(FieldValue, scope) == offsetof(nvmlFieldValue_t, scopeId));
static_assert(offsetof(FieldValue, timestamp) == offsetof(nvmlFieldValue_t, timestamp));
static_assert(offsetof(FieldValue, latency_us) == offsetof(nvmlFieldValue_t, latencyUsec));
static_assert(offsetof(FieldValue, value_type) == offsetof(nvmlFieldValue_t, valueType));
static_assert(offsetof(FieldValue, result) == offsetof(nvmlFieldValue_t, nvmlReturn));
static_assert(offsetof(FieldValue, value) == offsetof(nvmlFieldValue_t, value));
static_assert(kUnsignedValue == NVML_VALUE_TYPE_UNSIGNED_INT);
#ifdef NVML_FI_DEV_GET_GPU_RECOVERY_ACTION  // headers since 2025
static_assert(kRecoveryAction == NVML_FI_DEV_GET_GPU_RECOVERY_ACTION);
static_assert(int{kNoAction} == NVML_GPU_RECOVERY_ACTION_NONE && int{kResetGpu} == NVML_GPU_RECOVERY_ACTION_GPU_RESET);
static_assert(int{kRebootMachine} == NVML_GPU_RECOVERY_ACTION_NODE_REBOOT);
#endif

static_assert(sizeof(EventData) == sizeof(nvmlEventData_t));
static_assert(offsetof(EventData, device) == offsetof(nvmlEventData_t, device));
static_assert(offsetof(EventData, type) == offsetof(nvmlEventData_t, eventType));
static_assert(offsetof(EventData, data) == offsetof(nvmlEventData_t, eventData));
static_assert(offsetof(EventData, gpu_instance) == offsetof(nvmlEventData_t, gpuInstanceId));
static_assert(offsetof(EventData, compute_instance) == offsetof(nvmlEventData_t, computeInstanceId));
static_assert(kDoubleBitEccEvent == nvmlEventTypeDoubleBitEccError && kXidEvent == nvmlEventTypeXidCriticalError);

static_assert(kSameCall<decltype(Library::init), decltype(nvmlInit_v2)>);
static_assert(kSameCall<decltype(Library::shutdown), decltype(nvmlShutdown)>);
static_assert(kSameCall<decltype(Library::error_string), decltype(nvmlErrorString)>);
static_assert(kSameCall<decltype(Library::driver_version), decltype(nvmlSystemGetDriverVersion)>);
static_assert(kSameCall<decltype(Library::cuda_driver_version), decltype(nvmlSystemGetCudaDriverVersion_v2)>);
static_assert(kSameCall<decltype(Library::device_count), decltype(nvmlDeviceGetCount_v2)>);
static_assert(kSameCall<decltype(Library::handle_by_index), decltype(nvmlDeviceGetHandleByIndex_v2)>);
static_assert(kSameCall<decltype(Library::uuid), decltype(nvmlDeviceGetUUID)>);
static_assert(kSameCall<decltype(Library::name), decltype(nvmlDeviceGetName)>);
static_assert(kSameCall<decltype(Library::memory_info), decltype(nvmlDeviceGetMemoryInfo)>);
static_assert(kSameCall<decltype(Library::compute_capability), decltype(nvmlDeviceGetCudaComputeCapability)>);
static_assert(kSameCall<decltype(Library::total_ecc_errors), decltype(nvmlDeviceGetTotalEccErrors)>);
static_assert(kSameCall<decltype(Library::retired_pages_pending), decltype(nvmlDeviceGetRetiredPagesPendingStatus)>);
static_assert(kSameCall<decltype(Library::remapped_rows), decltype(nvmlDeviceGetRemappedRows)>);
static_assert(kSameCall<decltype(Library::mig_mode), decltype(nvmlDeviceGetMigMode)>);
static_assert(kSameCall<decltype(Library::field_values), decltype(nvmlDeviceGetFieldValues)>);
static_assert(kSameCall<decltype(Library::handle_by_uuid), decltype(nvmlDeviceGetHandleByUUID)>);
static_assert(kSameCall<decltype(Library::utilization), decltype(nvmlDeviceGetUtilizationRates)>);
static_assert(kSameCall<decltype(Library::supported_event_types), decltype(nvmlDeviceGetSupportedEventTypes)>);
static_assert(kSameCall<decltype(Library::register_events), decltype(nvmlDeviceRegisterEvents)>);
static_assert(kSameCall<decltype(Library::event_set_create), decltype(nvmlEventSetCreate)>);
static_assert(kSameCall<decltype(Library::event_set_free), decltype(nvmlEventSetFree)>);
static_assert(kSameCall<decltype(Library::event_set_wait), decltype(nvmlEventSetWait_v2)>);

}  // namespace

std::string compared_nvml_header() { return std::to_string(NVML_API_VERSION); }

}  // namespace zerofleet::test
#else
std::string zerofleet::test::compared_nvml_header() { return ""; }
#endif
