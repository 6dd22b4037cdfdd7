#pragma once

#include <array>

#include "zero/optimizer/optimizer_options.h"

namespace zerofleet::test {

/// Every optimizer that the core has.
constexpr std::array kOptimizerTypes{
#define ZF_TYPE(type, name, constants) OptimizerType::type,
    ZF_OPTIMIZERS(ZF_TYPE)
#undef ZF_TYPE
};

}  // namespace zerofleet::test
