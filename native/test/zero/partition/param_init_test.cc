#include "zero/partition/param_init.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numbers>
#include <vector>

#include "test/devices_here.h"
#include "test/zero/fake_job.h"
#include "test/zero/full_state.h"
#include "zero/partition/digest.h"
#include "zero/partition/shard_layout.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

const ParamSpec kSpec{"w", {1000, 200}, ParamGroup::kDecay, ParamInit::kNormal, 0.02F};

std::vector<float> init(std::uint64_t seed, std::size_t param, std::int64_t begin, std::size_t count) {
  std::vector<float> values(count);
  init_param(kSpec, seed, param, begin, values);
  return values;
}

}  // namespace

TEST_CASE("initial values are those of Box and Muller by the C library") {
  const auto values = init(9, 4, 0, 40000);
  for (std::size_t i = 0; i < values.size(); i += 2) {
    const auto bits = philox(9, {static_cast<std::uint32_t>(i / 4), 0, 4, 0});
    const double radius = std::sqrt(-2 * std::log(uniform_open(bits[i % 4])));
    const double angle = 2 * std::numbers::pi * uniform_open(bits[i % 4 + 1]);
    const auto about = [&](double number) { return doctest::Approx(0.02F * number).epsilon(1e-6).scale(1e-6); };
    CHECK(static_cast<double>(values[i]) == about(radius * std::cos(angle)));
    CHECK(static_cast<double>(values[i + 1]) == about(radius * std::sin(angle)));
  }
}

TEST_CASE("initial values have the stated mean and deviation") {
  const auto values = init(1, 0, 0, 200000);
  double sum = 0, sum_squares = 0;
  for (const float value : values) {
    sum += static_cast<double>(value);
    sum_squares += static_cast<double>(value) * static_cast<double>(value);
  }
  CHECK(std::abs(sum / 200000) < 0.02 * 0.01);
  CHECK(std::sqrt(sum_squares / 200000) == doctest::Approx(0.02).epsilon(0.01));
}

TEST_CASE("an element's initial value depends on seed, parameter and element only") {
  const auto all = init(1, 2, 0, 1000);
  for (const std::int64_t begin : {1, 2, 3, 4, 513}) {
    const auto part = init(1, 2, begin, 101);
    CHECK(std::equal(part.begin(), part.end(), all.begin() + begin));
  }
  CHECK(init(2, 2, 0, 1000) != all);
  CHECK(init(1, 3, 0, 1000) != all);
}

TEST_CASE("a parameter of more elements than are initialized at a time has all of its initial values") {
  FakeJob job;
  job.specs = {kSpec, {"large", {1000, 700}, ParamGroup::kDecay, ParamInit::kNormal, 0.02F}};
  job.options.bucket_bytes = 1 << 24;  // so that each rank has one long piece
  FullState state(job.specs);
  std::mutex mutex;
  job.on_ranks(2, [&](ZeroOptimizer& zero, Communicator&) {
    zero.initialize(5);
    const std::lock_guard lock(mutex);
    state.save(zero);
  });
  for (std::size_t param = 0; param < job.specs.size(); ++param) {
    std::vector<float> expected(static_cast<std::size_t>(job.specs[param].numel()));
    init_param(job.specs[param], 5, param, 0, expected);
    CHECK(state.array(StateId::kMaster, param) == expected);
  }
}

TEST_CASE("norm weights begin at one, biases at zero") {
  std::vector<float> values(10);
  init_param({"norm", {10}, ParamGroup::kNoDecay, ParamInit::kOnes}, 1, 0, 0, values);
  CHECK(values == std::vector<float>(10, 1.0F));
  init_param({"bias", {10}, ParamGroup::kNoDecay, ParamInit::kZeros}, 1, 0, 0, values);
  CHECK(values == std::vector<float>(10, 0.0F));
}

TEST_CASE("digests add up in any order and see values, positions and states") {
  ThreadPool one(1), three(3);
  const Context context{Device{}, &one, best_cpu_isa()};
  const auto values = init(1, 0, 0, 5 * kBlockNumel);
  const std::span<const float> all(values);
  const Digest128 whole = digest_blocks(context, 1, 10, all);
  CHECK(digest_blocks({Device{}, &three, best_cpu_isa()}, 1, 10, all) == whole);
  for (const Device device : devices_here()) {
    DeviceMachine machine(device);
    DeviceArray there(machine.ctx, values);
    CHECK(digest_blocks(machine.ctx, 1, 10, there.span()) == whole);
  }
  Digest128 sum = digest_blocks(context, 1, 12, all.subspan(2 * kBlockNumel));
  sum += digest_blocks(context, 1, 10, all.first(2 * kBlockNumel));
  CHECK(sum == whole);
  CHECK(digest_blocks(context, 2, 10, all) != whole);
  CHECK(digest_blocks(context, 1, 11, all) != whole);
  auto changed = values;
  changed[7777] = -changed[7777];
  CHECK(digest_blocks(context, 1, 10, changed) != whole);
  CHECK(code_of([&] { digest_blocks(context, 1, 0, all.first(100)); }) == "invalid_argument");
}

TEST_CASE("a digest is a number mod 2^128, written as 32 hexadecimal digits") {
  Digest128 sum{~std::uint64_t{0}, 0x12};
  sum += {2, 0xab00000000000000};
  CHECK(sum.to_hex() == "ab000000000000130000000000000001");
  sum += {0, 0x54ffffffffffffff};
  CHECK(sum.to_hex() == "00000000000000120000000000000001");
}
