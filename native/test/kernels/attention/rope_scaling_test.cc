#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"
#include "kernels/attention/rope.h"
#include "test/kernels/every_path.h"
#include "test/kernels/golden_facts.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

RopeScaling scaling_of(const GoldenFacts& facts) {
  const std::vector<std::string>& words = facts.words.at("scaling");
  const auto number = [&](std::size_t i) { return std::stod(words.at(i)); };
  RopeScaling scaling;
  scaling.type = words.at(0) == "linear"     ? RopeScalingType::kLinear
                 : words.at(0) == "llama3"   ? RopeScalingType::kLlama3
                 : words.at(0) == "longrope" ? RopeScalingType::kLongrope
                                             : RopeScalingType::kYarn;
  if (scaling.type == RopeScalingType::kLongrope) {
    scaling.short_factor = facts.numbers("short_factor");
    scaling.long_factor = facts.numbers("long_factor");
  }
  scaling.factor = number(1);
  scaling.low_freq_factor = number(2);
  scaling.high_freq_factor = number(3);
  scaling.original_max_position_embeddings = static_cast<std::int64_t>(number(4));
  scaling.beta_fast = number(5);
  scaling.beta_slow = number(6);
  scaling.attention_factor = number(7);
  scaling.truncate = number(8) != 0;
  scaling.mscale = number(9);
  scaling.mscale_all_dim = number(10);
  return scaling;
}

RopeScaling of_type(RopeScalingType type) {
  RopeScaling scaling;
  scaling.type = type;
  scaling.factor = 2;
  scaling.original_max_position_embeddings = 64;
  return scaling;
}

}  // namespace

TEST_CASE("scaled rotary frequencies are those of transformers") {
  const std::vector<GoldenFacts> cases = read_golden_facts("rope_scaling.txt");
  REQUIRE(cases.size() == 13);
  for (const GoldenFacts& facts : cases) {
    CAPTURE(facts.name);
    const std::vector<double> base = facts.numbers("base"), expected = facts.numbers("frequencies");
    const auto length = static_cast<std::int64_t>(facts.numbers("positions").back()) + 1;
    const RopeFrequencies actual =
        rope_frequencies(static_cast<std::int64_t>(base[0]), base[1], scaling_of(facts), length);
    CHECK(actual.attention_factor == static_cast<float>(facts.numbers("attention_factor")[0]));
    REQUIRE(actual.radians.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      // torch's own power is off by a unit in the last position here and there.
      CHECK(static_cast<double>(actual.radians[i]) == doctest::Approx(expected[i]).epsilon(2e-7));
    }
  }
}

TEST_CASE("scaled angles are those of transformers, also beyond the length of the first training") {
  Machine machine(best_cpu_isa(), 1);
  for (const GoldenFacts& facts : read_golden_facts("rope_scaling.txt")) {
    CAPTURE(facts.name);
    const std::vector<double> base = facts.numbers("base"), positions = facts.numbers("positions");
    const std::vector<double> cosine = facts.numbers("cosine"), sine = facts.numbers("sine");
    const std::vector<double> frequencies = facts.numbers("frequencies");
    const double attention_factor = facts.numbers("attention_factor")[0];
    const auto head_dim = static_cast<std::int64_t>(base[0]);
    const auto num_positions = static_cast<std::int64_t>(positions.back()) + 1;
    const RopeTable table(machine.ctx, num_positions, head_dim, base[1], scaling_of(facts));
    const auto half = static_cast<std::size_t>(head_dim / 2);
    for (std::size_t i = 0; i < positions.size(); ++i) {
      for (std::size_t pair = 0; pair < half; ++pair) {
        // A frequency may differ by a unit in the last position, which the position multiplies.
        const double tolerance = attention_factor * (2e-7 + 1.2e-7 * positions[i] * frequencies[pair]);
        const std::size_t at = static_cast<std::size_t>(positions[i]) * half + pair;
        CAPTURE(positions[i]);
        CAPTURE(pair);
        CHECK(std::abs(static_cast<double>(table.cosine()[at]) - cosine[i * half + pair]) <= tolerance);
        CHECK(std::abs(static_cast<double>(table.sine()[at]) - sine[i * half + pair]) <= tolerance);
      }
    }
  }
}

TEST_CASE("without a yarn attention factor it is that of transformers, by factor and mscale") {
  RopeScaling scaling = of_type(RopeScalingType::kYarn);
  const auto is = [&](double expected) {
    return rope_frequencies(8, 100.0, scaling).attention_factor == static_cast<float>(expected);
  };
  scaling.factor = 4;
  CHECK(is(0.1 * std::log(4) + 1));
  scaling.mscale = 2;
  CHECK(is(0.1 * std::log(4) + 1));  // both, or none
  scaling.mscale_all_dim = 0.5;
  CHECK(is((0.2 * std::log(4) + 1) / (0.05 * std::log(4) + 1)));
  scaling.attention_factor = 0.5;
  CHECK(is(0.5));
}

