// A libnvidia-ml for tests: the entry points of NVML that core/gpu/nvml_library.h names, over GPUs that a file
// describes. The environment variable ZF_FAKE_NVML names it; it is read at each nvmlInit, so that a test may change
// what is found. A line of it is one GPU: UUID, memory in MiB, words for what is wrong with it, and words for events in
// their order. Words for what is wrong: `ecc`, `pages`, `rows`, `failed-rows`, `lost`, `reset`, `mig`, `gone` (not even
// a handle), `plain` (a GPU without ECC, events and utilization), `recovery=N` (what the driver asks for), `busy=N`
// (percent). Words for events: `xid=N`, `double-bit`. Events are read anew at each request, and each set of events gets
// all of them once. The first line may be `driver-not-loaded` or `mismatch`. Without a file there is no GPU.
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#define ZF_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using Return = int;
constexpr Return kSuccess = 0, kUninitialized = 1, kInvalidArgument = 2, kNotSupported = 3, kInsufficientSize = 7,
                 kDriverNotLoaded = 9, kTimeout = 10, kGpuIsLost = 15, kResetRequired = 16, kVersionMismatch = 18;

struct Gpu {
  std::string uuid;
  unsigned long long memory_bytes = 0;
  std::set<std::string> faults;
  std::vector<std::string> events;
  bool has(const char* fault) const { return faults.contains(fault); }
};

struct Memory {
  unsigned long long total, free, used;
};

struct Utilization {
  unsigned gpu, memory;
};

struct EventSet {
  std::string uuid;
  unsigned long long types = 0;
  std::size_t num_told = 0;
};

struct EventData {
  Gpu* device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};
constexpr unsigned long long kDoubleBitEcc = 2, kXid = 8;

struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency_us;
  int value_type;
  Return result;
  unsigned value;
};

std::vector<Gpu> gpus;
int sessions = 0;

bool is_event(const std::string& word) { return word.starts_with("xid=") || word == "double-bit"; }

Return read_file(std::vector<Gpu>& found) {
  found.clear();
  const char* path = std::getenv("ZF_FAKE_NVML");
  if (path == nullptr) return kSuccess;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line == "driver-not-loaded") return kDriverNotLoaded;
    if (line == "mismatch") return kVersionMismatch;
    std::istringstream words(line);
    Gpu gpu;
    if (!(words >> gpu.uuid >> gpu.memory_bytes)) continue;
    gpu.memory_bytes <<= 20;
    for (std::string word; words >> word;) {
      if (is_event(word))
        gpu.events.push_back(word);
      else
        gpu.faults.insert(word);
    }
    found.push_back(gpu);
  }
  return kSuccess;
}

Return write(const std::string& value, char* text, unsigned length) {
  if (length <= value.size()) return kInsufficientSize;
  std::memcpy(text, value.c_str(), value.size() + 1);
  return kSuccess;
}

/// Status of every query about a GPU: an error if the GPU is lost or needs a reset.
Return state_of(const Gpu* gpu) {
  if (sessions == 0) return kUninitialized;
  if (gpu == nullptr) return kInvalidArgument;
  if (gpu->has("lost")) return kGpuIsLost;
  return gpu->has("reset") ? kResetRequired : kSuccess;
}

/// The number of a word such as `busy=50`; 0 without it.
unsigned number_after(const Gpu& gpu, const std::string& name) {
  for (const std::string& word : gpu.faults) {
    if (word.starts_with(name)) return static_cast<unsigned>(std::stoul(word.substr(name.size())));
  }
  return 0;
}

template <class T>
Return answer(const Gpu* gpu, T* target, T value) {
  const Return state = state_of(gpu);
  if (state == kSuccess) *target = value;
  return state;
}

}  // namespace

