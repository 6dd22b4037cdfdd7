#include "train/norm_init.h"

#include "core/device/buffer.h"
#include "core/device/transfer.h"
#include "kernels/adapter/magnitude.h"

namespace zerofleet {
namespace {

bool begins_as_norms(const ParamSpec& spec) {
  return spec.init == ParamInit::kRowNorms || spec.init == ParamInit::kColumnNorms;
}

std::vector<float> norms_of(const Context& ctx, const ParamSpec& matrix, const std::byte* data, DType dtype,
                            bool of_columns) {
  const AdaptedMatrix weight{{data, dtype, matrix.shape[0], matrix.shape[1], matrix.shape[1]}, of_columns};
  std::vector<float> values(static_cast<std::size_t>(weight.out()));
  Buffer norms(ctx.device, values.size() * sizeof(float));
  direction_norms(ctx, {weight, norms.as<float>()});
  copy_bytes(ctx, std::as_writable_bytes(std::span(values)), Device{}, {norms.data(), norms.num_bytes()}, ctx.device);
  return values;
}

}  // namespace

void NormInit::mark(std::size_t first) {
  for (std::size_t param = first; param < specs_.size(); ++param) {
    is_pending_[param] = begins_as_norms(specs_[param]);
    any_ = any_ || is_pending_[param];
  }
}

bool NormInit::set(const Context& ctx, DType dtype, ZeroOptimizer& optimizer) {
  if (!any_) return false;
  for (const StateRange& range : optimizer.state_ranges()) {
    if (range.state != StateId::kMaster || !is_pending_[range.param]) continue;
    const ParamSpec& spec = specs_[range.param];
    const std::vector<float> norms = norms_of(ctx, specs_[spec.norms_of], optimizer.params()[spec.norms_of], dtype,
                                              spec.init == ParamInit::kColumnNorms);
    const auto slice = std::span(norms).subspan(static_cast<std::size_t>(range.elements.begin),
                                                static_cast<std::size_t>(range.elements.size()));
    optimizer.load_state(StateId::kMaster, range.param, range.elements.begin, slice);
  }
  is_pending_.assign(specs_.size(), false);
  any_ = false;
  return true;
}

}  // namespace zerofleet
