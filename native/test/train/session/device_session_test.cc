// Sessions on CUDA devices; ranks are threads that share one device.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "test/devices_here.h"
#include "test/train/session/session_job.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

std::vector<SequenceRequest> short_requests() {
  std::vector<SequenceRequest> requests(2);
  requests[0].prompt = {1, 2, 3};
  requests[1].prompt = {4};
  for (SequenceRequest& request : requests) request.max_tokens = 2;
  return requests;
}

}  // namespace

DEVICE_TEST_CASE("CUDA sessions: results and digests are equal on 1, 2 and 3 ranks, and follow the CPU's") {
  for (const Device device : cuda_devices_here()) {
    for (const PassLoss& loss : pass_losses()) {
      CAPTURE(static_cast<int>(loss.kind));
      SessionJob there(DType::kBF16), here(DType::kF32), same(DType::kF32);
      there.config.device = same.config.device = device;
      const PassRows rows = random_rows(4, 4, loss), few = random_rows(5, 2, loss);
      const auto script = [&](Trainer& trainer, SessionRecord& record) {
        record.add(trainer.passes().forward_backward(loss, rows));
        record.add(trainer.passes().forward_backward(loss, few));
        record.add(trainer.optim_step(1e-2, kUpdate));
        record.add_digest(trainer);
      };
      const auto expected = there.run(1, 1, script);
      CHECK(there.run(3, 1, script) == expected);
      if (loss.kind == PassLossKind::kPpo) CHECK(there.run(2, 1, script) == expected);
      std::vector<double> losses[2];
      for (SessionJob* job : {&here, &same}) {
        job->run(1, 1, [&](Trainer& trainer, SessionRecord&) {
          auto& of_device = losses[job == &same ? 1 : 0];
          of_device.push_back(trainer.passes().forward_backward(loss, rows).loss);
          of_device.push_back(trainer.optim_step(1e-2, kUpdate).grad_norm);
          of_device.push_back(trainer.passes().forward(loss, rows).loss);
        });
      }
      for (std::size_t i = 0; i < losses[0].size(); ++i)
        CHECK(losses[1][i] == doctest::Approx(losses[0][i]).epsilon(1e-4));
    }
  }
}

DEVICE_TEST_CASE(
    "CUDA sessions: answers and penalties are equal on 1 and 2 ranks, with an adapter over a quantized base") {
  for (const Device device : cuda_devices_here()) {
    SessionJob job;
    job.config.device = device;
    job.config.model.num_hidden_layers = 1;
    job.add_adapter(QuantFormat::kNf4);
    const auto script = [](Trainer& trainer, SessionRecord& record) {
      const PassRows rows = random_rows(1, 4, kPenalized);
      record.add(trainer.passes().forward_backward(kPenalized, rows));
      record.add(trainer.optim_step(1e-2, kUpdate));
      record.add(trainer.passes().forward(kPenalized, rows));
      record.add_digest(trainer);
      record.add(trainer.sample(short_requests()));
    };
    CHECK(job.run(2, 1, script) == job.run(1, 1, script));
  }
}
