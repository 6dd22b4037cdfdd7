#pragma once

#include <string>
#include <vector>

#include "model/config/model_config.h"

namespace zerofleet::test {

struct FamilyConfig {
  std::string name;
  ModelConfig config;
};

/// A small model per family, with all features that the family can have, dropout included.
std::vector<FamilyConfig> family_configs();

}  // namespace zerofleet::test
