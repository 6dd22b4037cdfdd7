// A build without CUDA: there is no device, and requesting one throws.
#include "core/cuda/cuda_runtime.h"
#include "core/error.h"

namespace zerofleet::cuda {
namespace {

[[noreturn]] void refuse() {
  throw Error("device_unavailable",
              "this build has no CUDA backend: it is built where CMake finds nvcc and a GPU, or with ZF_CUDA=on");
}

}  // namespace

bool built_in() { return false; }
int num_devices() { return 0; }
std::string driver_problem() { return ""; }
std::string runtime_version() { return ""; }
void use(const Device&) { refuse(); }
std::byte* allocate(const Device&, std::size_t) { refuse(); }
void release(std::byte*) noexcept {}
std::byte* allocate(CUstream_st*, std::size_t) { refuse(); }
void release(CUstream_st*, std::byte*) noexcept {}
void reserve(const Device&, std::size_t) { refuse(); }
DeviceMemory memory_of(const Device&) { refuse(); }
void reset_peak(const Device&) { refuse(); }
void pin(const Device&, std::byte*, std::size_t) { refuse(); }
void unpin(std::byte*) noexcept {}
bool is_device_memory(const void*) { return false; }
CUstream_st* create_stream(const Device&, bool) { refuse(); }
void destroy_stream(CUstream_st*) noexcept {}
void synchronize(CUstream_st*) { refuse(); }
bool is_done(CUstream_st*) { refuse(); }
CUevent_st* create_event(const Device&, bool) { refuse(); }
void destroy_event(CUevent_st*) noexcept {}
void record(CUevent_st*, CUstream_st*) { refuse(); }
void synchronize(CUevent_st*) { refuse(); }
bool is_done(CUevent_st*) { refuse(); }
double seconds_between(CUevent_st*, CUevent_st*) { refuse(); }
void wait(CUstream_st*, CUevent_st*) { refuse(); }
void copy(CUstream_st*, void*, const void*, std::size_t) { refuse(); }
void fill_zero(CUstream_st*, void*, std::size_t) { refuse(); }

}  // namespace zerofleet::cuda
