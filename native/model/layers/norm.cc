#include "model/layers/norm.h"

namespace zerofleet {

std::unique_ptr<Norm> make_norm(const ModelConfig& config, const std::optional<NormSpec>& spec) {
  if (!spec) return nullptr;
  return config.norm == NormType::kRms ? make_rms_norm(*spec) : make_layer_norm(*spec);
}

}  // namespace zerofleet
