#pragma once

#include <cstddef>
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

/// Matrices of the layers that may have adapters: all, or those whose number is a multiple of `every`.
std::vector<std::string> adapter_targets(const ModelConfig& config, std::size_t every = 1);

}  // namespace zerofleet::test
