#include "test/model/family_configs.h"

#include <stdexcept>

#include "model/config/model_parts.h"
#include "test/golden/golden_file.h"

namespace zerofleet::test {
namespace {

/// The model of a golden file for sequences of any length: with two layers, and longrope's long factors for all
/// lengths.
ModelConfig test_config(const GoldenFile& file) {
  ModelConfig config = file.trained_config();
  config.vocab_size = 101;
  config.num_hidden_layers = 2;
  for (auto* of_layers : {&config.layer_windows, &config.layer_rope}) {
    if (!of_layers->empty()) of_layers->resize(2);
  }
  if (config.rope_scaling.type == RopeScalingType::kLongrope) config.rope_scaling.original_max_position_embeddings = 2;
  return config;
}

}  // namespace

const std::vector<FamilyConfig>& family_configs() {
  static const std::vector<FamilyConfig> configs = [] {
    std::vector<FamilyConfig> all;
    for (const std::string& name : golden_files_with({"aux_loss"}))
      all.push_back({name, test_config(GoldenFile(name))});
    return all;
  }();
  return configs;
}

ModelConfig config_of(const std::string& family) {
  for (const auto& [name, config] : family_configs()) {
    if (name == family) return config;
  }
  throw std::runtime_error("there is no golden file of the model " + family);
}

std::vector<std::string> adapter_targets(const ModelConfig& config, std::size_t every) {
  std::vector<std::string> targets;
  std::size_t number = 0;
  for (const PartParams& part : model_parts(config).parts) {
    if (part.kind != PartKind::kLinear && part.kind != PartKind::kRouter) continue;
    if (number++ % every == 0) targets.emplace_back(part.module.substr(part.module.rfind("{}.") + 3));
  }
  return targets;
}

}  // namespace zerofleet::test
