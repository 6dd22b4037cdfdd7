#include "train/lr_schedule.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "core/error.h"
#include "train/overrides.h"

using namespace zerofleet;

namespace {

bool is_refused(const std::function<void(LrSchedule&)>& change) {
  LrSchedule schedule{LrScheduleType::kWsd, 1.0, 0.1, 10, 100};
  schedule.decay_steps = 20;
  change(schedule);
  try {
    validate(schedule);
  } catch (const Error& error) {
    return error.code() == "invalid_argument";
  }
  return false;
}

}  // namespace

TEST_CASE("warm-up rises to the peak, decay ends at the minimum") {
  LrSchedule schedule{LrScheduleType::kCosine, 1.0, 0.1, 4, 104};
  CHECK(schedule.at(0) == doctest::Approx(0.25));
  CHECK(schedule.at(3) == doctest::Approx(1.0));
  CHECK(schedule.at(4) == doctest::Approx(1.0));
  CHECK(schedule.at(54) == doctest::Approx(0.55));
  CHECK(schedule.at(104) == doctest::Approx(0.1));
  CHECK(schedule.at(1000) == doctest::Approx(0.1));
  schedule.type = LrScheduleType::kLinear;
  CHECK(schedule.at(29) == doctest::Approx(1.0 - 0.9 * 0.25));
  schedule.type = LrScheduleType::kConstant;
  CHECK(schedule.at(99) == 1.0);
}

