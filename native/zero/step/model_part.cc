#include "zero/step/model_part.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "core/device/transfer.h"
#include "kernels/flat/cast.h"
#include "zero/exchange/host_memory.h"

namespace zerofleet {
namespace {

StateShard states_of(const PlannedPart& plan, int rank, const PartTools& tools, ParamGather& params) {
  if (plan.subset.frozen) return {tools.context, tools.windows, plan.layout, rank, plan.subset, params};
  return {tools.placement,           tools.windows, plan.layout, rank, plan.subset, tools.rule.states(),
          tools.options.master_dtype};
}

std::unique_ptr<ParamMemory> memory_of(const PlannedPart& plan, Communicator& communicator, const PartTools& tools) {
  if (plan.subset.frozen) return frozen_memory(tools.context.device, communicator);
  return std::make_unique<ParamMemory>(tools.context.device, communicator);
}

}  // namespace

ModelPart::ModelPart(const PlannedPart& plan, Communicator& communicator, const PartTools& tools)
    : plan_(plan),
      communicator_(communicator),
      tools_(tools),
      params_(memory_of(plan, communicator, tools), plan.layout, tools.queue, tools.placement,
              tools.options.param_dtype),
      states_(states_of(plan, communicator.rank(), tools, params_)) {}

void ModelPart::write_params() {
  if (subset().frozen) return params_.gather_all();
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
  if (subset().frozen) return;
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
