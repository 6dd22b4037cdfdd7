#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/quant_format.h"

namespace zerofleet {

enum class ParamGroup : std::uint8_t { kDecay, kNoDecay };  // weight decay is for matrices, not for norms and biases

/// First values. Norms are those of another parameter's rows or columns, which their owners do not have: they are zeros
/// until the trainer sets them.
enum class ParamInit : std::uint8_t { kNormal, kUniform, kOnes, kZeros, kRowNorms, kColumnNorms };

/// A parameter as the model declares it. Parameter order is canonical: it is the order of the list that the
/// model returns, and it is the same on every rank.
struct ParamSpec {
  std::string name;                 // Hugging Face name, e.g. "model.norm.weight"
  std::vector<std::int64_t> shape;  // row-major
  ParamGroup group = ParamGroup::kDecay;
  ParamInit init = ParamInit::kNormal;
  float init_scale = 0.02F;  // kNormal: standard deviation; kUniform: the numbers are in (−scale, scale)
  std::size_t norms_of = 0;  // kRowNorms, kColumnNorms: position of the other parameter, a matrix
  int expert = -1;    // number of the expert that it belongs to, counted over all experts; -1: shared by all tokens
  int layer = -1;     // number of the layer that it belongs to; -1: none
  bool base = false;  // part of the frozen base under an adapter
  std::optional<QuantFormat> quantization =
      {};  // of a matrix of the base: how ranks hold it; none: in the compute dtype

  std::int64_t numel() const {
    std::int64_t product = 1;
    for (const std::int64_t extent : shape) product *= extent;
    return product;
  }
};

}  // namespace zerofleet
