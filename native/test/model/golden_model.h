#pragma once

#include <vector>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "model/transformer/decoder.h"
#include "model/transformer/transformer.h"
#include "test/golden/golden_file.h"
#include "test/model/quantized_params.h"
#include "test/shared_bytes.h"

namespace zerofleet::test {

struct GoldenPass {
  LeafResult loss;
  std::vector<std::vector<float>> grads;  // divided by the loss scale
  std::vector<int> times_emitted;
};

/// The model of a golden file, in one of the compute types, and the pass that the file describes.
class GoldenModel {
 public:
  GoldenModel(const GoldenFile& golden, const Context& ctx, DType dtype, const TransformerOptions& options = {});

  /// Runs the pass with gradients of grad_factor · the file's grad_scale · loss_scale.
  GoldenPass run(float loss_scale = 1, float grad_factor = 1);
  /// A decoder with the same parameters.
  Decoder decoder(const Context& ctx, const Decoder::Limits& limits) const;
  /// Logits after the first sequence, which a decoder takes whole.
  std::vector<float> last_logits() const;
  /// The same pass with all elements of one parameter set to `value` from now on.
  void fill_param(std::size_t param, float value);

  const std::vector<ParamSpec>& specs() const { return specs_; }
  const Transformer& model() const { return model_; }
  Transformer& model() { return model_; }

 private:
  void put(std::size_t param, std::size_t i, float value);

  const GoldenFile& golden_;
  Context ctx_;
  DType dtype_;
  std::vector<ParamSpec> specs_;
  std::vector<SharedBytes> params_;
  std::vector<const std::byte*> pointers_;
  QuantizedParams quantized_;
  Transformer model_;
};

/// |actual − expected| over |expected|; 0 where both are zeros.
double relative_error(const std::vector<float>& actual, const std::vector<float>& expected);

}  // namespace zerofleet::test
