#pragma once

// Declares one function in the namespace of every instruction-set path of this build (ZF_HAS_AVX2 and so on); each SIMD
// source is compiled once per path and defines it there. See kernels/common/cpu/isa_dispatch.h for the choice at run
// time.
//
//   ZF_DECLARE_KERNEL(void scale(float* values, std::int64_t count, float factor));
#define ZF_DECLARE_KERNEL(...) \
  namespace isa_generic {      \
  __VA_ARGS__;                 \
  }                            \
  ZF_DECLARE_AVX2(__VA_ARGS__) \
  ZF_DECLARE_AVX512(__VA_ARGS__) ZF_DECLARE_AVX512BF16(__VA_ARGS__)

#ifdef ZF_HAS_AVX2
#define ZF_DECLARE_AVX2(...) \
  namespace isa_avx2 {       \
  __VA_ARGS__;               \
  }
#else
#define ZF_DECLARE_AVX2(...)
#endif

#ifdef ZF_HAS_AVX512
#define ZF_DECLARE_AVX512(...) \
  namespace isa_avx512 {       \
  __VA_ARGS__;                 \
  }
#else
#define ZF_DECLARE_AVX512(...)
#endif

#ifdef ZF_HAS_AVX512BF16
#define ZF_DECLARE_AVX512BF16(...) \
  namespace isa_avx512bf16 {       \
  __VA_ARGS__;                     \
  }
#else
#define ZF_DECLARE_AVX512BF16(...)
#endif
