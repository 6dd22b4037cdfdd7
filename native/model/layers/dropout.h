#pragma once

#include <cstdint>

#include "kernels/elementwise/dropout.h"
#include "model/common/block.h"

namespace zerofleet {

/// The sites of dropout in a layer.
enum class DropoutSite : std::uint32_t { kProbabilities, kAttention, kMlp };

/// Number of a site of dropout in the model; 0 is the embedding's.
inline std::uint32_t dropout_site(std::size_t layer, DropoutSite site) {
  return 1 + 3 * static_cast<std::uint32_t>(layer) + static_cast<std::uint32_t>(site);
}

/// Dropout and scaling of a (M, D) tensor at one site of a model. Passes without dropout drop nothing; a scale of 1
/// changes nothing.
class Dropout {
 public:
  Dropout(double probability, std::uint32_t site, double scale = 1)
      : probability_(probability), scale_(scale), site_(site) {}

  void forward(const ModelContext& model, const Pass& pass, const Matrix& x) const;
  /// Returns the gradient of the input, from that of the output: dy itself, or `room` filled.
  Matrix backward(const ModelContext& model, const Pass& pass, const Matrix& dy, const Matrix& room) const;

 private:
  bool drops(const Pass& pass) const { return pass.dropout != nullptr && probability_ > 0; }

  double probability_, scale_;
  std::uint32_t site_;
};

}  // namespace zerofleet
