#include "model/mlp/mlp.h"

namespace zerofleet {

std::unique_ptr<Mlp> make_mlp(const ModelContext& model, const MlpSpec& spec) {
  return spec.experts.empty() ? make_dense_mlp(model, spec.dense, model.config.intermediate_size)
                              : make_moe_mlp(model, spec);
}

}  // namespace zerofleet
