#include "train/lr_schedule.h"

#include <doctest/doctest.h>

#include "core/error.h"

using zerofleet::LrSchedule;
using zerofleet::LrScheduleType;

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

TEST_CASE("schedules are known by name") {
  CHECK(zerofleet::lr_schedule_type_from_name("linear") == LrScheduleType::kLinear);
  CHECK_THROWS_AS(zerofleet::lr_schedule_type_from_name("exponential"), zerofleet::Error);
}
