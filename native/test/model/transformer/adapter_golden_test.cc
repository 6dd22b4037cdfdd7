// Adapters against peft: logits, loss and the gradient of everything that is trained.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "test/model/every_golden.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

TransformerOptions over_frozen_base(const GoldenFile& golden) {
  TransformerOptions options;
  for (const ParamSpec& spec : param_specs(golden.model_config())) options.frozen.push_back(spec.base);
  return options;
}

template <class Body>
void on_every_case(DType dtype, const Body& body) {
  on_every_golden(adapter_files(), dtype, over_frozen_base, body);
}

}  // namespace

DEVICE_TEST_CASE("adapters: fp32 logits, loss and every gradient match peft within 1e-5") {
  on_every_case(DType::kF32, [](const GoldenFile& golden, GoldenModel& model) {
    CHECK(relative_error(model.last_logits(), golden.floats("logits")) < 1e-5);
    const GoldenPass pass = model.run();
    CHECK(pass.loss.loss_sum == doctest::Approx(golden.number("loss_sum")).epsilon(1e-6));
    for (std::size_t param = 0; param < model.specs().size(); ++param) {
      const ParamSpec& spec = model.specs()[param];
      CAPTURE(spec.name);
      CHECK(pass.times_emitted[param] == (spec.base ? 0 : 1));
      if (!spec.base) CHECK(relative_error(pass.grads[param], golden.floats("grad." + spec.name)) < 1e-5);
    }
  });
}

// As families_golden_test.cc compares them.
DEVICE_TEST_CASE("adapters: bf16 gradients are as close to fp32 as peft's bf16 gradients are") {
  on_every_case(DType::kBF16, [](const GoldenFile& golden, GoldenModel& model) {
    const GoldenPass pass = model.run();
    CHECK(pass.loss.loss_sum == doctest::Approx(golden.number("loss_sum")).epsilon(2e-3));
    double ours = 0, theirs = 0;
    for (std::size_t param = 0; param < model.specs().size(); ++param) {
      const ParamSpec& spec = model.specs()[param];
      if (spec.base) continue;
      CAPTURE(spec.name);
      const double error = relative_error(pass.grads[param], golden.floats("grad." + spec.name));
      const double bound = golden.number("bf16_error." + spec.name);
      CHECK(error <= 2 * bound);
      ours += error;
      theirs += bound;
    }
    CHECK(ours < theirs);
  });
}
