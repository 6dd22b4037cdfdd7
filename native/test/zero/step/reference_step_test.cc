// Whole steps against a plain implementation in fp64: mean over all targets, clipping by global norm, AdamW.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <vector>

#include "test/zero/fake_job.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

struct Reference {
  const FakeJob& job;
  std::vector<std::vector<double>> master, exp_avg, exp_avg_sq;

  explicit Reference(const FakeJob& fake_job) : job(fake_job) {
    for (const ParamSpec& spec : job.specs) {
      master.emplace_back(static_cast<std::size_t>(spec.numel()), 0.0);
      exp_avg.push_back(master.back());
      exp_avg_sq.push_back(master.back());
    }
  }

  /// Gradient of the mean loss over the step's targets (60 per leaf).
  double mean_grad(std::int64_t step, std::size_t param, std::int64_t element) const {
    double sum = 0;
    for (std::int64_t leaf = 0; leaf < job.options.num_leaves; ++leaf) {
      sum += static_cast<double>(job.grad(step, leaf, param, element)) / job.options.grad_unit;
    }
    return sum / (60.0 * static_cast<double>(job.options.num_leaves));
  }

  void step(std::int64_t number) {
    double sum_squares = 0;
    std::vector<std::vector<double>> grads(master.size());
    for (std::size_t param = 0; param < master.size(); ++param) {
      for (std::size_t e = 0; e < master[param].size(); ++e) {
        grads[param].push_back(mean_grad(number, param, static_cast<std::int64_t>(e)));
        sum_squares += grads[param].back() * grads[param].back();
      }
    }
    const double max_norm = static_cast<double>(job.options.gradient_clipping);
    const double clip = max_norm == 0 ? 1.0 : std::min(1.0, max_norm / (std::sqrt(sum_squares) + 1e-6));
    for (std::size_t param = 0; param < master.size(); ++param) {
      for (std::size_t e = 0; e < master[param].size(); ++e) update(number, param, e, grads[param][e] * clip);
    }
  }

  void update(std::int64_t number, std::size_t param, std::size_t e, double g) {
    constexpr double kLr = 1e-2;  // as FakeJob::run_step has it
    const OptimizerOptions& o = job.options.optimizer;
    const double t = static_cast<double>(number) + 1;
    double& p = master[param][e];
    if (job.specs[param].group == ParamGroup::kDecay) p *= 1 - kLr * o.weight_decay;
    exp_avg[param][e] = o.beta1 * exp_avg[param][e] + (1 - o.beta1) * g;
    exp_avg_sq[param][e] = o.beta2 * exp_avg_sq[param][e] + (1 - o.beta2) * g * g;
    const double m_hat = exp_avg[param][e] / (1 - std::pow(o.beta1, t));
    const double v_hat = exp_avg_sq[param][e] / (1 - std::pow(o.beta2, t));
    p -= kLr * m_hat / (std::sqrt(v_hat) + o.eps);
  }
};

}  // namespace

TEST_CASE("three steps on three ranks follow the reference in fp64, with clipping on and off") {
  for (const float clipping : {0.0F, 0.5F}) {
    FakeJob job;
    job.options.reduce_dtype = DType::kF32;
    job.options.num_leaves = 4;
    job.options.gradient_clipping = clipping;
    Reference reference(job);
    std::mutex mutex;
    double largest_error = 0;
    job.on_ranks(3, [&](ZeroOptimizer& zero, Communicator& comm) {
      zero.initialize(5);
      const auto for_each_master = [&](auto&& body) {
        const std::lock_guard lock(mutex);
        for (const StateRange& range : zero.state_ranges()) {
          if (range.state != StateId::kMaster) continue;
          std::vector<float> values(static_cast<std::size_t>(range.elements.size()));
          zero.copy_state(range.state, range.param, range.elements.begin, values);
          for (std::size_t i = 0; i < values.size(); ++i) {
            body(reference.master[range.param][static_cast<std::size_t>(range.elements.begin) + i], values[i]);
          }
        }
      };
      for_each_master([](double& expected, float value) { expected = static_cast<double>(value); });
      comm.barrier();
      for (int step = 0; step < 3; ++step) {
        const StepSummary summary = job.run_step(zero, step);
        if (clipping > 0) CHECK(summary.grad_norm > static_cast<double>(clipping));  // clipping is at work
        if (comm.rank() == 0) reference.step(step);
        comm.barrier();
      }
      for_each_master([&](double expected, float value) {
        largest_error = std::max(largest_error, std::abs(expected - static_cast<double>(value)));
      });
    });
    CHECK(largest_error < 2e-6);  // three updates of 1e-2 each
  }
}
