#include "model/config/merge_adapter.h"

#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "test/error_code.h"

using namespace zerofleet;
using zerofleet::test::code_of;

namespace {

constexpr std::int64_t kRank = 3, kIn = 7, kOut = 5;

std::vector<float> random_values(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

}  // namespace

TEST_CASE("a merged adapter is W + scale · B A, in both layouts, wherever a piece begins") {
  const std::vector<float> down = random_values(kRank * kIn, 1), up = random_values(kOut * kRank, 2),
                           weight = random_values(kIn * kOut, 3);
  for (const bool in_first : {false, true}) {
    const AdapterFactors adapter{down, up, kRank, kIn, kOut, 0.375, in_first};
    std::vector<float> whole = weight;
    merge_adapter(adapter, 0, whole);
    for (std::int64_t o = 0; o < kOut; ++o) {
      for (std::int64_t i = 0; i < kIn; ++i) {
        double sum = 0;
        for (std::int64_t r = 0; r < kRank; ++r)
          sum += static_cast<double>(up[static_cast<std::size_t>(o * kRank + r)]) *
                 static_cast<double>(down[static_cast<std::size_t>(r * kIn + i)]);
        const auto at = static_cast<std::size_t>(in_first ? i * kOut + o : o * kIn + i);
        CHECK(static_cast<double>(whole[at]) ==
              doctest::Approx(static_cast<double>(weight[at]) + 0.375 * sum).epsilon(1e-6));
      }
    }
    for (std::int64_t begin = 0; begin <= kIn * kOut; ++begin) {
      std::vector<float> first(weight.begin(), weight.begin() + begin), second(weight.begin() + begin, weight.end());
      merge_adapter(adapter, 0, first);
      merge_adapter(adapter, begin, second);
      first.insert(first.end(), second.begin(), second.end());
      CHECK(first == whole);
    }
  }
}

TEST_CASE(
    "squares of a merged matrix are summed by output, wherever a piece begins, and factors multiply outputs before "
    "they are rounded") {
  const std::vector<float> down = random_values(kRank * kIn, 1), up = random_values(kOut * kRank, 2),
                           weight = random_values(kIn * kOut, 3);
  for (const bool in_first : {false, true}) {
    AdapterFactors adapter{down, up, kRank, kIn, kOut, 0.375, in_first};
    std::vector<float> plain = weight;
    merge_adapter(adapter, 0, plain);
    std::vector<double> squares(kOut), expected(kOut);
    add_output_squares(adapter, 0, weight, squares);
    const auto output_of = [&](std::size_t at) { return in_first ? at % kOut : at / kIn; };
    for (std::size_t at = 0; at < plain.size(); ++at)
      expected[output_of(at)] += static_cast<double>(plain[at]) * static_cast<double>(plain[at]);
    for (std::size_t o = 0; o < squares.size(); ++o) CHECK(squares[o] == doctest::Approx(expected[o]).epsilon(1e-6));
    for (std::int64_t begin = 0; begin <= kIn * kOut; ++begin) {
      std::vector<double> again(kOut);
      add_output_squares(adapter, 0, std::span(weight).first(static_cast<std::size_t>(begin)), again);
      add_output_squares(adapter, begin, std::span(weight).subspan(static_cast<std::size_t>(begin)), again);
      CHECK(again == squares);
    }
    const std::vector<double> factors{2, 0.5, -1, 0, 3};
    adapter.output_factors = factors;
    std::vector<float> scaled = weight;
    merge_adapter(adapter, 0, scaled);
    for (std::size_t at = 0; at < plain.size(); ++at)
      CHECK(static_cast<double>(scaled[at]) ==
            doctest::Approx(factors[output_of(at)] * static_cast<double>(plain[at])).epsilon(1e-6));
    adapter.output_factors = std::span(factors).first(4);
    CHECK(code_of([&] { merge_adapter(adapter, 0, scaled); }) == "invalid_argument");
    CHECK(code_of([&] { add_output_squares(adapter, 0, weight, std::span(squares).first(4)); }) == "invalid_argument");
  }
}

TEST_CASE("an adapter of another size is not merged") {
  const std::vector<float> down = random_values(kRank * kIn, 1), up = random_values(kOut * kRank, 2);
  std::vector<float> values(4);
  const auto code = [&](const AdapterFactors& adapter, std::int64_t begin) {
    return code_of([&] { merge_adapter(adapter, begin, values); });
  };
  CHECK(code({down, up, kRank, kIn, kOut}, kIn * kOut - 4) == "none");
  CHECK(code({down, up, kRank, kIn, kOut}, kIn * kOut - 3) == "invalid_argument");
  CHECK(code({down, up, kRank, kIn, kOut}, -1) == "invalid_argument");
  CHECK(code({down, up, kRank + 1, kIn, kOut}, 0) == "invalid_argument");
  CHECK(code({up, down, kRank, kIn, kOut}, 0) == "invalid_argument");
}
