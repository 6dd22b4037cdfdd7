#pragma once

#include <type_traits>

#include "core/system/cpu_isa.h"
#include "kernels/common/simd/declare.h"

namespace zerofleet::cpu {

/// An entry per instruction-set path; null for those that this build lacks, which cpu_isa_from_name() refuses.
template <class Function>
Function* pick_kernel(CpuIsa isa, Function* generic, std::type_identity_t<Function>* avx2,
                      std::type_identity_t<Function>* avx512, std::type_identity_t<Function>* avx512bf16) {
  switch (isa) {
    case CpuIsa::kGeneric:
      return generic;
    case CpuIsa::kAvx2:
      return avx2;
    case CpuIsa::kAvx512:
      return avx512;
    case CpuIsa::kAvx512Bf16:
      return avx512bf16;
  }
  return generic;
}

}  // namespace zerofleet::cpu

/// The function pointer of a kernel declared with ZF_DECLARE_KERNEL, for use inside namespace zerofleet::cpu:
///   const auto scale = ZF_PICK_KERNEL(ctx.cpu_isa, scale);
#define ZF_PICK_KERNEL(isa, name)                                                                           \
  (::zerofleet::cpu::pick_kernel(isa, &::zerofleet::cpu::isa_generic::name, ZF_AVX2(name), ZF_AVX512(name), \
                                 ZF_AVX512BF16(name)))

#ifdef ZF_HAS_AVX2
#define ZF_AVX2(name) &::zerofleet::cpu::isa_avx2::name
#else
#define ZF_AVX2(name) nullptr
#endif

#ifdef ZF_HAS_AVX512
#define ZF_AVX512(name) &::zerofleet::cpu::isa_avx512::name
#else
#define ZF_AVX512(name) nullptr
#endif

#ifdef ZF_HAS_AVX512BF16
#define ZF_AVX512BF16(name) &::zerofleet::cpu::isa_avx512bf16::name
#else
#define ZF_AVX512BF16(name) nullptr
#endif
