#include "zero/step/model_part.h"

#include <algorithm>
#include <array>
#include <vector>

#include "core/device/transfer.h"
#include "kernels/flat/cast.h"

namespace zerofleet {
namespace {

constexpr std::array kMasterOnly{StateId::kMaster};

std::span<const StateId> states_of(const ParamSubset& subset, const OptimizerRule& rule) {
  return subset.frozen ? std::span<const StateId>(kMasterOnly) : rule.states();
}

}  // namespace

ModelPart::ModelPart(const PlannedPart& plan, Communicator& communicator, const PartTools& tools)
    : plan_(plan),
      communicator_(communicator),
      tools_(tools),
      states_(tools.placement, tools.windows, plan.layout, communicator.rank(), plan.subset, states_of(plan.subset, tools.rule),
              tools.options.master_dtype),
      params_(tools.context, plan.layout, communicator, tools.queue, tools.placement, tools.options.param_dtype) {}

void ModelPart::write_params() {
  params_.write([this](const Range& buckets, const ParamWindow& window) {
    // Owned blocks follow one another in the shard as they do in the window.
    const std::byte* master = states_.data(StateId::kMaster, layout().shard_offset(buckets.end - 1, shard()));
    const std::size_t numel = window.bytes.size() / size_of(params_.dtype());
    if (states_.master_dtype() == DType::kF32) {
      const std::span<const float> values(reinterpret_cast<const float*>(master), numel);
      cast_from_f32(tools_.placement.context(), values, params_.dtype(), window.bytes);
    } else {
      copy_bytes(tools_.placement.context(), window.bytes, {master, window.bytes.size()});  // both are fp16
    }
  });
}

void ModelPart::refresh_master() {
  constexpr std::int64_t kChunkNumel = 64 * kBlockNumel;
  const Context host{Device{}, tools_.context.pool, tools_.context.cpu_isa};
  const std::size_t width = size_of(params_.dtype());
  std::vector<float> values;
  for (const ShardSlice& slice : states_.slices()) {
    for (std::int64_t begin = slice.elements.begin; begin < slice.elements.end; begin += kChunkNumel) {
      values.resize(static_cast<std::size_t>(std::min(kChunkNumel, slice.elements.end - begin)));
      const std::byte* source = params_.data(slice.param) + static_cast<std::size_t>(begin) * width;
      tools_.windows.read(tools_.context, {source, values.size() * width}, [&](std::size_t offset, auto bytes) {
        cast_to_f32(host, bytes, params_.dtype(), std::span(values).subspan(offset / width, bytes.size() / width));
      });
      states_.load(StateId::kMaster, slice.param, begin, values);
    }
  }
}

}  // namespace zerofleet
