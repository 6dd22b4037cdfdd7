#pragma once

#include <functional>
#include <vector>

#include "core/device/context.h"

namespace zerofleet::bench {

/// Time budget of a measurement: number of rounds, of which the median counts, and approximate seconds per round.
struct Patience {
  int rounds = 7;
  double seconds = 0.02;
};

/// The middle value; the mean of the two middle ones for an even number of them.
double median(std::vector<double> values);

/// Seconds of one run in each round. A round queues many runs and waits once: the time of queueing a run is hidden
/// behind the work of the run before. Work that is shorter than its queueing is measured with it. `runs` take turns.
/// Everything has run once before.
std::vector<double> seconds_of_runs(const Context& ctx, const std::vector<std::function<void()>>& runs,
                                    const Patience& patience);

}  // namespace zerofleet::bench
