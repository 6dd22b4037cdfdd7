// Adapters against peft: logits, loss and the gradient of everything that is trained.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "test/devices_here.h"
#include "test/kernels/test_machine.h"
#include "test/model/golden_model.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr const char* kCases[] = {"lora_llama", "lora_gpt2", "lora_qwen3"};

TransformerOptions over_frozen_base(const GoldenFile& golden) {
  TransformerOptions options;
  for (const ParamSpec& spec : param_specs(golden.model_config())) options.frozen.push_back(spec.frozen);
  return options;
}

/// Runs `body` with each model on each instruction-set path and each CUDA device.
template <class Body>
void on_every_case(DType dtype, const Body& body) {
  for (const char* name : kCases) {
    const GoldenFile golden(name);
    const TransformerOptions options = over_frozen_base(golden);
    for (const Device device : cuda_devices_here()) {
      CAPTURE(std::string(name) + " on " + to_string(device));
      DeviceMachine machine(device);
      GoldenModel model(golden, machine.ctx, dtype, options);
      body(golden, model);
    }
    if (!cpu_is_tested()) continue;
    for (const CpuIsa isa : available_isas()) {
      CAPTURE(std::string(name) + " on " + name_of(isa));
      Machine machine(isa, 2);
      GoldenModel model(golden, machine.ctx, dtype, options);
      body(golden, model);
    }
  }
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
      CHECK(pass.times_emitted[param] == (spec.frozen ? 0 : 1));
      if (!spec.frozen) CHECK(relative_error(pass.grads[param], golden.floats("grad." + spec.name)) < 1e-5);
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
      if (spec.frozen) continue;
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
