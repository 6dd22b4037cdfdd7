#include "model/mlp/mlp.h"

namespace zerofleet {

std::unique_ptr<Mlp> make_mlp(const ModelContext& model, const MlpPlace& place) {
  return place.experts.empty() ? make_dense_mlp(model, place.dense) : make_moe_mlp(model, place);
}

}  // namespace zerofleet
