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

/// C (m, n) = alpha · op(A) · op(B) + bias, plus the old C with `accumulate`, or through an epilogue. All row-major.
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

/// Returns the largest power of two, up to 256, of which the address and the start of every row are multiples.
std::uint32_t alignment_of(const void* data, std::int64_t stride, DType dtype);

/// Matrix products by cuBLASLt, on one context's stream. Not thread-safe.
///
/// The algorithm for a shape is chosen once. Candidates come from the library's heuristic, sum in a fixed order, and
/// pass OnesTrial. The first of them determines the bits; the fastest with the same bits is used (NoiseTrial). Bits
/// depend on shapes, alignment, library and kind of device alone, so equal ranks compute equal bits.
class Matmuls {
 public:
  /// `library`: null if there is none. Throws Error{"device_failed"} if it does not work with the device.
  Matmuls(const Context& ctx, std::shared_ptr<const cublaslt::Library> library);
  ~Matmuls();
  Matmuls(const Matmuls&) = delete;
  Matmuls& operator=(const Matmuls&) = delete;

  /// Returns false without a library, or if it has no algorithm for this product. The first call for a shape waits for
  /// the device, allocates temporary operands of a trial, and overwrites C unless the product accumulates.
  bool can_run(const Matmul& matmul);
  /// Queues a product for which can_run() is true. Throws Error{"device_failed"}.
  void run(const Matmul& matmul);

  /// Name and version of the library; empty without one.
  std::string library_name() const;
  std::size_t workspace_bytes() const { return workspace_.num_bytes(); }
  /// Number of shapes for which an algorithm was chosen.
  std::size_t num_plans() const { return plans_.size(); }

 private:
  struct Plan;
  /// Key of a chosen algorithm: shape, strides, types, flags, and alignment of the addresses.
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                         std::int64_t, int, int, int, int>;

  Plan& plan_of(const Matmul& matmul);
  std::unique_ptr<Plan> make_plan(const Matmul& matmul, std::int64_t k);
  void describe(const Matmul& matmul, Plan& plan) const;
  std::vector<cublaslt::Algorithm> candidates(const Matmul& matmul, std::int64_t k, const Plan& plan) const;
  /// Returns the fastest algorithm with the bits of the first one, which has passed OnesTrial.
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
