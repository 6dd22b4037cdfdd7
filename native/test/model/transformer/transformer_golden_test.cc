#include <doctest/doctest.h>

#include <string>

#include "test/kernels/every_path.h"
#include "test/model/golden_model.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

std::int64_t counted_targets(const GoldenFile& golden) {
  std::int64_t count = 0;
  for (const std::int32_t target : golden.integers("targets")) count += target >= 0 ? 1 : 0;
  return count;
}

/// The largest allowed error of fp16 gradients, as a multiple of that of PyTorch on a CPU. Attention on a GPU rounds
/// probabilities before they are multiplied, and its tensor cores cut sums off (H100: up to 1.02).
double allowed_share(const Device& device) { return device.kind == DeviceKind::kCpu ? 1 : 1.1; }

/// Every gradient of a pass is closer to PyTorch's fp32 gradient than a share of the file's number `bound` + name.
void check_errors(const GoldenFile& golden, const std::vector<ParamSpec>& specs, const GoldenPass& pass,
                  const std::string& bound, double share = 1) {
  for (std::size_t param = 0; param < specs.size(); ++param) {
    CAPTURE(specs[param].name);
    const double error = relative_error(pass.grads[param], golden.floats("grad." + specs[param].name));
    CHECK(error < share * golden.number(bound + specs[param].name));
  }
}

}  // namespace

DEVICE_TEST_CASE("transformer: fp32 loss and every gradient match PyTorch within 1e-5") {
  for (const char* name : {"gqa_untied", "mha_tied"}) {
    CAPTURE(name);
    const GoldenFile golden(name);
    on_every_context([&](const Context& ctx) {
      GoldenModel model(golden, ctx, DType::kF32);
      const GoldenPass pass = model.run();
      CHECK(pass.loss.loss_sum == doctest::Approx(golden.number("loss_sum")).epsilon(1e-6));
      CHECK(pass.loss.num_targets == counted_targets(golden));
      for (std::size_t param = 0; param < model.specs().size(); ++param) {
        CAPTURE(model.specs()[param].name);
        CHECK(pass.times_emitted[param] == 1);
        const double error = relative_error(pass.grads[param], golden.floats("grad." + model.specs()[param].name));
        CHECK(error < 1e-5);
      }
    });
  }
}

// The allowed deviation of 16-bit types from fp32 is measured on PyTorch's own passes in them. Ours round in fewer
// places (norms, rotations, probabilities and logits keep fp32 for longer), so their error must be the smaller one, for
// every gradient.
DEVICE_TEST_CASE("transformer: bf16 gradients are closer to fp32 than PyTorch's bf16 gradients are") {
  for (const char* name : {"gqa_untied", "mha_tied"}) {
    CAPTURE(name);
    const GoldenFile golden(name);
    on_every_context([&](const Context& ctx) {
      GoldenModel model(golden, ctx, DType::kBF16);
      const GoldenPass pass = model.run();
      CHECK(pass.loss.loss_sum == doctest::Approx(golden.number("loss_sum")).epsilon(1e-3));
      check_errors(golden, model.specs(), pass, "bf16_error.");
    });
  }
}

DEVICE_TEST_CASE("transformer: fp16 gradients, scaled or not, are closer to fp32 than PyTorch's fp16 gradients are") {
  for (const char* name : {"gqa_untied", "mha_tied"}) {
    CAPTURE(name);
    const GoldenFile golden(name);
    on_every_context([&](const Context& ctx) {
      if (kSanitized && ctx.device.kind != DeviceKind::kCpu) return;  // the accesses of bf16
      GoldenModel model(golden, ctx, DType::kF16);
      const GoldenPass pass = model.run(), scaled = model.run(static_cast<float>(golden.number("loss_scale")));
      CHECK(pass.loss.loss_sum == doctest::Approx(golden.number("loss_sum")).epsilon(1e-4));
      CHECK(scaled.loss.loss_sum == pass.loss.loss_sum);
      check_errors(golden, model.specs(), pass, "fp16_error.", allowed_share(ctx.device));
      check_errors(golden, model.specs(), scaled, "fp16_scaled_error.", allowed_share(ctx.device));
    });
  }
}

TEST_CASE("transformer: one, two and three threads give the same bits") {
  const GoldenFile golden("gqa_untied");
  for (const DType dtype : kAllDTypes) {
    for (const CpuIsa isa : available_isas()) {
      if (is_repetition(isa, dtype)) continue;
      Machine one(isa, 1);
      const GoldenPass expected = GoldenModel(golden, one.ctx, dtype).run(256);
      for (const int threads : {2, 3}) {
        CAPTURE(threads);
        Machine machine(isa, threads);
        const GoldenPass pass = GoldenModel(golden, machine.ctx, dtype).run(256);
        CHECK(pass.loss.loss_sum == expected.loss.loss_sum);
        CHECK(pass.grads == expected.grads);
      }
    }
  }
}
