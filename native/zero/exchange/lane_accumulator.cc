#include "zero/exchange/lane_accumulator.h"

#include "kernels/flat/fold.h"

namespace zerofleet {

LaneAccumulator::LaneAccumulator(const Context& context, const ShardLayout& layout, const LeafSchedule& schedule,
                                 DType sum_dtype)
    : context_(context), layout_(layout), dtype_(sum_dtype) {
  if (!schedule.adds_leaves()) return;
  sums_ = Buffer(context.device, static_cast<std::size_t>(layout.padded_numel()) * size_of(sum_dtype));
}

std::span<std::byte> LaneAccumulator::sum_of(std::size_t param) {
  const auto begin = static_cast<std::size_t>(layout_.param_blocks(param).begin * kBlockNumel) * size_of(dtype_);
  return {sums_.data() + begin, static_cast<std::size_t>(layout_.numel(param)) * size_of(dtype_)};
}

std::optional<GradView> LaneAccumulator::add(std::size_t param, const GradView& grad) {
  if (is_absent()) return grad;
  const auto sum = sum_of(param);
  fold_pieces(context_, {.pieces = grad.bytes(),
                         .piece_dtype = grad.dtype,
                         .sum = sum,
                         .sum_dtype = dtype_,
                         .restart = scheduled_.first_of_lane});
  if (!scheduled_.last_of_lane) return std::nullopt;
  return GradView{sum.data(), dtype_, sum.size() / size_of(dtype_)};
}

}  // namespace zerofleet
