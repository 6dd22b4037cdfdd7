#include "kernels/loss/draw_weights.h"

#include <algorithm>

#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/loss/simd/draw_weights.h"

namespace zerofleet {
namespace {

constexpr double kLargestFactor = 1e30;  // finite, so that 0 times it is 0

}  // namespace

std::vector<float> draw_weights(CpuIsa isa, std::span<const float> logits, double temperature) {
  std::vector<float> weights(logits.size());
  cpu::DrawWeightsArgs args;
  args.logits = logits.data();
  args.weights = weights.data();
  args.count = std::ssize(logits);
  args.largest = *std::ranges::max_element(logits);
  args.factor = static_cast<float>(std::min(1 / temperature, kLargestFactor));
  using namespace cpu;
  ZF_PICK_KERNEL(isa, draw_weights)(args);
  return weights;
}

}  // namespace zerofleet
