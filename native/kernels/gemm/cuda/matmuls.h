#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "kernels/common/matrix.h"
#include "kernels/gemm/cuda/cublaslt_library.h"
#include "kernels/gemm/gemm.h"

namespace zerofleet::cuda {

class OnesTrial;

/// C (m, n) = alpha · op(A) · op(B) + bias, plus C with `accumulate` or put through an epilogue; all row-major.
struct Matmul {
  ConstMatrix a;  // (m, k), or (k, m) with a_transposed
  bool a_transposed = false;
  ConstMatrix b;  // (k, n), or (n, k) with b_transposed
  bool b_transposed = false;
  Matrix c;
  const void* bias = nullptr;  // (n) of c's dtype
  bool accumulate = false;
  GemmEpilogue epilogue = {};
  float alpha = 1;
};

/// Returns the largest power of two up to 256 that the address and all rows begin at multiples of.
std::uint32_t alignment_of(const void* data, std::int64_t stride, DType dtype);

/// Matrix products by cuBLASLt. The algorithm for a shape is chosen once: the first by the library's heuristic that has sums
/// of a fixed order, and adds up ones rightly when it is tried (OnesTrial), or the fastest of the others that do so and have
/// its bits (NoiseTrial). Bits depend on shapes, alignment, library and kind of device alone, so equal ranks have equal ones. For one
/// context's stream; not thread-safe.
class Matmuls {
 public:
  /// library: null where there is none. Throws Error{"device_failed"} where it does not work with the device.
  Matmuls(const Context& ctx, std::shared_ptr<const cublaslt::Library> library);
  ~Matmuls();
  Matmuls(const Matmuls&) = delete;
  Matmuls& operator=(const Matmuls&) = delete;

  /// False where there is no library, or it has no algorithm for this product. The first call for a shape waits for the
  /// device, allocates the operands of a trial for a while, and overwrites C unless the product adds to it.
  bool can_run(const Matmul& matmul);
  /// Queues a product that can_run(). Throws Error{"device_failed"}.
  void run(const Matmul& matmul);

  /// Name and version of the library, or empty.
  std::string library_name() const;
  std::size_t workspace_bytes() const { return workspace_.num_bytes(); }
  /// Shapes for which an algorithm was chosen so far.
  std::size_t num_plans() const { return plans_.size(); }

 private:
  struct Plan;
  /// Cache key of a chosen algorithm: shape, strides, types, flags and the alignment of the addresses.
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                         int, int, int, int>;

  Plan& plan_of(const Matmul& matmul);
  std::unique_ptr<Plan> make_plan(const Matmul& matmul, std::int64_t k);
  void describe(const Matmul& matmul, Plan& plan) const;
  std::vector<cublaslt::Algorithm> candidates(const Matmul& matmul, std::int64_t k, const Plan& plan) const;
  /// The fastest of those that give the bits of the first, which is right.
  cublaslt::Algorithm fastest(const Plan& plan, std::span<const cublaslt::Algorithm> found, OnesTrial& ones);
  double seconds_of(const Plan& plan, const cublaslt::Algorithm& algorithm, const Matmul& product);
  bool passes_trial(const Plan& plan, const cublaslt::Algorithm& algorithm, OnesTrial& trial);
  cublaslt::Status multiply(const Plan& plan, const cublaslt::Algorithm& algorithm, const Matmul& matmul);
  void check(cublaslt::Status status, const char* call) const;

  Context ctx_;
  std::shared_ptr<const cublaslt::Library> library_;  // null: none
  cublaslt::Handle* handle_ = nullptr;
  Buffer workspace_;
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

}  // namespace zerofleet::cuda
