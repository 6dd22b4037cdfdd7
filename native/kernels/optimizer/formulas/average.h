#pragma once

#include "core/host_device.h"

namespace zerofleet {

/// The next value of a moving average: flushed(average + (master - average) × weight).
template <class M>
ZF_FORMULA typename M::Value moved_average(typename M::Value average, typename M::Value master, float weight) {
  return M::flushed(average + (master - average) * weight);
}

}  // namespace zerofleet
