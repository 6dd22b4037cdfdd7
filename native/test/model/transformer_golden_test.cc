#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/buffer.h"
#include "model/transformer.h"
#include "test/golden/golden_file.h"
#include "test/kernels/test_machine.h"

using namespace zerofleet;
using zerofleet::test::GoldenFile;
using zerofleet::test::Machine;

namespace {

struct Pass {
  LeafResult loss;
  std::vector<std::vector<float>> grads;
  std::vector<int> times_emitted;
};

/// Runs the pass that a golden file describes.
Pass run(const GoldenFile& golden, const Context& ctx, DType dtype) {
  const ModelConfig config = golden.model_config();
  const auto specs = param_specs(config);
  std::vector<Buffer> buffers;
  std::vector<const std::byte*> params;
  for (const ParamSpec& spec : specs) {
    const std::vector<float> values = golden.floats("param." + spec.name);
    REQUIRE(static_cast<std::int64_t>(values.size()) == spec.numel());
    buffers.emplace_back(ctx.device, values.size() * size_of(dtype));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (dtype == DType::kBF16) {
        buffers.back().as<bf16>()[i] = to_bf16(values[i]);
      } else {
        buffers.back().as<float>()[i] = values[i];
      }
    }
    params.push_back(buffers.back().data());
  }
  Transformer model(ctx, config, dtype, golden.integer("batch"), golden.integer("length"));
  model.bind_params(params);
  model.params_changed();
  Pass pass;
  pass.grads.resize(specs.size());
  pass.times_emitted.resize(specs.size());
  pass.loss = model.forward_backward(golden.integers("tokens"), golden.integers("targets"),
                                     static_cast<float>(golden.number("grad_scale")),
                                     [&](std::size_t param, std::span<const float> grad) {
                                       pass.grads[param].assign(grad.begin(), grad.end());
                                       ++pass.times_emitted[param];
                                     });
  return pass;
}

double relative_error(const std::vector<float>& actual, const std::vector<float>& expected) {
  REQUIRE(actual.size() == expected.size());
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double a = static_cast<double>(actual[i]), e = static_cast<double>(expected[i]);
    difference += (a - e) * (a - e);
    norm += e * e;
  }
  return std::sqrt(difference / norm);
}

std::int64_t counted_targets(const GoldenFile& golden) {
  std::int64_t count = 0;
  for (const std::int32_t target : golden.integers("targets")) count += target >= 0 ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("transformer: fp32 loss and every gradient match PyTorch within 1e-5") {
  for (const char* name : {"gqa_untied", "mha_tied"}) {
    const GoldenFile golden(name);
    const auto specs = param_specs(golden.model_config());
    for (const CpuIsa isa : test::available_isas()) {
      CAPTURE(std::string(name) + " on " + name_of(isa));
      Machine machine(isa, 2);
      const Pass pass = run(golden, machine.ctx, DType::kF32);
      CHECK(pass.loss.loss_sum == doctest::Approx(golden.number("loss_sum")).epsilon(1e-6));
      CHECK(pass.loss.num_targets == counted_targets(golden));
      for (std::size_t param = 0; param < specs.size(); ++param) {
        CAPTURE(specs[param].name);
        CHECK(pass.times_emitted[param] == 1);
        const double error = relative_error(pass.grads[param], golden.floats("grad." + specs[param].name));
        CHECK(error < 1e-5);
      }
    }
  }
}

// How far bf16 may be from fp32 is measured on PyTorch's own bf16 pass. Ours rounds in fewer places (norms, rotations,
// probabilities and logits keep fp32 for longer), so its error must be the smaller one, for every gradient.
TEST_CASE("transformer: bf16 gradients are closer to fp32 than PyTorch's bf16 gradients are") {
  for (const char* name : {"gqa_untied", "mha_tied"}) {
    const GoldenFile golden(name);
    const auto specs = param_specs(golden.model_config());
    for (const CpuIsa isa : test::available_isas()) {
      CAPTURE(std::string(name) + " on " + name_of(isa));
      Machine machine(isa, 2);
      const Pass pass = run(golden, machine.ctx, DType::kBF16);
      CHECK(pass.loss.loss_sum == doctest::Approx(golden.number("loss_sum")).epsilon(1e-3));
      for (std::size_t param = 0; param < specs.size(); ++param) {
        CAPTURE(specs[param].name);
        const double error = relative_error(pass.grads[param], golden.floats("grad." + specs[param].name));
        CHECK(error < golden.number("bf16_error." + specs[param].name));
      }
    }
  }
}

TEST_CASE("transformer: one, two and three threads give the same bits") {
  const GoldenFile golden("gqa_untied");
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const CpuIsa isa : test::available_isas()) {
      Machine one(isa, 1);
      const Pass expected = run(golden, one.ctx, dtype);
      for (const int threads : {2, 3}) {
        CAPTURE(threads);
        Machine machine(isa, threads);
        const Pass pass = run(golden, machine.ctx, dtype);
        CHECK(pass.loss.loss_sum == expected.loss.loss_sum);
        CHECK(pass.grads == expected.grads);
      }
    }
  }
}
