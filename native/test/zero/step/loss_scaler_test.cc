#include "zero/step/loss_scaler.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "core/error.h"
#include "test/built_files.h"

using namespace zerofleet;

namespace {

struct GoldenCase {
  std::string name;
  LossScaleOptions options;
  std::vector<bool> overflows;
  std::vector<double> scales;
  std::int64_t fails_at = -1;
};

/// The values of a line of `value:count` words, each repeated `count` times.
std::vector<double> read_runs(std::istringstream& words) {
  std::vector<double> values;
  for (std::string word; words >> word;) {
    const auto colon = word.find(':');
    values.insert(values.end(), std::stoul(word.substr(colon + 1)), std::strtod(word.c_str(), nullptr));
  }
  return values;
}

/// Reads the output of make_golden_scaler.py.
std::vector<GoldenCase> read_golden_scalers() {
  std::ifstream file(test::golden_dir() + "/scaler_deepspeed.txt");
  REQUIRE(file.good());
  std::vector<GoldenCase> cases;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    if (kind == "case") {
      words >> cases.emplace_back().name;
    } else if (kind == "options") {
      LossScaleOptions& options = cases.back().options;
      options.type = LossScaleType::kDynamic;
      options.max_skipped_steps = std::numeric_limits<std::int64_t>::max();  // DeepSpeed has no such limit
      words >> options.initial_scale >> options.window >> options.hysteresis >> options.consecutive_hysteresis >>
          options.min_scale;
    } else if (kind == "overflows") {
      for (const double overflow : read_runs(words)) cases.back().overflows.push_back(overflow != 0);
    } else if (kind == "scales") {
      cases.back().scales = read_runs(words);
    } else if (kind == "never_fails") {
      cases.back().options.max_skipped_steps = std::nullopt;
    } else if (kind == "fails_at") {
      words >> cases.back().fails_at;
    }
  }
  return cases;
}

LossScaleOptions dynamic_options() {
  LossScaleOptions options;
  options.type = LossScaleType::kDynamic;
  return options;
}

bool is_refused(const LossScaleOptions& options) {
  try {
    LossScaler{options};
  } catch (const Error& error) {
    return error.code() == "invalid_argument";
  }
  return false;
}

}  // namespace

TEST_CASE("the dynamic loss scale takes the same way as DeepSpeed's, and diverges where that refuses to go on") {
  const auto cases = read_golden_scalers();
  REQUIRE(cases.size() == 20);
  int num_failing = 0;
  for (const GoldenCase& golden : cases) {
    CAPTURE(golden.name);
    LossScaler scaler(golden.options);
    std::vector<double> scales;
    std::int64_t fails_at = -1;
    for (std::size_t i = 0; i < golden.overflows.size() && fails_at < 0; ++i) {
      if (!scaler.update(!golden.overflows[i])) {
        fails_at = static_cast<std::int64_t>(i);
      } else {
        scales.push_back(scaler.scale());
      }
    }
    CHECK(scales == golden.scales);
    CHECK(fails_at == golden.fails_at);
    num_failing += golden.fails_at >= 0 ? 1 : 0;
  }
  CHECK(num_failing >= 4);
}

TEST_CASE("a scaler restored after any step goes on as if nothing had happened") {
  for (const GoldenCase& golden : read_golden_scalers()) {
    CAPTURE(golden.name);
    LossScaler whole(golden.options);
    auto resumed = std::make_unique<LossScaler>(golden.options);
    for (const bool overflow : golden.overflows) {
      const bool goes_on = whole.update(!overflow);
      CHECK(resumed->update(!overflow) == goes_on);
      const LossScalerState saved = resumed->state();
      REQUIRE(saved == whole.state());
      resumed = std::make_unique<LossScaler>(golden.options);
      resumed->restore(saved);
    }
  }
}

TEST_CASE("none is a scale of 1 and static keeps its scale, whatever overflows") {
  LossScaleOptions options;
  options.max_skipped_steps = 1000;
  LossScaler none(options);
  options.type = LossScaleType::kStatic;
  options.initial_scale = 1024;
  LossScaler fixed(options);
  for (int step = 0; step < 500; ++step) {
    CHECK(none.update(step % 3 == 0));
    CHECK(fixed.update(step % 3 == 0));
    CHECK(none.scale() == 1);
    CHECK(fixed.scale() == 1024);
  }
}

