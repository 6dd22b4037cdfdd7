// Ends of fp16's range: a loss scale saves gradients from underflow, and an overflow is detected.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "test/kernels/every_path.h"
#include "test/model/golden_model.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

bool all_finite(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

bool all_finite(const GoldenPass& pass) {
  return std::ranges::all_of(pass.grads, [](const auto& grad) { return all_finite(grad); });
}

std::size_t index_of(const std::vector<ParamSpec>& specs, const std::string& name) {
  const auto found = std::ranges::find(specs, name, &ParamSpec::name);
  REQUIRE(found != specs.end());
  return static_cast<std::size_t>(found - specs.begin());
}

template <class Body>
void on_every_model(const Body& body) {
  const GoldenFile golden("gqa_untied");
  on_every_context([&](const Context& ctx) {
    if (kSanitized && ctx.device.kind != DeviceKind::kCpu) return;  // the accesses of bf16
    GoldenModel model(golden, ctx, DType::kF16);
    body(golden, model);
  });
}

/// From now on the model's parameter is one that makes activations overflow.
void check_overflow_of(const std::string& name, GoldenModel& model) {
  CAPTURE(name);
  model.fill_param(index_of(model.specs(), name), 60000.0F);
  CHECK(!all_finite(model.run(1024)));
}

}  // namespace

DEVICE_TEST_CASE("fp16: the loss scale acts before gradients are rounded, so it saves gradients from underflow") {
  on_every_model([](const GoldenFile& golden, GoldenModel& model) {
    constexpr float kFaint = 0x1p-14F;
    const GoldenPass faint = model.run(1, kFaint), scaled = model.run(0x1p20F, kFaint);
    for (std::size_t param = 0; param < model.specs().size(); ++param) {
      const std::string& name = model.specs()[param].name;
      CAPTURE(name);
      std::vector<float> expected = golden.floats("grad." + name);
      for (float& value : expected) value *= kFaint;
      CHECK(relative_error(faint.grads[param], expected) > 0.05);
      CHECK(relative_error(scaled.grads[param], expected) < golden.number("fp16_scaled_error." + name));
    }
  });
}

DEVICE_TEST_CASE("fp16: a loss scale that overflows shows in every parameter's gradient and leaves nothing behind") {
  on_every_model([](const GoldenFile&, GoldenModel& model) {
    const GoldenPass before = model.run(1024);
    CHECK(all_finite(before));
    const GoldenPass overflowed = model.run(0x1p40F);
    CHECK(overflowed.loss.loss_sum == before.loss.loss_sum);
    for (std::size_t param = 0; param < model.specs().size(); ++param) {
      CAPTURE(model.specs()[param].name);
      CHECK(!all_finite(overflowed.grads[param]));
    }
    CHECK(model.run(1024).grads == before.grads);
  });
}

DEVICE_TEST_CASE(
    "fp16: an activation that overflows in attention or between the projections is not hidden from the gradients") {
  for (const char* name : {"model.layers.0.self_attn.q_proj.weight", "model.layers.1.mlp.gate_proj.weight"}) {
    on_every_model([&](const GoldenFile&, GoldenModel& model) { check_overflow_of(name, model); });
  }
}

TEST_CASE("fp16: an activation that overflows, wherever in the forward, is not hidden from the gradients") {
  const GoldenFile golden("gqa_untied");
  for (const char* name :
       {"model.layers.0.input_layernorm.weight", "model.layers.0.self_attn.v_proj.weight",
        "model.layers.1.self_attn.o_proj.weight", "model.layers.1.mlp.down_proj.weight", "model.norm.weight"}) {
    for (const CpuIsa isa : available_isas()) {
      Machine machine(isa, 2);
      GoldenModel model(golden, machine.ctx, DType::kF16);
      check_overflow_of(name, model);
    }
  }
}
