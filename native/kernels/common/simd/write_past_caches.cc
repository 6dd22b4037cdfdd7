#include "kernels/common/simd/write_past_caches.h"

#include "kernels/common/simd/elements.h"
#include "kernels/common/simd/stream.h"
#include "kernels/common/simd/stream_elements.h"

namespace zerofleet::cpu::ZF_ISA_NS {

void write_past_caches(const float* source, void* target_bytes, DType dtype, int64_t numel) {
  with_element(dtype, [&]<class Element>(Element*) {
    auto* target = static_cast<Element*>(target_bytes);
    if (can_stream(target)) {
      sweep(numel, [&](int64_t i, auto part) { stream_elements(target + i, load(source + i, part), part); });
    } else {
      sweep(numel, [&](int64_t i, auto part) { store(target + i, load(source + i, part), part); });
    }
  });
}

void finish_writes_past_caches() { finish_streaming(); }

}  // namespace zerofleet::cpu::ZF_ISA_NS