TEST_CASE("rates have the same bits on every machine") {
  std::uint64_t bits = 0;
  for (const WarmupType warmup : {WarmupType::kLinear, WarmupType::kLog}) {
    LrSchedule schedule{LrScheduleType::kCosine, 3e-4, 3e-5, 2000, 100'000};
    schedule.warmup_type = warmup;
    for (std::int64_t step = 0; step < 100'000; ++step) {
      bits = (bits ^ std::bit_cast<std::uint64_t>(schedule.at(step))) * 0x100000001b3;
    }
  }
  CHECK(bits == 5703473928288973637U);
}

TEST_CASE("linear warm-up from zero has the bits of the plain proportion") {
  for (const double peak : {3e-4, 1e-3, 0.7, 1.0 / 3}) {
    const LrSchedule schedule{LrScheduleType::kCosine, peak, 0.0, 37, 1000};
    for (std::int64_t step = 0; step < 37; ++step)
      CHECK(schedule.at(step) == peak * static_cast<double>(step + 1) / 37.0);
  }
}

TEST_CASE("warm-up from a start rate, linear and logarithmic") {
  LrSchedule schedule{LrScheduleType::kConstant, 1.0, 0.0, 10, 100};
  schedule.warmup_start_lr = 0.2;
  CHECK(schedule.at(0) == doctest::Approx(0.28));
  CHECK(schedule.at(9) == doctest::Approx(1.0));
  schedule.warmup_type = WarmupType::kLog;
  // Same as DeepSpeed's WarmupLR: start + (peak - start) · log(i + 1) / log(warmup_steps).
  CHECK(schedule.at(0) == 0.2);
  CHECK(schedule.at(1) == doctest::Approx(0.2 + 0.8 * 0.3010299956639812));
  CHECK(schedule.at(4) == doctest::Approx(0.2 + 0.8 * 0.6989700043360189));
  CHECK(schedule.at(9) == doctest::Approx(1.0));
  CHECK(schedule.at(10) == 1.0);
  schedule.warmup_steps = 1;
  CHECK(schedule.at(0) == 0.2);
  CHECK(schedule.at(1) == 1.0);
}

TEST_CASE("wsd stays at the peak until its last decay") {
  LrSchedule schedule{LrScheduleType::kWsd, 1.0, 0.1, 10, 100};
  schedule.decay_steps = 20;
  CHECK(schedule.at(4) == doctest::Approx(0.5));
  CHECK(schedule.at(9) == 1.0);
  CHECK(schedule.at(79) == 1.0);
  CHECK(schedule.at(80) == 1.0);
  CHECK(schedule.at(81) == doctest::Approx(1.0 - 0.9 / 20));
  CHECK(schedule.at(90) == doctest::Approx(0.55));
  CHECK(schedule.at(100) == doctest::Approx(0.1));
  CHECK(schedule.at(500) == doctest::Approx(0.1));
}

TEST_CASE("schedules are known by name, and invalid ones are refused") {
  CHECK(lr_schedule_type_from_name("linear") == LrScheduleType::kLinear);
  CHECK(lr_schedule_type_from_name("wsd") == LrScheduleType::kWsd);
  CHECK_THROWS_AS(lr_schedule_type_from_name("exponential"), Error);
  CHECK(warmup_type_from_name("log") == WarmupType::kLog);
  CHECK_THROWS_AS(warmup_type_from_name("sqrt"), Error);
  CHECK(!is_refused([](LrSchedule&) {}));
  CHECK(is_refused([](LrSchedule& s) { s.peak_lr = -1; }));
  CHECK(is_refused([](LrSchedule& s) { s.min_lr = std::nan(""); }));
  CHECK(is_refused([](LrSchedule& s) { s.warmup_start_lr = std::numeric_limits<double>::infinity(); }));
  CHECK(is_refused([](LrSchedule& s) { s.warmup_steps = -1; }));
  CHECK(is_refused([](LrSchedule& s) { s.decay_steps = 0; }));
  CHECK(is_refused([](LrSchedule& s) { s.decay_steps = 101; }));
  CHECK(!is_refused([](LrSchedule& s) { s.type = LrScheduleType::kCosine, s.decay_steps = 0; }));
}

TEST_CASE("overrides are in force from their step on, each setting until a later entry changes it") {
  using Entries = std::vector<Override>;
  const Overrides overrides({{3, OverrideChange::set(0.5), {}},
                             {5, {}, OverrideChange::set(128)},
                             {7, OverrideChange::take_back(), {}},
                             {9, OverrideChange::set(0), OverrideChange::take_back()}});
  const std::optional<double> none;
  CHECK(overrides.lr(2) == none);
  CHECK(overrides.lr(3) == 0.5);
  CHECK(overrides.lr(6) == 0.5);
  CHECK(overrides.lr(7) == none);
  CHECK(overrides.lr(100) == 0.0);
  CHECK(overrides.loss_scale(4) == none);
  CHECK(overrides.loss_scale(5) == 128.0);
  CHECK(overrides.loss_scale(8) == 128.0);
  CHECK(overrides.loss_scale(9) == none);
  CHECK(Overrides().lr(0) == none);
  CHECK_THROWS_AS(Overrides(Entries{{5, {}, {}}, {5, {}, {}}}), Error);
  CHECK_THROWS_AS(Overrides(Entries{{-1, {}, {}}}), Error);
  CHECK_THROWS_AS(Overrides(Entries{{1, OverrideChange::set(-1), {}}}), Error);
  CHECK_THROWS_AS(Overrides(Entries{{1, {}, OverrideChange::set(0)}}), Error);
  CHECK_THROWS_AS(Overrides(Entries{{1, {}, {}, {{"a", OverrideChange::set(-1)}}}}), Error);
}

TEST_CASE("overrides of groups are in force each by itself") {
  const Overrides overrides({{3, {}, {}, {{"a", OverrideChange::set(0.5)}, {"b", OverrideChange::set(0.25)}}},
                             {5, {}, {}, {{"a", OverrideChange::take_back()}}}});
  const std::optional<double> none;
  CHECK(overrides.group_lr(2, "a") == none);
  CHECK(overrides.group_lr(4, "a") == 0.5);
  CHECK(overrides.group_lr(5, "a") == none);
  CHECK(overrides.group_lr(5, "b") == 0.25);
  CHECK(overrides.group_lr(9, "c") == none);
  CHECK(overrides.names_group("a"));
  CHECK(!overrides.names_group("c"));
}
