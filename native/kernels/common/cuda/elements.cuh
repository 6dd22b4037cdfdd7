#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "kernels/common/cuda/vec4.h"
#include "kernels/common/matrix.h"

// Elements of rows as kernels of one storage type T read and write them.
namespace zerofleet::cuda {

/// Calls body(static_cast<T*>(nullptr)) with the storage type of `dtype`.
template <class Body>
void with_element(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::kF32:
      return body(static_cast<float*>(nullptr));
    case DType::kBF16:
      return body(static_cast<bf16*>(nullptr));
    case DType::kF16:
      return body(static_cast<f16*>(nullptr));
  }
}

/// A matrix as an argument of a kernel; no data: null.
template <class T>
struct Rows {
  T* data = nullptr;
  std::int64_t stride = 0;

  __device__ T* row(std::int64_t index) const { return data + index * stride; }
};

template <class T>
Rows<T> rows_of(const Matrix& matrix) {
  return {static_cast<T*>(matrix.data), matrix.stride};
}
template <class T>
Rows<const T> rows_of(const ConstMatrix& matrix) {
  return {static_cast<const T*>(matrix.data), matrix.stride};
}

}  // namespace zerofleet::cuda
