#pragma once

// Declares one function in the namespace of every instruction-set path of this architecture; each SIMD source is
// compiled once per path and defines it there. See kernels/cpu/isa_dispatch.h for the choice at run time.
//
//   ZF_DECLARE_KERNEL(void scale(float* values, std::int64_t count, float factor));
#if defined(__x86_64__)
#define ZF_DECLARE_KERNEL(...) \
  namespace isa_generic {      \
  __VA_ARGS__;                 \
  }                            \
  namespace isa_avx2 {         \
  __VA_ARGS__;                 \
  }                            \
  namespace isa_avx512 {       \
  __VA_ARGS__;                 \
  }                            \
  namespace isa_avx512bf16 {   \
  __VA_ARGS__;                 \
  }
#else
#define ZF_DECLARE_KERNEL(...) \
  namespace isa_generic {      \
  __VA_ARGS__;                 \
  }
#endif
