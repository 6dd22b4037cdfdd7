#pragma once

#include <memory>

#include "kernels/common/scratch.h"
#include "kernels/gemm/packed_matrix.h"
#include "model/transformer/layer_stack.h"

namespace zerofleet {

/// Parts of a Transformer that a Decoder of the same parameters uses, too: operands of products, and work space.
struct SharedOperands {
  SharedLayers layers;
  std::shared_ptr<PackedMatrix> head;
  std::shared_ptr<Scratch> scratch;
};

}  // namespace zerofleet
