#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "core/device/buffer.h"
#include "kernels/quantize/quantized_matrix.h"
#include "zero/exchange/param_memory.h"
#include "zero/partition/digest.h"
#include "zero/step/model_part.h"

namespace zerofleet {

/// The quantized matrices of the base on one rank: the codes of all of them, in device memory.
///
/// The rank that owns a matrix quantizes it as a whole, from its elements in the compute dtype, and sends the codes to
/// the others. The codes therefore do not depend on the number of ranks or the device. Elements arrive in pieces. They
/// stay in host memory until the matrix is complete, so matrix by matrix one matrix is held at a time.
class QuantizedPart {
 public:
  /// `plan`, and `communicator` of the ranks that hold the part, must outlive the object.
  QuantizedPart(const PlannedPart& plan, Communicator& communicator, const PartTools& tools);

  const ParamSubset& subset() const { return plan_.subset; }
  /// Returns a matrix by its local number.
  const QuantizedMatrix& matrix(std::size_t local) const { return matrices_[local].codes; }
  std::size_t num_bytes() const;
  bool is_shared() const { return memory_->is_shared(); }

  /// Local numbers of the matrices that this rank owns, ascending. Ranks own about equally many elements.
  const std::vector<std::size_t>& owned() const { return owned_; }
  /// Loads elements [begin, begin + values.size()) of an owned matrix. Throws Error{"slice_not_owned"}.
  void load(std::size_t local, std::int64_t begin, std::span<const float> values);
  /// Sets owned matrices among the canonical parameters from `first` on to the random numbers of
  /// StateShard::initialize_master().
  void initialize(std::uint64_t seed, std::size_t first);
  /// Posts the exchange of all matrices. Throws Error{"invalid_argument"} for an incomplete matrix.
  void gather();

  /// Sum over the blocks of owned matrices, of the elements before quantization: the digest of the same base without
  /// quantization.
  Digest128 digest() const;

 private:
  struct Held {
    QuantizedMatrix codes;
    int owner = 0;
    Digest128 digest;  // of the elements; owned matrices only
    Buffer elements;   // in the compute dtype, until the matrix is complete
    std::int64_t missing = 0;
  };
  void finish(std::size_t local);

  const PlannedPart& plan_;
  Communicator& communicator_;
  PartTools tools_;
  Context host_;
  std::unique_ptr<ParamMemory> memory_;
  std::vector<Held> matrices_;
  std::vector<std::size_t> owned_;
};

}  // namespace zerofleet
