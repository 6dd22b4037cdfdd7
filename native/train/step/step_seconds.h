#pragma once

namespace zerofleet {

/// Wall seconds of one step by phase. Phases overlap where communication runs during backward.
struct StepSeconds {
  double total = 0, data = 0, forward = 0, backward = 0, exchange = 0, optimizer = 0, gather = 0;
  double exchange_busy = 0;  // of the communication thread, on gradients; `exchange` is the time that the step waits
};

}  // namespace zerofleet
