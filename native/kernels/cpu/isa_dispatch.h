#pragma once

#include "core/cpu_isa.h"
#include "kernels/cpu/simd/declare.h"

namespace zerofleet::cpu {

/// One entry per instruction-set path; paths that this architecture lacks fall back to the portable one.
template <class Function>
Function* pick_kernel(CpuIsa isa, Function* generic, [[maybe_unused]] Function* avx2 = nullptr,
                      [[maybe_unused]] Function* avx512 = nullptr, [[maybe_unused]] Function* avx512bf16 = nullptr) {
#if defined(__x86_64__)
  switch (isa) {
    case CpuIsa::kGeneric: return generic;
    case CpuIsa::kAvx2: return avx2;
    case CpuIsa::kAvx512: return avx512;
    case CpuIsa::kAvx512Bf16: return avx512bf16;
  }
#else
  (void)isa;
#endif
  return generic;
}

}  // namespace zerofleet::cpu

/// The function pointer of a kernel declared with ZF_DECLARE_KERNEL, for use inside namespace zerofleet::cpu:
///   const auto scale = ZF_PICK_KERNEL(ctx.cpu_isa, scale);
#if defined(__x86_64__)
#define ZF_PICK_KERNEL(isa, name)                                                                              \
  (::zerofleet::cpu::pick_kernel(isa, &::zerofleet::cpu::isa_generic::name, &::zerofleet::cpu::isa_avx2::name, \
                                 &::zerofleet::cpu::isa_avx512::name, &::zerofleet::cpu::isa_avx512bf16::name))
#else
#define ZF_PICK_KERNEL(isa, name) (::zerofleet::cpu::pick_kernel(isa, &::zerofleet::cpu::isa_generic::name))
#endif
