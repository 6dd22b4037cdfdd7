#pragma once

#include <string>
#include <vector>

#include "model/config/model_config.h"

namespace zerofleet::test {

struct FamilyConfig {
  std::string name;
  ModelConfig config;
};

/// The models of the golden files of families, with dropout.
const std::vector<FamilyConfig>& family_configs();
ModelConfig config_of(const std::string& family);

}  // namespace zerofleet::test
