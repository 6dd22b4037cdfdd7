#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/adamw.h"
#include "test/zero/fake_job.h"
#include "zero/optimizer_rule.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

/// "name number number …" per line, numbers in hexadecimal floating point.
std::map<std::string, std::vector<double>> read_golden(const std::string& file_name) {
  std::ifstream file(std::string(ZF_GOLDEN_DIR) + "/" + file_name);
  REQUIRE(file.good());
  std::map<std::string, std::vector<double>> arrays;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name, word;
    words >> name;
    while (words >> word) arrays[name].push_back(std::strtod(word.c_str(), nullptr));
  }
  return arrays;
}

/// One segment with its arrays.
struct Arrays {
  std::vector<float> master, exp_avg, exp_avg_sq, grad;
  std::vector<std::byte> params;

  explicit Arrays(std::size_t numel, DType dtype = DType::kBF16)
      : master(numel), exp_avg(numel), exp_avg_sq(numel), grad(numel), params(numel * size_of(dtype)) {}

  OptimizerSegment kernel_segment() {
    return {reinterpret_cast<std::byte*>(master.data()), {exp_avg.data(), exp_avg_sq.data()},
            reinterpret_cast<const std::byte*>(grad.data()), params.data(), static_cast<std::int64_t>(master.size()), 0};
  }
  UpdateSegment rule_segment() {
    UpdateSegment segment;
    segment.master = reinterpret_cast<std::byte*>(master.data());
    segment.states[1] = exp_avg.data();
    segment.states[2] = exp_avg_sq.data();
    segment.grad = reinterpret_cast<const std::byte*>(grad.data());
    segment.params = params.data();
    segment.numel = static_cast<std::int64_t>(master.size());
    return segment;
  }
};

Arrays random_arrays(std::size_t numel, DType dtype) {
  Arrays arrays(numel, dtype);
  for (std::size_t i = 0; i < numel; ++i) {
    const auto bits = philox(3, {static_cast<std::uint32_t>(i), 0, 0, 0});
    const auto number = [&](int k) { return static_cast<float>(uniform_open(bits[static_cast<std::size_t>(k)]) - 0.5); };
    arrays.master[i] = number(0);
    arrays.exp_avg[i] = number(1) * 0.1F;
    arrays.exp_avg_sq[i] = number(2) * number(2) * 0.01F;
    arrays.grad[i] = number(3) * std::exp2(static_cast<float>(i % 40) - 30.0F);
  }
  return arrays;
}

constexpr AdamWScalars kScalars{0.37F, 0.1F, 0.95F, 0.05F, 1e-8F, 0.9997F, 2e-3F, 1.7F};
const std::span<const AdamWScalars> kOneGroup{&kScalars, 1};

OptimizerOptions adamw_options(double beta1, double beta2, double eps, double weight_decay = 0.1) {
  OptimizerOptions options;
  options.beta1 = beta1;
  options.beta2 = beta2;
  options.eps = eps;
  options.weight_decay = weight_decay;
  return options;
}

}  // namespace

TEST_CASE("AdamW follows torch.optim.AdamW") {
  auto golden = read_golden("adamw_torch.txt");
  const auto& options = golden["options"];
  const auto rule = make_optimizer_rule(adamw_options(options[1], options[2], options[3]));
  const GroupScalars group{options[0], options[4]};
  const std::size_t numel = golden["initial"].size();
  for (const CpuIsa isa : isas_here()) {
    ThreadPool pool(1);
    Arrays arrays(numel, DType::kF32);
    for (std::size_t i = 0; i < numel; ++i) arrays.master[i] = static_cast<float>(golden["initial"][i]);
    const std::size_t num_steps = golden["grads"].size() / numel;
    for (std::size_t step = 0; step < num_steps; ++step) {
      // The gradient is handed in as a sum of two leaves, which the factor turns back.
      for (std::size_t i = 0; i < numel; ++i) arrays.grad[i] = static_cast<float>(golden["grads"][step * numel + i]) * 2;
      const UpdateSegment segment = arrays.rule_segment();
      rule->update({Device{}, &pool, isa}, {&segment, 1}, {.params = DType::kF32},
                   {{&group, 1}, 0.5F, static_cast<std::int64_t>(step) + 1});
    }
    for (std::size_t i = 0; i < numel; ++i) {
      const auto about = [](double number) { return doctest::Approx(number).epsilon(5e-6).scale(0); };
      CHECK(static_cast<double>(arrays.master[i]) == about(golden["param"][i]));
      CHECK(static_cast<double>(arrays.exp_avg[i]) == about(golden["exp_avg"][i]));
      CHECK(static_cast<double>(arrays.exp_avg_sq[i]) == about(golden["exp_avg_sq"][i]));
    }
    CHECK(std::memcmp(arrays.params.data(), arrays.master.data(), numel * sizeof(float)) == 0);
  }
}

