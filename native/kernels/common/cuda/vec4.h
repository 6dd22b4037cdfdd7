#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"
#include "core/host_device.h"

// Four neighbouring elements of an array of any dtype as fp32: what one thread of a flat kernel handles. The dtype is a
// run-time value that is equal for all threads. These passes wait for memory, so the branch costs nothing. Each kernel
// is compiled once instead of once for every combination of dtypes.
namespace zerofleet::cuda {

/// On a device it must stay in registers: loops over it are unrolled whole, so that every index is a constant.
struct Vec4 {
  float v[4];
};

/// In memory: one access of 16 or 8 bytes.
template <class T>
struct alignas(4 * sizeof(T)) Four {
  T v[4];
};

/// Returns true if all groups of four elements from `array` on can be accessed at once.
inline bool aligned_for_four(const void* array, DType dtype) {
  return reinterpret_cast<std::uintptr_t>(array) % (4 * size_of(dtype)) == 0;
}

ZF_HOST_DEVICE constexpr float to_float(float value) { return value; }
using zerofleet::to_float;

template <class T>
ZF_HOST_DEVICE constexpr T rounded_to(float value) {
  return value;
}
template <>
ZF_HOST_DEVICE constexpr bf16 rounded_to<bf16>(float value) {
  return to_bf16(value);
}
template <>
ZF_HOST_DEVICE constexpr f16 rounded_to<f16>(float value) {
  return to_f16(value);
}

/// Elements of an array that a thread handles: `count` (1 to 4) from `first` on; `whole`: 4, and aligned.
struct Place4 {
  std::int64_t first;
  int count;
  bool whole;
};

ZF_HOST_DEVICE inline Place4 place4(std::int64_t first, std::int64_t numel, bool aligned) {
  const int count = numel - first < 4 ? static_cast<int>(numel - first) : 4;
  return {first, count, aligned && count == 4};
}

template <class T>
ZF_HOST_DEVICE inline Vec4 load4_as(const std::byte* array, const Place4& at) {
  const T* elements = reinterpret_cast<const T*>(array) + at.first;
  Vec4 x{};
  if (at.whole) {
    const Four<T> four = *reinterpret_cast<const Four<T>*>(elements);
    ZF_DEVICE_UNROLL(4)
    for (int k = 0; k < 4; ++k) x.v[k] = to_float(four.v[k]);
  } else {
    ZF_DEVICE_UNROLL(4)
    for (int k = 0; k < 4; ++k) x.v[k] = k < at.count ? to_float(elements[k]) : 0.0F;
  }
  return x;
}

template <class T>
ZF_HOST_DEVICE inline void store4_as(std::byte* array, const Place4& at, const Vec4& x) {
  T* elements = reinterpret_cast<T*>(array) + at.first;
  if (at.whole) {
    Four<T> four;
    ZF_DEVICE_UNROLL(4)
    for (int k = 0; k < 4; ++k) four.v[k] = rounded_to<T>(x.v[k]);
    *reinterpret_cast<Four<T>*>(elements) = four;
  } else {
    ZF_DEVICE_UNROLL(4)
    for (int k = 0; k < 4; ++k) {
      if (k < at.count) elements[k] = rounded_to<T>(x.v[k]);
    }
  }
}

/// Elements beyond at.count are 0.
ZF_HOST_DEVICE inline Vec4 load4(const std::byte* array, DType dtype, const Place4& at) {
  switch (dtype) {
    case DType::kBF16:
      return load4_as<bf16>(array, at);
    case DType::kF16:
      return load4_as<f16>(array, at);
    case DType::kF32:
      break;
  }
  return load4_as<float>(array, at);
}

/// Rounds to nearest even, as the CPU kernels do.
ZF_HOST_DEVICE inline void store4(std::byte* array, DType dtype, const Place4& at, const Vec4& x) {
  switch (dtype) {
    case DType::kBF16:
      return store4_as<bf16>(array, at, x);
    case DType::kF16:
      return store4_as<f16>(array, at, x);
    case DType::kF32:
      break;
  }
  store4_as<float>(array, at, x);
}

/// Returns the value as a store of `dtype` followed by a load would give it.
ZF_HOST_DEVICE inline float rounded(float value, DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return to_float(to_bf16(value));
    case DType::kF16:
      return to_float(to_f16(value));
    case DType::kF32:
      break;
  }
  return value;
}

}  // namespace zerofleet::cuda
