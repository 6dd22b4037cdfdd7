#pragma once

#include "kernels/optimizer/formulas/adagrad.h"
#include "kernels/optimizer/formulas/adam.h"
#include "kernels/optimizer/formulas/adamw.h"
#include "kernels/optimizer/formulas/lamb.h"
#include "kernels/optimizer/formulas/lion.h"
#include "kernels/optimizer/formulas/sgd.h"

namespace zerofleet {

template <class... Updates>
struct UpdateList {};

/// The updates that every device has.
using OptimizerUpdates = UpdateList<AdamWUpdate, AdamUpdate, LambUpdate, LionUpdate, AdagradUpdate, SgdUpdate,
                                    SgdMomentumUpdate, SgdNesterovUpdate>;

/// The index of an update in a list.
template <class Update, class List>
constexpr int kUpdateIndex = -1;
template <class Update, class... Rest>
constexpr int kUpdateIndex<Update, UpdateList<Update, Rest...>> = 0;
template <class Update, class First, class... Rest>
constexpr int kUpdateIndex<Update, UpdateList<First, Rest...>> = 1 + kUpdateIndex<Update, UpdateList<Rest...>>;

}  // namespace zerofleet
