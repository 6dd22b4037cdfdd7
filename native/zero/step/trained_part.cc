#include "zero/step/trained_part.h"

#include <utility>

namespace zerofleet {

TrainedPart::TrainedPart(ModelPart& part, const LeafSchedule& schedule, const PartTools& tools, StagingPool& staging,
                         GradBuckets::OnFull on_full)
    : part_(part),
      lanes_(tools.context, part.layout(), schedule, tools.options.grad_accum_dtype),
      buckets_(tools.context, part.layout(),
               {tools.options.reduce_dtype, static_cast<float>(1.0 / tools.options.gradient_predivide_factor)}, staging,
               std::move(on_full)),
      reducer_(part.layout(), part.shard(), schedule, part.communicator(), {tools.queue, staging, tools.placement},
               {tools.options.reduce_dtype, tools.options.grad_accum_dtype}),
      optimizer_(tools.placement, part.layout(), part.shard(), part.subset(), part.states(), tools.rule) {}

void TrainedPart::begin_leaf(const ScheduledLeaf& scheduled) {
  lanes_.begin_leaf(scheduled);
  if (scheduled.last_of_lane) buckets_.begin();
}

void TrainedPart::add_grad(std::size_t param, const GradView& grad) {
  if (const auto sum = lanes_.add(param, grad)) buckets_.add(param, *sum);
}

std::byte* TrainedPart::room_for(std::size_t param, DType dtype) {
  return lanes_.is_absent() ? buckets_.room_for(param, dtype) : nullptr;
}

void TrainedPart::update(const UpdateScalars& scalars) {
  ParamGather& params = part_.params();
  params.write([&](const Range& buckets, const ParamWindow& window) {
    optimizer_.update(buckets, grads(), scalars, window, params.dtype());
  });
}

}  // namespace zerofleet