ZF_EXPORT Return nvmlInit_v2() {
  const Return result = read_file(gpus);
  if (result == kSuccess) ++sessions;
  return result;
}
ZF_EXPORT Return nvmlShutdown() {
  --sessions;
  return kSuccess;
}
ZF_EXPORT const char* nvmlErrorString(Return result) {
  return result == kVersionMismatch ? "Driver/library version mismatch"
         : result == kGpuIsLost     ? "GPU is lost"
                                    : "Unknown Error";
}
ZF_EXPORT Return nvmlSystemGetDriverVersion(char* text, unsigned length) { return write("580.65.06", text, length); }
ZF_EXPORT Return nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = 13010;
  return kSuccess;
}
ZF_EXPORT Return nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(gpus.size());
  return sessions == 0 ? kUninitialized : kSuccess;
}
ZF_EXPORT Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Gpu** gpu) {
  if (index >= gpus.size()) return kInvalidArgument;
  *gpu = &gpus[index];
  return (*gpu)->has("gone") ? kGpuIsLost : kSuccess;
}
ZF_EXPORT Return nvmlDeviceGetUUID(const Gpu* gpu, char* text, unsigned length) {
  return sessions == 0 ? kUninitialized : write(gpu->uuid, text, length);
}
ZF_EXPORT Return nvmlDeviceGetName(const Gpu* gpu, char* text, unsigned length) {
  const Return state = state_of(gpu);
  return state == kSuccess ? write("NVIDIA Fake G1", text, length) : state;
}
ZF_EXPORT Return nvmlDeviceGetMemoryInfo(const Gpu* gpu, Memory* memory) {
  return answer(gpu, memory, {gpu->memory_bytes, gpu->memory_bytes / 4 * 3, gpu->memory_bytes / 4});
}
ZF_EXPORT Return nvmlDeviceGetCudaComputeCapability(const Gpu* gpu, int* major, int* minor) {
  *minor = 0;
  return answer(gpu, major, 9);
}
ZF_EXPORT Return nvmlDeviceGetTotalEccErrors(const Gpu* gpu, int type, int counter, unsigned long long* errors) {
  if (type != 1 || counter != 0) return kInvalidArgument;
  if (gpu->has("plain")) return kNotSupported;
  return answer(gpu, errors, gpu->has("ecc") ? 3ULL : 0ULL);
}
ZF_EXPORT Return nvmlDeviceGetRetiredPagesPendingStatus(const Gpu* gpu, int* state) {
  if (gpu->has("plain")) return kNotSupported;
  return answer(gpu, state, gpu->has("pages") ? 1 : 0);
}
ZF_EXPORT Return nvmlDeviceGetRemappedRows(const Gpu* gpu, unsigned* corrected, unsigned* uncorrected,
                                           unsigned* pending, unsigned* failed) {
  if (gpu->has("plain")) return kNotSupported;
  *corrected = *uncorrected = 0;
  *failed = gpu->has("failed-rows") ? 1 : 0;
  return answer(gpu, pending, gpu->has("rows") ? 1U : 0U);
}
ZF_EXPORT Return nvmlDeviceGetMigMode(const Gpu* gpu, unsigned* current, unsigned* pending) {
  if (gpu->has("plain")) return kNotSupported;
  *pending = 0;
  return answer(gpu, current, gpu->has("mig") ? 1U : 0U);
}
ZF_EXPORT Return nvmlDeviceGetFieldValues(const Gpu* gpu, int count, FieldValue* values) {
  const Return state = state_of(gpu);
  if (state != kSuccess) return state;
  for (int i = 0; i < count; ++i) {
    values[i].result = kNotSupported;
    if (values[i].field != 230 || gpu->has("plain")) continue;
    values[i].result = kSuccess;
    values[i].value_type = 1;
    values[i].value = number_after(*gpu, "recovery=");
  }
  return kSuccess;
}
ZF_EXPORT Return nvmlDeviceGetHandleByUUID(const char* uuid, Gpu** gpu) {
  if (sessions == 0) return kUninitialized;
  for (Gpu& candidate : gpus) {
    if (candidate.uuid != uuid) continue;
    *gpu = &candidate;
    return kSuccess;
  }
  return kInvalidArgument;
}
ZF_EXPORT Return nvmlDeviceGetUtilizationRates(const Gpu* gpu, Utilization* utilization) {
  if (gpu->has("plain")) return kNotSupported;
  return answer(gpu, utilization, {number_after(*gpu, "busy="), 1});
}
ZF_EXPORT Return nvmlDeviceGetSupportedEventTypes(const Gpu* gpu, unsigned long long* types) {
  return answer(gpu, types, gpu->has("plain") ? 0ULL : kDoubleBitEcc | kXid | 4);
}
ZF_EXPORT Return nvmlEventSetCreate(EventSet** set) {
  *set = new EventSet;
  return sessions == 0 ? kUninitialized : kSuccess;
}
ZF_EXPORT Return nvmlEventSetFree(EventSet* set) {
  delete set;
  return kSuccess;
}
ZF_EXPORT Return nvmlDeviceRegisterEvents(const Gpu* gpu, unsigned long long types, EventSet* set) {
  set->uuid = gpu->uuid;
  set->types = types;
  return state_of(gpu);
}
ZF_EXPORT Return nvmlEventSetWait_v2(EventSet* set, EventData* data, unsigned) {
  if (sessions == 0) return kUninitialized;
  std::vector<Gpu> now;
  read_file(now);
  for (const Gpu& gpu : now) {
    if (gpu.uuid != set->uuid || set->num_told >= gpu.events.size()) continue;
    const std::string& word = gpu.events[set->num_told++];
    *data = {};
    data->type = word == "double-bit" ? kDoubleBitEcc : kXid;
    if (data->type == kXid) data->data = std::stoull(word.substr(4));
    if ((data->type & set->types) != 0) return kSuccess;
  }
  return kTimeout;
}
