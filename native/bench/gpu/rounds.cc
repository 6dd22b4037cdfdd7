#include "bench/gpu/rounds.h"

#include <algorithm>
#include <cstddef>

#include "bench/seconds_of.h"
#include "core/device/transfer.h"

namespace zerofleet::bench {

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t count = values.size();
  return (values[count / 2] + values[(count - 1) / 2]) / 2;
}

std::vector<double> seconds_of_runs(const Context& ctx, const std::vector<std::function<void()>>& runs,
                                    const Patience& patience) {
  constexpr std::size_t kMostRuns = 2000;
  for (const auto& run : runs) run();
  synchronize(ctx);
  const double once = seconds_of([&] {
    runs.front()();
    synchronize(ctx);
  });
  const auto wanted = static_cast<std::size_t>(patience.seconds / std::max(once, 1e-7));
  // Whole turns, so that each round has the same work.
  const std::size_t turns = (std::clamp<std::size_t>(wanted, 1, kMostRuns) + runs.size() - 1) / runs.size();
  std::vector<double> seconds;
  for (int round = 0; round < patience.rounds; ++round) {
    const double all = seconds_of([&] {
      for (std::size_t turn = 0; turn < turns; ++turn) {
        for (const auto& run : runs) run();
      }
      synchronize(ctx);
    });
    seconds.push_back(all / static_cast<double>(turns * runs.size()));
  }
  return seconds;
}

}  // namespace zerofleet::bench
