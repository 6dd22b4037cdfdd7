#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/device/context.h"
#include "kernels/common/indices.h"
#include "kernels/common/scratch.h"
#include "kernels/gemm/packed_matrix.h"
#include "model/common/block.h"
#include "model/common/tensor.h"
#include "model/config/model_config.h"

namespace zerofleet::bench {

/// An operation of the training step with its own operands, ready to be run repeatedly. On a CUDA device run() queues
/// the work, and waits only where the operation itself does.
struct KernelCase {
  std::string shape;      // shape of the operands, rows first
  double operations = 0;  // of its matrix products, a multiplication and an addition each; 0 where there are none
  double bytes = 0;       // that it has to read and to write, each once
  bool in_place = false;  // it overwrites most of its input
  std::function<void()> run = {};
  std::vector<ConstMatrix> results = {};  // results of run(), on the bench's device or the host
};

/// Operands of cases. Cases with sizes only state what they would move and compute, and must not be run.
enum class Operands : std::uint8_t { kMade, kSizesOnly };

/// Sizes of a model's pass, and the owner of a case's operands.
class KernelBench {
 public:
  KernelBench(const Context& ctx, const ModelConfig& model_config, const PassShape& pass_shape, DType compute_dtype,
              Operands operands = Operands::kMade);

  const Context ctx;
  const ModelConfig config;
  const PassShape shape;
  const DType dtype;
  Scratch scratch;

  bool has_operands() const { return sizes_only_ == nullptr; }
  std::int64_t rows() const { return shape.rows(); }
  double element() const { return static_cast<double>(size_of(dtype)); }
  /// Context for the blocks of the model; it has no rotations.
  ModelContext model_context();

  /// Uniform values in (-1, 1), so that nothing is trivially zero or denormal. They repeat after a quarter of a
  /// million.
  Matrix random(std::int64_t num_rows, std::int64_t cols) { return random(num_rows, cols, dtype); }
  Matrix random(std::int64_t num_rows, std::int64_t cols, DType type, Tensor::Rows spacing = Tensor::Rows::kPadded);
  /// A matrix without gaps as an array; rows may be many.
  std::span<float> random_floats(std::int64_t numel);
  /// Uniform in [0, limit).
  Indices random_below(std::int64_t count, std::int64_t limit);
  /// A random operand (k, n) of matrix products.
  const PackedMatrix* random_packed(std::int64_t k, std::int64_t n);

  /// Keeps anything for as long as the bench is.
  template <class T>
  T& keep(T value) {
    auto kept = std::make_shared<T>(std::move(value));
    kept_.push_back(kept);
    return *kept;
  }

 private:
  std::vector<std::shared_ptr<void>> kept_;
  std::shared_ptr<std::byte> sizes_only_;  // addresses that nothing may touch, for operands that are not made
};

/// A name and how the case is made in the shapes of a bench, which must outlive it.
struct KernelEntry {
  const char* op;
  KernelCase (*make)(KernelBench& bench);
};

/// All of them.
std::vector<KernelEntry> all_kernels();
/// Throws Error{"invalid_argument"} for another name.
KernelEntry kernel_named(const std::string& op);

/// The families, each in the file of its name.
std::span<const KernelEntry> product_kernels();
std::span<const KernelEntry> attention_kernels();
std::span<const KernelEntry> rowwise_kernels();
std::span<const KernelEntry> token_kernels();
std::span<const KernelEntry> expert_kernels();
std::span<const KernelEntry> optimizer_kernels();
std::span<const KernelEntry> quantized_kernels();
std::span<const KernelEntry> adapter_kernels();

/// "512 × 768"
std::string shape_text(std::initializer_list<std::int64_t> sizes);
/// An array as a matrix of one row.
Matrix as_row(std::span<float> values);
/// The mean of |values|, when all work of the context is done: NaN or infinite where one of them is.
double mean_magnitude(const Context& ctx, const std::vector<ConstMatrix>& matrices);

}  // namespace zerofleet::bench
