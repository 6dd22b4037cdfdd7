#include "core/system/cpu_isa.h"

#include <array>

#include "core/error.h"

namespace zerofleet {
namespace {

constexpr int kKernelVersion = 5;  // 5: sequences of a leaf are computed to lengths of their own
constexpr std::array kBuiltIn{
    CpuIsa::kGeneric,
#ifdef ZF_HAS_AVX2
    CpuIsa::kAvx2,
#endif
#ifdef ZF_HAS_AVX512
    CpuIsa::kAvx512,
#endif
#ifdef ZF_HAS_AVX512BF16
    CpuIsa::kAvx512Bf16,
#endif
};

bool machine_has(CpuIsa isa) {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  switch (isa) {
    case CpuIsa::kGeneric:
      return true;
    case CpuIsa::kAvx2:
      return avx2;
    case CpuIsa::kAvx512:
      return avx512;
    case CpuIsa::kAvx512Bf16:
      return avx512 && __builtin_cpu_supports("avx512bf16");
  }
#endif
  return isa == CpuIsa::kGeneric;
}

}  // namespace

const char* name_of(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kGeneric:
      return "generic";
    case CpuIsa::kAvx2:
      return "avx2";
    case CpuIsa::kAvx512:
      return "avx512";
    case CpuIsa::kAvx512Bf16:
      return "avx512bf16";
  }
  return "generic";
}

CpuIsa best_cpu_isa() {
  CpuIsa best = CpuIsa::kGeneric;
  for (const CpuIsa isa : kBuiltIn) {
    if (machine_has(isa)) best = isa;
  }
  return best;
}

CpuIsa cpu_isa_from_name(std::string_view name) {
  if (name.empty() || name == "auto") return best_cpu_isa();
  std::string available = "auto";
  for (const CpuIsa isa : kBuiltIn) {
    if (!machine_has(isa)) continue;
    if (name == name_of(isa)) return isa;
    available += std::string(", ") + name_of(isa);
  }
  std::string reason = "unknown";
  for (const CpuIsa isa : {CpuIsa::kAvx2, CpuIsa::kAvx512, CpuIsa::kAvx512Bf16}) {
    if (name == name_of(isa))
      reason = machine_has(isa) ? "not in this build: build with ZF_ALL_ISAS=1" : "not on this machine";
  }
  throw Error("isa_unavailable",
              "instruction-set path '" + std::string(name) + "' is " + reason + "; available: " + available);
}

std::string numerics_fingerprint(CpuIsa isa) {
  // The portable path is compiled for the baseline of the architecture, so its bits may differ between architectures.
#if defined(__aarch64__)
  const char* arch = "cpu-arm64-";
#else
  const char* arch = "cpu-";
#endif
  return std::string(arch) + name_of(isa) + "/" + std::to_string(kKernelVersion);
}

}  // namespace zerofleet
