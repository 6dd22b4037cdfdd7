// Placement of states: it changes no bit.
#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "comm/solo_comm.h"
#include "test/zero/fake_job.h"
#include "zero/offload/host_placement.h"
#include "zero/step/model_plan.h"
#include "zero/step/trained_part.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

struct Result {
  std::string digest;
  std::vector<std::byte> params;
  bool operator==(const Result&) const = default;
};

/// A part of one rank with states in a placement, trained for some steps of one leaf.
Result train(bool on_host, DType master_dtype) {
  FakeJob job;
  job.options.num_leaves = job.options.num_lanes = 1;
  job.options.param_dtype = job.options.reduce_dtype = DType::kF16;
  job.options.master_dtype = master_dtype;
  job.options.bucket_bytes = 16384;
  job.options.param_groups = resolve_param_groups(job.specs, {}, 0.1);
  ThreadPool pool(2);
  const Context context{Device{}, &pool, best_cpu_isa()};
  const auto comm = make_solo_comm();
  CommQueue queue(context);
  std::unique_ptr<StatePlacement> placement = make_state_placement(context, queue.context(), Offload::kCpu);
  CHECK(placement->in_place());
  if (on_host) placement = std::make_unique<HostPlacement>(context, queue.context());
  const auto rule = make_optimizer_rule(job.options.optimizer);
  const auto plan = plan_model(job.specs, job.options, 1);
  const LeafSchedule schedule(1, 1, 1);
  HostWindows windows;
  const PartTools tools{context, queue, *placement, windows, *rule, job.options};
  ModelPart part(plan[0], *comm, tools);
  StagingPool staging(Device{}, 4 * 16384);
  std::unique_ptr<TrainedPart> trained;
  trained = std::make_unique<TrainedPart>(part, schedule, tools, staging, [&](std::int64_t bucket, Buffer contents) {
    trained->reducer().reduce_bucket(0, bucket, std::move(contents));
  });
  part.states().initialize_master(5);
  part.states().reset_moments([](StateId) { return 0.0F; });
  part.write_params();
  queue.drain();
  const std::vector<GroupScalars> groups{{1e-2, 0.1}, {1e-2, 0}};
  for (int step = 0; step < 3; ++step) {
    trained->begin_leaf(schedule.schedule_of(0)[0]);
    for (std::size_t param = job.specs.size(); param-- > 0;) {
      std::vector<float> grad(static_cast<std::size_t>(job.specs[param].numel()));
      for (std::size_t e = 0; e < grad.size(); ++e) grad[e] = job.grad(step, 0, param, static_cast<std::int64_t>(e));
      trained->add_grad(param, GradView::of(grad));
    }
    queue.drain();
    trained->update({groups, 1.0F, step + 1});
    queue.drain();
  }
  Result result{part.states().digest().to_hex(), {}};
  const auto flat = part.params().flat();
  result.params.assign(flat.begin(), flat.end());
  part.refresh_master();
  part.write_params();
  queue.drain();
  CHECK(std::memcmp(part.params().flat().data(), result.params.data(), result.params.size()) == 0);
  CHECK((placement->staging_bytes() > 0) == on_host);
  queue.close();
  return result;
}

}  // namespace

TEST_CASE("states in host memory, with gradients and parameters on the way, give the bits of states in place") {
  for (const DType master_dtype : {DType::kF32, DType::kF16}) {
    const Result expected = train(false, master_dtype);
    CHECK(train(true, master_dtype) == expected);
    CHECK(expected.params != std::vector<std::byte>(expected.params.size()));
  }
}
