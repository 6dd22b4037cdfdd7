#include "kernels/common/simd/add_rows.h"

#include "kernels/common/simd/elements.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

template <class T>
void add(float* target, const T* row, int64_t cols) {
  sweep(cols, [&](int64_t i, auto part) { store(target + i, load(target + i, part) + load(row + i, part), part); });
}

}  // namespace

void add_row(float* target, const void* row, int64_t cols, DType row_dtype) {
  with_model_element(row_dtype, [&]<class T>(T*) { add(target, static_cast<const T*>(row), cols); });
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
