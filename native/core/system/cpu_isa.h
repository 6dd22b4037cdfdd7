#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace zerofleet {

/// Instruction-set paths of the CPU backend, in rising order. Every SIMD source is compiled once for each
/// that a build has.
enum class CpuIsa : std::uint8_t { kGeneric, kAvx2, kAvx512, kAvx512Bf16 };

/// The best path that is both built in and offered by this machine.
CpuIsa best_cpu_isa();

/// "auto" or a name as in name_of(). Throws Error{"isa_unavailable"} where the machine cannot run it, with those it
/// can.
CpuIsa cpu_isa_from_name(std::string_view name);

const char* name_of(CpuIsa isa);

/// The scope of bit-exactness, e.g. "cpu-avx512bf16/1": path and version of the kernels. The version is raised whenever
/// the result of a kernel, or of what the host computes for it, changes in any bit.
std::string numerics_fingerprint(CpuIsa isa);

}  // namespace zerofleet
