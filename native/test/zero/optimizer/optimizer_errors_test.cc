// Input that optimizers refuse, their names and states, and groups of hyper-parameters.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "kernels/optimizer/lamb.h"
#include "kernels/optimizer/optimizer_update.h"
#include "test/devices_here.h"
#include "test/zero/fake_job.h"
#include "test/zero/optimizer_arrays.h"
#include "test/zero/optimizer_types.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr AdamWScalars kAdamW{.beta2 = 0.95F, .eps = 1e-8F, .step_size = 1e-3F};
constexpr AdamScalars kAdam{.beta2 = 0.95F, .eps = 1e-8F, .step_size = 1e-3F};
constexpr LambScalars kLamb{.beta2 = 0.95F, .eps = 1e-6F, .lr = 1e-3F};
constexpr LionScalars kLion{.lr = 1e-3F};
constexpr AdagradScalars kAdagrad{.eps = 1e-10F, .step_size = 1e-3F};
constexpr SgdScalars kSgd{.lr = 1e-3F, .momentum = 0.9F};

/// Arrays of one block, and calls of kernels with them.
struct Kernels {
  std::vector<float> master = std::vector<float>(4096, 1.0F), first = master, second = master, grad = master;
  std::vector<float> params = master;
  ThreadPool pool{1};
  Context context{Device{}, &pool, best_cpu_isa()};
  OptimizerDTypes dtypes{.params = DType::kF32};
  OptimizerSegment segment{reinterpret_cast<std::byte*>(master.data()),
                           {first.data(), second.data()},
                           reinterpret_cast<const std::byte*>(grad.data()),
                           reinterpret_cast<std::byte*>(params.data()),
                           4096,
                           0,
                           {}};

  template <class Update>
  std::string code(const typename Update::Scalars& scalars) {
    return code_of([&] { optimizer_update<Update>(context, {&segment, 1}, dtypes, {&scalars, 1}); });
  }
  std::string prepare_code(const LambScalars& scalars, const LambSums& sums) {
    return code_of([&] { lamb_prepare(context, {&segment, 1}, dtypes, {&scalars, 1}, sums); });
  }
  std::string update_code(const LambScalars& scalars, std::span<const float> trust_ratios) {
    return code_of([&] { lamb_update(context, {&segment, 1}, dtypes, {&scalars, 1}, trust_ratios); });
  }
  /// Codes of all operations, which should be the same.
  std::vector<std::string> codes() {
    std::vector<double> weights(1), updates(1);
    const std::int64_t first_stat = 0;
    const float ratio = 1;
    return {code<AdamWUpdate>(kAdamW),
            code<AdamUpdate>(kAdam),
            code<LionUpdate>(kLion),
            code<AdagradUpdate>(kAdagrad),
            code<SgdMomentumUpdate>(kSgd),
            code<SgdNesterovUpdate>(kSgd),
            prepare_code(kLamb, {4096, {&first_stat, 1}, weights, updates}),
            update_code(kLamb, {&ratio, 1})};
  }
};

std::vector<std::string> codes_with(const std::function<void(Kernels&)>& change) {
  Kernels kernels;
  change(kernels);
  return kernels.codes();
}

