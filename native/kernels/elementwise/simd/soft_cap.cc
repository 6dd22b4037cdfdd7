#include "kernels/elementwise/simd/soft_cap.h"

#include "kernels/common/formulas/soft_cap.h"
#include "kernels/common/simd/arithmetic.h"
#include "kernels/common/simd/elements.h"

namespace zerofleet::cpu::ZF_ISA_NS {

void soft_cap_rows(const SoftCapArgs& args) {
  with_model_element(args.dtype, [&]<class T>(T*) {
    for (int64_t row = 0; row < args.rows; ++row) {
      const T* x = row_of<T>(args.x, row);
      T* y = row_of<T>(args.y, row);
      sweep(args.cols, [&](int64_t i, auto part) {
        store(y + i, soft_capped<VectorArithmetic>(load(x + i, part), args.cap), part);
      });
    }
  });
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
