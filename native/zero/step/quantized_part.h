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

/// The quantized matrices of the base on one rank: all of them, as codes, in the memory of the device.
///
/// A matrix is quantized from its elements in the compute dtype, whole, by the one rank that owns it; the others get its codes. So the
/// codes depend on neither the number of ranks nor the device. Elements come piece by piece, and are kept, in host memory, from the first
/// piece of a matrix to the last: of a matrix at a time where pieces come matrix by matrix.
class QuantizedPart {
 public:
  /// `plan` and `communicator`, of the ranks that hold the part, must outlive the object.
  QuantizedPart(const PlannedPart& plan, Communicator& communicator, const PartTools& tools);

  const ParamSubset& subset() const { return plan_.subset; }
  /// A matrix by its local number.
  const QuantizedMatrix& matrix(std::size_t local) const { return matrices_[local].codes; }
  std::size_t num_bytes() const;
  bool is_shared() const { return memory_->is_shared(); }

  /// Local numbers of the matrices that this rank owns, ascending. Ranks own about the same number of elements.
  const std::vector<std::size_t>& owned() const { return owned_; }
  /// Elements [begin, begin + values.size()) of an owned matrix. Throws Error{"slice_not_owned"}.
  void load(std::size_t local, std::int64_t begin, std::span<const float> values);
  /// Owned matrices among the canonical parameters from `first` on, from random numbers as StateShard::initialize_master().
  void initialize(std::uint64_t seed, std::size_t first);
  /// Posts the exchange of all matrices. Throws Error{"invalid_argument"} for one of which some pieces have not come.
  void gather();

  /// Sum over the blocks of owned matrices, of what they were quantized from: that of a base that is not quantized.
  Digest128 digest() const;

 private:
  struct Held {
    QuantizedMatrix codes;
    int owner = 0;
    Digest128 digest;           // of the elements; owned ones only
    Buffer elements;            // in the compute dtype, while some of them are missing
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