TEST_CASE("longrope: the length decides the factors of all positions; a table for any lengths has both") {
  Machine machine(best_cpu_isa(), 1);
  RopeScaling scaling = of_type(RopeScalingType::kLongrope);
  scaling.short_factor = {1, 1.5};
  scaling.long_factor = {2, 4};
  const RopeTable within(machine.ctx, 64, 4, 100.0, scaling), beyond(machine.ctx, 65, 4, 100.0, scaling),
      both(machine.ctx, 65, 4, 100.0, scaling, RopeTable::Lengths::kOwn),
      short_only(machine.ctx, 64, 4, 100.0, scaling, RopeTable::Lengths::kOwn);
  CHECK(within.num_rows() == 64);
  CHECK(beyond.num_rows() == 65);
  CHECK(beyond.first_row(65) == 0);
  CHECK(short_only.num_rows() == 64);
  REQUIRE(both.num_rows() == 129);
  CHECK(both.first_row(64) == 0);
  CHECK(both.first_row(65) == 64);
  CHECK(within.cosine()[2 * 5] != beyond.cosine()[2 * 5]);
  const auto rows = both.sine();
  CHECK(std::ranges::equal(rows.first(2 * 64), within.sine()));
  CHECK(std::ranges::equal(rows.subspan(2 * 64), beyond.sine()));
  CHECK(std::ranges::equal(short_only.sine(), within.sine()));
  CHECK(within.cosine()[0] == static_cast<float>(std::sqrt(1 + std::log(2) / std::log(64))));
}

TEST_CASE("a table of rotary angles has the scaled frequencies and the attention factor in it") {
  Machine machine(best_cpu_isa(), 1);
  RopeScaling scaling = of_type(RopeScalingType::kYarn);
  scaling.attention_factor = 1.5;
  const RopeTable table(machine.ctx, 100, 8, 100.0, scaling);
  const RopeFrequencies frequencies = rope_frequencies(8, 100.0, scaling);
  for (std::size_t position = 0; position < 100; ++position) {
    for (std::size_t i = 0; i < 4; ++i) {
      const auto angle = static_cast<double>(static_cast<float>(position) * frequencies.radians[i]);
      CHECK(static_cast<double>(table.cosine()[position * 4 + i]) ==
            doctest::Approx(1.5 * std::cos(angle)).epsilon(2e-7));
      CHECK(static_cast<double>(table.sine()[position * 4 + i]) ==
            doctest::Approx(1.5 * std::sin(angle)).epsilon(2e-7));
    }
  }
}

DEVICE_TEST_CASE("rope rotates each row by its given position; a row's result depends on its position alone") {
  on_every_device([](const Context& ctx, DType dtype) {
    const RopeTable table(ctx, 16, 10, 500.0);
    std::mt19937 random(89);
    const HostMatrix x = HostMatrix::random(dtype, 70, 20, random, 2);
    SharedValues<std::int32_t> values(70);
    for (int row = 0; row < 70; ++row) values[static_cast<std::size_t>(row)] = row * 7 % 16;
    const Indices positions{values, values.data()};
    HostMatrix rotated = x;
    rope(ctx, {rotated.view(), &table, 2, 0, false, positions});
    for (std::int64_t row = 0; row < 70; ++row) {
      HostMatrix alone(dtype, 16, 20);  // the row at every position of a sequence
      for (std::int64_t i = 0; i < 16; ++i) {
        for (std::int64_t j = 0; j < 20; ++j) alone.set(i, j, static_cast<float>(x.at(row, j)));
      }
      rope(ctx, {alone.view(), &table, 2, 16});
      synchronize(ctx);
      for (std::int64_t j = 0; j < 20; ++j) REQUIRE(rotated.at(row, j) == alone.at(row * 7 % 16, j));
    }
    rope(ctx, {rotated.view(), &table, 2, 0, true, positions});
    synchronize(ctx);
    CHECK(relative_error(rotated, table_of(x)) < 2 * tolerance(dtype));
  });
}

TEST_CASE("rope refuses positions and scalings that make no sense") {
  Machine machine(best_cpu_isa(), 1);
  const RopeTable table(machine.ctx, 16, 10, 500.0);
  HostMatrix x(DType::kF32, 2, 10);
  const std::vector<std::int32_t> good{15, 0}, beyond{16, 0}, negative{-1, 0}, few{3};
  rope(machine.ctx, {x.view(), &table, 1, 0, false, good});
  for (const auto* positions : {&beyond, &negative, &few}) {
    CHECK_THROWS_AS(rope(machine.ctx, {x.view(), &table, 1, 0, false, *positions}), Error);
  }
  const auto refused = [](const RopeScaling& scaling) { CHECK_THROWS_AS(rope_frequencies(8, 100.0, scaling), Error); };
  RopeScaling scaling = of_type(RopeScalingType::kLinear);
  scaling.factor = 0.5;
  refused(scaling);
  scaling = of_type(RopeScalingType::kLlama3);
  scaling.high_freq_factor = scaling.low_freq_factor;
  refused(scaling);
  scaling = of_type(RopeScalingType::kYarn);
  scaling.original_max_position_embeddings = 0;
  refused(scaling);
  scaling = of_type(RopeScalingType::kYarn);
  scaling.beta_fast = 0.5;
  refused(scaling);
  scaling = of_type(RopeScalingType::kLongrope);
  refused(scaling);
  scaling.short_factor = scaling.long_factor = {1, 1, 1, 0};
  refused(scaling);
  scaling = of_type(RopeScalingType::kYarn);
  scaling.mscale = -1;
  refused(scaling);
  CHECK_THROWS_AS(rope_frequencies(7, 100.0, {}), Error);
}