std::string message_of(const std::function<void(OptimizerOptions&)>& change, OptimizerType type) {
  OptimizerOptions options;
  options.type = type;
  change(options);
  try {
    make_optimizer_rule(options);
  } catch (const Error& error) {
    return error.code() + " " + error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("optimizer kernels refuse segments that lack something, on every entry") {
  const auto all = [](const char* code) { return std::vector<std::string>(8, code); };
  CHECK(codes_with([](Kernels&) {}) == all("none"));
  CHECK(codes_with([](Kernels& k) { k.segment.params = nullptr; }) == all("none"));
  CHECK(codes_with([](Kernels& k) { k.segment.numel = -1; }) == all("invalid_argument"));
  CHECK(codes_with([](Kernels& k) { k.segment.group = 1; }) == all("invalid_argument"));
  CHECK(codes_with([](Kernels& k) { k.segment.master = nullptr; }) == all("invalid_argument"));
  CHECK(codes_with([](Kernels& k) { k.segment.grad = nullptr; }) == all("invalid_argument"));
  CHECK(codes_with([](Kernels& k) { k.segment.states[0] = nullptr; }) == all("invalid_argument"));
  CHECK(codes_with([](Kernels& k) { k.dtypes.master = DType::kBF16; }) == all("invalid_argument"));
  CHECK(codes_with([](Kernels& k) { k.context.device = absent_device(); }) == all("device_unavailable"));
  Kernels kernels;
  kernels.segment.states[0] = nullptr;
  CHECK(kernels.code<SgdUpdate>({.lr = 1e-3F}) == "none");  // without momentum there is no buffer
}

TEST_CASE("optimizer kernels that divide refuse eps 0") {
  Kernels kernels;
  const auto without_eps = [](auto scalars) {
    scalars.eps = 0;
    return scalars;
  };
  CHECK(kernels.code<AdamWUpdate>(without_eps(kAdamW)) == "invalid_argument");
  CHECK(kernels.code<AdamUpdate>(without_eps(kAdam)) == "invalid_argument");
  CHECK(kernels.code<AdagradUpdate>(without_eps(kAdagrad)) == "invalid_argument");
  CHECK(kernels.prepare_code(without_eps(kLamb), {}) == "invalid_argument");
  CHECK(kernels.update_code(without_eps(kLamb), {}) == "invalid_argument");
}

TEST_CASE("LAMB refuses sums without a slot, broken blocks and missing ratios") {
  Kernels kernels;
  std::vector<double> sums(2);
  const std::int64_t slot = 1, outside = 2, negative = -1;
  CHECK(kernels.prepare_code(kLamb, {4096, {&slot, 1}, sums, sums}) == "none");
  CHECK(kernels.prepare_code(kLamb, {4096, {&outside, 1}, sums, sums}) == "invalid_argument");
  CHECK(kernels.prepare_code(kLamb, {4096, {&negative, 1}, sums, sums}) == "invalid_argument");
  CHECK(kernels.prepare_code(kLamb, {2048, {&slot, 1}, sums, sums}) == "invalid_argument");
  CHECK(kernels.prepare_code(kLamb, {16, {&slot, 1}, sums, sums}) == "invalid_argument");
  CHECK(kernels.prepare_code(kLamb, {8192, {&slot, 1}, sums, sums}) == "invalid_argument");
  CHECK(kernels.prepare_code(kLamb, {4096, {}, sums, sums}) == "invalid_argument");
  CHECK(kernels.prepare_code(kLamb, {4096, {&slot, 1}, sums, std::span(sums).first(1)}) == "invalid_argument");
  CHECK(kernels.update_code(kLamb, {}) == "invalid_argument");
  kernels.segment.numel = 100;
  CHECK(kernels.prepare_code(kLamb, {4096, {&slot, 1}, sums, sums}) == "invalid_argument");
}

TEST_CASE("each segment moves by the rate and decay of its group") {
  for (const auto type : kOptimizerTypes) {
    CAPTURE(name_of(type));
    OptimizerOptions options;
    options.type = type;
    const auto rule = make_optimizer_rule(options);
    ThreadPool pool(1);
    const Context context{Device{}, &pool, best_cpu_isa()};
    const auto run = [&](std::vector<GroupScalars> groups, std::vector<std::size_t> of_blocks) {
      OptimizerArrays arrays(*rule, {}, std::vector<float>(of_blocks.size() * kBlockNumel, 0.5F));
      std::vector<UpdateSegment> segments;
      for (std::size_t i = 0; i < of_blocks.size(); ++i) {
        const auto block = static_cast<std::int64_t>(i);
        segments.push_back(arrays.segment({block * kBlockNumel, (block + 1) * kBlockNumel}));
        segments.back().group = of_blocks[i];
      }
      std::vector<double> sums(of_blocks.size());
      // Two steps: the first one of Adam and Adagrad goes the same way whatever the gradient's size.
      for (const std::int64_t step : {1, 2}) {
        const std::vector<float> grad(arrays.numel(), 0.25F / static_cast<float>(step));
        std::ranges::copy(stored(grad, DType::kF32), arrays.grad.begin());
        const UpdateScalars scalars{groups, 1, step};
        if (rule->needs_param_norms()) rule->prepare(context, segments, arrays.dtypes, scalars, sums, sums);
        rule->update(context, segments, arrays.dtypes, scalars);
      }
      return widened(arrays.master, DType::kF32);
    };
    const GroupScalars a{1e-2, 0.1}, b{1e-3, 0.1}, c{1e-2, 0};
    const auto together = run({a, b, c}, {2, 0, 1});
    const auto alone = [&](const GroupScalars& group) { return run({group}, {0})[0]; };
    CHECK(together[0] == alone(c));
    CHECK(together[4096] == alone(a));
    CHECK(together[8192] == alone(b));
    CHECK(alone(a) != alone(b));
    CHECK(alone(a) != alone(c));
  }
}

TEST_CASE("LAMB's trust ratio is that of the norms, within its bounds, and 1 where a norm is 0") {
  OptimizerOptions options;
  options.type = OptimizerType::kLamb;
  const auto rule = make_optimizer_rule(options);
  CHECK(rule->trust_ratio(3, 2) == 1.5F);
  CHECK(rule->trust_ratio(1, 1000) == 0.01F);
  CHECK(rule->trust_ratio(1000, 1) == 10.0F);
  CHECK(rule->trust_ratio(0, 1) == 1.0F);
  CHECK(rule->trust_ratio(1, 0) == 1.0F);
  const auto adamw_rule = make_optimizer_rule({});
  CHECK_FALSE(adamw_rule->needs_param_norms());
  ThreadPool pool(1);
  CHECK(code_of([&] { adamw_rule->prepare({Device{}, &pool, best_cpu_isa()}, {}, {}, {}, {}, {}); }) ==
        "invalid_argument");
}

TEST_CASE("optimizer options out of their range are refused by the field's name") {
  using O = OptimizerOptions;
  using enum OptimizerType;
  const auto check = [](OptimizerType type, const char* field, const std::function<void(O&)>& change) {
    const std::string message = message_of(change, type);
    CAPTURE(message);
    CHECK(message.starts_with("invalid_argument optimizer " + std::string(name_of(type))));
    CHECK(message.find(field) != std::string::npos);
  };
  for (const auto type : kOptimizerTypes) {
    CHECK(message_of([](O&) {}, type) == "none");
    check(type, "weight_decay", [](O& o) { o.weight_decay = -0.1; });
    check(type, "ema.decay", [](O& o) { o.ema.decay = 1; });
    check(type, "ema.decay", [](O& o) { o.ema.decay = -0.1; });
    check(type, "weight_decay", [](O& o) { o.weight_decay = std::numeric_limits<double>::quiet_NaN(); });
  }
  for (const auto type : {kAdamW, kAdam, kLamb, kLion}) {
    check(type, "betas", [](O& o) { o.beta1 = 1; });
    check(type, "betas", [](O& o) { o.beta2 = -0.1; });
    check(type, "betas", [](O& o) { o.beta2 = 1 - 1e-12; });  // 1 in fp32
  }
  for (const auto type : {kAdamW, kAdam, kLamb, kAdagrad}) {
    check(type, "eps", [](O& o) { o.eps = 0; });
    check(type, "eps", [](O& o) { o.eps = 1e-60; });  // 0 in fp32
  }
  check(kLamb, "min_coeff", [](O& o) { o.min_coeff = 20; });
  check(kLamb, "min_coeff", [](O& o) { o.min_coeff = 0; });
  check(kAdagrad, "lr_decay", [](O& o) { o.lr_decay = -1; });
  check(kAdagrad, "initial_accumulator_value", [](O& o) { o.initial_accumulator_value = -1; });
  check(kSgd, "momentum", [](O& o) { o.momentum = 1; });
  check(kSgd, "momentum", [](O& o) { o.momentum = 1e-60; });
  check(kSgd, "dampening", [](O& o) { o.dampening = 1.5; });
  check(kSgd, "nesterov", [](O& o) { o.nesterov = true, o.dampening = 0.1; });
  check(kSgd, "nesterov", [](O& o) { o.nesterov = true, o.momentum = 0; });
}

TEST_CASE("optimizers and their states have names, and keep the states that they should") {
  using enum StateId;
  const auto states_of = [](
                             const char* name, const std::function<void(OptimizerOptions&)>& change = [](auto&) {}) {
    OptimizerOptions options;
    options.type = optimizer_type_from_name(name);
    CHECK(std::string(name_of(options.type)) == name);
    change(options);
    const auto rule = make_optimizer_rule(options);
    return std::vector<StateId>(rule->states().begin(), rule->states().end());
  };
  CHECK(states_of("adamw") == std::vector{kMaster, kExpAvg, kExpAvgSq});
  CHECK(states_of("adam") == std::vector{kMaster, kExpAvg, kExpAvgSq});
  CHECK(states_of("lamb") == std::vector{kMaster, kExpAvg, kExpAvgSq});
  CHECK(states_of("lion") == std::vector{kMaster, kExpAvg});
  CHECK(states_of("adagrad") == std::vector{kMaster, kSum});
  CHECK(states_of("sgd") == std::vector{kMaster, kMomentumBuffer});
  CHECK(states_of("sgd", [](OptimizerOptions& o) { o.momentum = 0; }) == std::vector{kMaster});
  const auto with_ema = [](OptimizerOptions& o) { o.ema.decay = 0.5; };
  CHECK(states_of("adamw", with_ema) == std::vector{kMaster, kExpAvg, kExpAvgSq, kEma});
  CHECK(states_of("sgd", with_ema) == std::vector{kMaster, kMomentumBuffer, kEma});
  CHECK(code_of([] { optimizer_type_from_name("adafactor"); }) == "invalid_argument");
  for (const auto id : {kMaster, kExpAvg, kExpAvgSq, kMomentumBuffer, kSum, kEma})
    CHECK(state_from_name(name_of(id)) == id);
  CHECK(std::string(name_of(kMomentumBuffer)) == "momentum_buffer");
  CHECK(code_of([] { state_from_name("exp_avg_cube"); }) == "invalid_argument");
}
