// Some steps of every optimizer against PyTorch, or a reference in fp64: see golden/make_golden_zero.py.
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "test/built_files.h"
#include "test/zero/fake_job.h"
#include "test/zero/optimizer_arrays.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

using Numbers = std::vector<double>;

/// "name number number …" per line, numbers in hexadecimal floating point.
std::map<std::string, Numbers> read_golden_optimizers() {
  std::ifstream file(golden_dir() + "/optimizers.txt");
  REQUIRE(file.good());
  std::map<std::string, Numbers> arrays;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name, word;
    words >> name;
    while (words >> word) arrays[name].push_back(std::strtod(word.c_str(), nullptr));
  }
  return arrays;
}

struct Case {
  const std::map<std::string, Numbers>& golden;
  std::string name;

  bool has(const std::string& what) const { return golden.contains(name + "." + what); }
  const Numbers& numbers(const std::string& what) const { return golden.at(name + "." + what); }
  void take(const char* what, double& option) const {
    if (has(what)) option = numbers(what).at(0);
  }

  OptimizerOptions options() const {
    OptimizerOptions o;
    o.type = optimizer_type_from_name(name.substr(0, name.find('_')));
    take("weight_decay", o.weight_decay);
    take("beta1", o.beta1);
    take("beta2", o.beta2);
    take("eps", o.eps);
    take("momentum", o.momentum);
    take("dampening", o.dampening);
    take("lr_decay", o.lr_decay);
    take("initial_accumulator_value", o.initial_accumulator_value);
    take("min_coeff", o.min_coeff);
    take("max_coeff", o.max_coeff);
    take("ema_decay", o.ema.decay);
    o.nesterov = has("nesterov") && numbers("nesterov").at(0) != 0;
    if (name == "lamb_step_size") o.bias_correction = BiasCorrection::kStepSize;
    if (name == "lamb_uncorrected") o.bias_correction = BiasCorrection::kNone;
    return o;
  }

  /// fp32 rounds by 2^-24 of a parameter of magnitude 3 at most, a few times per step; 8 steps.
  void check_path(const char* what, std::size_t step, const std::vector<float>& params) const {
    if (!has(what)) return;
    for (std::size_t i = 0; i < params.size(); ++i) {
      const double expected = numbers(what)[step * params.size() + i];
      CHECK(static_cast<double>(params[i]) == doctest::Approx(expected).epsilon(1e-6).scale(1));
    }
  }
};

/// Follows the case from its first to its last step on one instruction-set path.
void follow(const Case& golden_case, CpuIsa isa) {
  const Numbers& grads = golden_case.golden.at("grads");
  const std::size_t numel = golden_case.golden.at("initial").size();
  // A single block, because LAMB sums over blocks; the rest is padding.
  std::vector<float> initial(static_cast<std::size_t>(kBlockNumel), 0.0F);
  if (golden_case.name != "lamb_from_zero") {
    for (std::size_t i = 0; i < numel; ++i) initial[i] = static_cast<float>(golden_case.golden.at("initial")[i]);
  }
  const auto rule = make_optimizer_rule(golden_case.options());
  const GroupScalars group{golden_case.numbers("lr").at(0), golden_case.options().weight_decay};
  OptimizerArrays arrays(*rule, {.params = DType::kF32}, initial);
  ThreadPool pool(1);
  for (std::size_t step = 0; step < grads.size() / numel; ++step) {
    std::vector<float> grad(initial.size(), 0.0F);
    // Handed in as a sum of two leaves, which the factor turns back.
    for (std::size_t i = 0; i < numel; ++i) grad[i] = static_cast<float>(grads[step * numel + i]) * 2;
    arrays.grad = stored(grad, DType::kF32);
    UpdateSegment segment = arrays.segment({0, kBlockNumel});
    run_rule(*rule, {Device{}, &pool, isa}, {&segment, 1}, arrays.dtypes,
             {{&group, 1}, 0.5F, static_cast<std::int64_t>(step) + 1});
    CHECK(arrays.params == arrays.master);
    auto params = widened(arrays.params, DType::kF32);
    params.resize(numel);
    golden_case.check_path("path_fp64", step, params);
    golden_case.check_path("path_fp32", step, params);
  }
  // Relative, because states of small gradients are small; loose, because an L2 term may cancel most of a gradient.
  for (std::size_t state = 0; state < arrays.states.size(); ++state) {
    const Numbers& expected = golden_case.numbers(name_of(arrays.ids[state]));
    for (std::size_t i = 0; i < numel; ++i) {
      CHECK(static_cast<double>(arrays.states[state][i]) == doctest::Approx(expected[i]).epsilon(1e-4).scale(0));
    }
  }
}

}  // namespace

TEST_CASE("every optimizer follows PyTorch, or where it has none a reference in fp64") {
  const auto golden = read_golden_optimizers();
  for (const char* name :
       {"adamw", "adam", "adagrad", "sgd", "sgd_momentum", "sgd_nesterov", "lion", "lamb", "lamb_bounded",
        "lamb_from_zero", "lamb_step_size", "lamb_uncorrected", "adamw_ema", "sgd_ema", "lamb_ema"}) {
    CAPTURE(name);
    for (const CpuIsa isa : available_isas()) follow({golden, name}, isa);
  }
}
