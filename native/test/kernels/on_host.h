#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/device/context.h"
#include "core/dtype.h"
#include "core/philox.h"
#include "kernels/flat/cast.h"
#include "test/devices_here.h"

/// For tests of the code of CUDA kernels that one thread runs: compiled for the host and run thread by thread, against
/// the CPU kernels bit for bit. A machine with a GPU is needed for the rest: the launches, the exchange between lanes
/// of a warp, and nvcc's arithmetic. The cases for every device (test/devices_here.h) cover that.
namespace zerofleet::test {

using Bytes = std::vector<std::byte>;

inline const Context& cpu_context() {
  static DeviceMachine machine(Device{});
  return machine.ctx;
}

inline float random_float(std::uint64_t key, std::size_t i) {
  const auto bits = philox(key, {static_cast<std::uint32_t>(i), 0, 0, 0});
  return static_cast<float>((uniform_open(bits[0]) - 0.5) * std::exp2(static_cast<double>(bits[1] % 30) - 24));
}

inline std::vector<float> random_floats(std::size_t numel, std::uint64_t key) {
  std::vector<float> values(numel);
  for (std::size_t i = 0; i < numel; ++i) values[i] = random_float(key, i);
  return values;
}

inline Bytes random_array(std::size_t numel, DType dtype, std::uint64_t key) {
  Bytes bytes(numel * size_of(dtype));
  cast_from_f32(cpu_context(), random_floats(numel, key), dtype, bytes);
  return bytes;
}

/// A warp's exchange, as kernels/common/cuda/warp.cuh has it: afterwards entry 0 is the sum.
inline double folded_by_halves(std::vector<double> lanes) {
  for (std::size_t half = 16; half >= 1; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] = lanes[lane] + lanes[lane + half];
  }
  return lanes[0];
}

}  // namespace zerofleet::test