TEST_CASE("AdamW kernel is the stated formula, with the scalars of each segment's group") {
  ThreadPool pool(1);
  AdamWScalars groups[] = {kScalars, kScalars};
  groups[1].decay_factor = 1;
  groups[1].step_size = 5e-3F;
  for (const std::size_t group : {0U, 1U}) {
    const Arrays before = random_arrays(1000, DType::kBF16);
    Arrays after = before;
    OptimizerSegment segment = after.kernel_segment();
    segment.group = group;
    adamw({Device{}, &pool, best_cpu_isa()}, {&segment, 1}, {}, groups);
    for (std::size_t i = 0; i < before.master.size(); ++i) {
      const double g = static_cast<double>(before.grad[i]) * 0.37F;
      const double m = before.exp_avg[i] + (g - before.exp_avg[i]) * 0.1F;
      const double v = before.exp_avg_sq[i] * static_cast<double>(0.95F) + g * g * 0.05F;
      const double p = static_cast<double>(before.master[i]) * (group == 0 ? 0.9997F : 1.0F) -
                       static_cast<double>(group == 0 ? 2e-3F : 5e-3F) * m / (std::sqrt(v) * 1.7F + 1e-8F);
      CHECK(static_cast<double>(after.exp_avg[i]) == doctest::Approx(m).epsilon(1e-6));
      CHECK(static_cast<double>(after.exp_avg_sq[i]) == doctest::Approx(v).epsilon(1e-6));
      CHECK(static_cast<double>(after.master[i]) == doctest::Approx(p).epsilon(1e-6));
      bf16 param;
      std::memcpy(&param, after.params.data() + 2 * i, 2);
      CHECK(param.bits == to_bf16(after.master[i]).bits);
    }
  }
}

TEST_CASE("AdamW gives equal bits on every path, for every cut into segments and any number of threads") {
  for (const DType dtype : {DType::kBF16, DType::kF32}) {
    const std::size_t numel = 100003;  // more than three tiles and an odd end
    const Arrays start = random_arrays(numel, dtype);
    Arrays expected = start;
    ThreadPool one(1), three(3);
    const OptimizerSegment whole = expected.kernel_segment();
    adamw({Device{}, &one, CpuIsa::kGeneric}, {&whole, 1}, {.params = dtype}, kOneGroup);
    for (const CpuIsa isa : isas_here()) {
      Arrays cut = start;
      std::vector<OptimizerSegment> segments;
      for (const Range& part : {Range{0, 17}, Range{17, 70000}, Range{70000, 70000}, Range{70000, 100003}}) {
        OptimizerSegment segment = cut.kernel_segment();
        segment.master += part.begin * 4;
        segment.states[0] += part.begin;
        segment.states[1] += part.begin;
        segment.grad += part.begin * 4;
        segment.params += static_cast<std::size_t>(part.begin) * size_of(dtype);
        segment.numel = part.size();
        segments.push_back(segment);
      }
      adamw({Device{}, &three, isa}, segments, {.params = dtype}, kOneGroup);
      CHECK(cut.master == expected.master);
      CHECK(cut.exp_avg == expected.exp_avg);
      CHECK(cut.exp_avg_sq == expected.exp_avg_sq);
      CHECK(cut.params == expected.params);
    }
  }
}

TEST_CASE("AdamW leaves zero padding zero") {
  ThreadPool pool(1);
  Arrays arrays(64, DType::kBF16);
  const OptimizerSegment segment = arrays.kernel_segment();
  adamw({Device{}, &pool, best_cpu_isa()}, {&segment, 1}, {}, kOneGroup);
  CHECK(arrays.master == std::vector<float>(64, 0.0F));
  CHECK(arrays.params == std::vector<std::byte>(128));
}

TEST_CASE("AdamW refuses what cannot work") {
  ThreadPool pool(1);
  const Context context{Device{}, &pool, best_cpu_isa()};
  AdamWScalars no_eps = kScalars;
  no_eps.eps = 0;
  CHECK(code_of([&] { adamw(context, {}, {}, {&no_eps, 1}); }) == "invalid_argument");
  const Context cuda{{DeviceKind::kCuda, 0}, &pool, best_cpu_isa()};
  CHECK(code_of([&] { adamw(cuda, {}, {}, kOneGroup); }) == "device_unavailable");

  Arrays arrays(8);
  const auto code_with = [&](const OptimizerDTypes& dtypes, const std::function<void(OptimizerSegment&)>& change) {
    OptimizerSegment segment = arrays.kernel_segment();
    change(segment);
    return code_of([&] { adamw(context, {&segment, 1}, dtypes, kOneGroup); });
  };
  CHECK(code_with({}, [](OptimizerSegment&) {}) == "none");
  CHECK(code_with({.master = DType::kBF16}, [](OptimizerSegment&) {}) == "invalid_argument");
  CHECK(code_with({}, [](OptimizerSegment& s) { s.numel = -1; }) == "invalid_argument");
  CHECK(code_with({}, [](OptimizerSegment& s) { s.group = 1; }) == "invalid_argument");
  CHECK(code_with({}, [](OptimizerSegment& s) { s.master = nullptr; }) == "invalid_argument");
  CHECK(code_with({}, [](OptimizerSegment& s) { s.grad = nullptr; }) == "invalid_argument");
  CHECK(code_with({}, [](OptimizerSegment& s) { s.states[1] = nullptr; }) == "invalid_argument");
  CHECK(code_with({}, [](OptimizerSegment& s) { s.params = nullptr; }) == "none");

  CHECK(code_of([] { make_optimizer_rule(adamw_options(1.0, 0.95, 1e-8)); }) == "invalid_argument");
  CHECK(code_of([] { make_optimizer_rule(adamw_options(0.9, -0.1, 1e-8)); }) == "invalid_argument");
  CHECK(code_of([] { make_optimizer_rule(adamw_options(0.9, 0.95, 0)); }) == "invalid_argument");
  CHECK(code_of([] { make_optimizer_rule(adamw_options(0.9, 0.95, 1e-8, -1)); }) == "invalid_argument");
}
