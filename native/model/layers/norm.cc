#include "model/layers/norm.h"

namespace zerofleet {

std::unique_ptr<Norm> make_norm(const ModelConfig& config, const std::optional<NormPlace>& place) {
  if (!place) return nullptr;
  return config.norm == NormType::kRms ? make_rms_norm(*place) : make_layer_norm(*place);
}

}  // namespace zerofleet