TEST_CASE("too many skipped steps in a row are a divergence for every type; a finite one starts the count anew") {
  for (const auto type : {LossScaleType::kNone, LossScaleType::kStatic, LossScaleType::kDynamic}) {
    LossScaleOptions options;
    options.type = type;
    options.max_skipped_steps = 5;
    LossScaler scaler(options);
    for (int round = 0; round < 3; ++round) {
      for (int step = 0; step < 4; ++step) CHECK(scaler.update(false));
      CHECK(scaler.update(true));
    }
    for (int step = 0; step < 4; ++step) CHECK(scaler.update(false));
    CHECK(!scaler.update(false));
    CHECK(scaler.state().skipped_in_a_row == 5);
  }
}

TEST_CASE("without a limit nothing is a divergence, and no gradient without targets moves the scale") {
  for (const auto type : {LossScaleType::kNone, LossScaleType::kStatic, LossScaleType::kDynamic}) {
    LossScaleOptions options;
    options.type = type;
    options.max_skipped_steps = std::nullopt;
    LossScaler scaler(options);
    for (int step = 0; step < 500; ++step) CHECK(scaler.update(false));
  }
  LossScaler scaler(dynamic_options());
  CHECK(scaler.update(false));
  const LossScalerState before = scaler.state();
  for (int step = 1; step < 99; ++step) CHECK(scaler.update(step % 2 == 0, false));
  CHECK(scaler.scale() == before.scale);
  CHECK(scaler.state().iteration == before.iteration);
  CHECK(scaler.state().hysteresis == before.hysteresis);
  CHECK(scaler.state().skipped_in_a_row == 99);
  CHECK(!scaler.update(true, false));
}

TEST_CASE("a scale that never changes has no hysteresis") {
  for (const LossScaleType type : {LossScaleType::kNone, LossScaleType::kStatic}) {
    LossScaleOptions options = dynamic_options();
    options.type = type;
    LossScaler scaler(options);
    CHECK(scaler.state().hysteresis == 1);
    scaler.restore({1, 4, -1, 2, 0});
    CHECK(scaler.state().hysteresis == 1);
  }
}

TEST_CASE("a scale from outside is in force until it is taken back; the scaler rests meanwhile") {
  LossScaler scaler(dynamic_options());
  CHECK(scaler.update(false));
  const LossScalerState before = scaler.state();
  scaler.override_scale(32.0);
  CHECK(scaler.scale() == 32);
  CHECK(scaler.update(false));
  CHECK(scaler.update(false));
  CHECK(scaler.scale() == 32);
  CHECK(scaler.state().skipped_in_a_row == 3);
  CHECK(scaler.update(true));
  scaler.override_scale(std::nullopt);
  CHECK(scaler.scale() == 65536);
  CHECK(scaler.state().iteration == before.iteration);
  CHECK(scaler.state().hysteresis == before.hysteresis);
  for (const double bad : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    CHECK_THROWS_AS(scaler.override_scale(bad), Error);
  }
}

TEST_CASE("settings and states that cannot be are refused") {
  CHECK(!is_refused(dynamic_options()));
  const auto refused_with = [](auto change) {
    LossScaleOptions options = dynamic_options();
    change(options);
    return is_refused(options);
  };
  CHECK(refused_with([](LossScaleOptions& o) { o.initial_scale = 0; }));
  CHECK(refused_with([](LossScaleOptions& o) { o.initial_scale = std::nan(""); }));
  CHECK(refused_with([](LossScaleOptions& o) { o.window = 0; }));
  CHECK(refused_with([](LossScaleOptions& o) { o.hysteresis = 0; }));
  CHECK(refused_with([](LossScaleOptions& o) { o.min_scale = 0; }));
  CHECK(refused_with([](LossScaleOptions& o) { o.min_scale = 2 * o.initial_scale; }));
  CHECK(refused_with([](LossScaleOptions& o) { o.max_skipped_steps = 0; }));
  LossScaler scaler(dynamic_options());
  CHECK_THROWS_AS(scaler.restore({0, 0, -1, 1, 0}), Error);
  CHECK_THROWS_AS(scaler.restore({1, -1, -1, 1, 0}), Error);
  CHECK_THROWS_AS(scaler.restore({1, 4, 4, 1, 0}), Error);
  CHECK_THROWS_AS(scaler.restore({1, 4, 0, 1, -1}), Error);
  CHECK(loss_scale_type_from_name("static") == LossScaleType::kStatic);
  CHECK_THROWS_AS(loss_scale_type_from_name("auto"), Error);
}
