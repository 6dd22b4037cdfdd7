#include "kernels/common/simd/convert.h"

#include "kernels/common/simd/elements.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

template <class T>
void convert_to(const ConvertArgs& args) {
  for (int64_t row = 0; row < args.rows; ++row) {
    const float* source = args.source + row * args.source_stride;
    T* target = static_cast<T*>(args.target) + row * args.target_stride;
    int64_t col = 0;
    for (; col + kLanes <= args.cols; col += kLanes) store(target + col, load(source + col));
    const int left = static_cast<int>(args.cols - col);
    if (left > 0) store_first(target + col, load_first(source + col, left), left);
  }
}

}  // namespace

void convert_rows(const ConvertArgs& args) {
  with_model_element(args.target_dtype, [&]<class T>(T*) { convert_to<T>(args); });
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
