#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace zerofleet {

/// A GPU of this machine, as its driver reports it. Does not use CUDA, nor memory of the GPU.
struct Gpu {
  int index = 0;     // as nvidia-smi numbers them
  std::string uuid;  // GPU-…; empty if the driver can't report it
  std::string name;
  std::uint64_t memory_bytes = 0, free_bytes = 0;
  int compute_major = 0, compute_minor = 0;
  std::string driver;       // version
  std::string cuda_driver;  // newest version of CUDA that the driver knows, as 13.0
  std::string problem;      // why nothing should be computed on it; empty: it is healthy
};

/// All GPUs of this machine by NVML; none where there is no driver. CUDA_VISIBLE_DEVICES means nothing to it. Throws
/// Error{"device_unavailable"} where a driver is there and does not work, with NVML's message.
std::vector<Gpu> list_gpus();
/// The same with another library than the driver's.
std::vector<Gpu> list_gpus_through(std::span<const std::string> file_names);

}  // namespace zerofleet
