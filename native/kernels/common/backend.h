#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/device.h"
#include "core/device/context.h"
#include "core/dtype.h"

namespace zerofleet {

// Arguments of operations, which their families define: the table needs no more than their names.
class Indices;
class PackedMatrix;
class Scratch;
struct AttentionBackward;
struct AttentionForward;
struct AttentionShape;
struct PageBytes;
struct PagedAttention;
struct ColumnScaling;
struct CombineBackward;
struct ConstMatrix;
struct ConstQuantBlocks;
struct CrossEntropy;
struct DeviceGroups;
struct DirectionNorms;
struct DropoutRule;
struct ExpertGroups;
struct Fold;
struct GatedBackward;
struct GemmProblem;
struct Hash128;
struct HeadNormBackward;
struct HeadNormForward;
struct HeadOrder;
struct LambScalars;
struct LambSums;
struct LayerNormBackward;
struct LayerNormForward;
struct MagnitudeGradient;
struct Matrix;
struct OptimizerDTypes;
struct OptimizerGroups;
struct OptimizerSegment;
struct PackRequest;
struct PositionGroups;
struct QuantBlocks;
struct RmsNormBackward;
struct RmsNormForward;
struct Rope;
struct RouterBackward;
struct RouterChoices;
struct RouterForward;
struct RouterSums;
struct RowOrder;
enum class GeluKind : std::uint8_t;
enum class GluKind : std::uint8_t;

[[noreturn]] void refuse_operation(const char* name, const Device& device);

template <class Signature>
class Operation;

/// A row of a table: the function that a device runs for an operation, or null where it has none.
template <class Result, class... Args>
class Operation<Result(Args...)> {
 public:
  using Function = Result(const Context&, Args...);

  constexpr explicit Operation(const char* name) : name_(name) {}
  constexpr Operation& operator=(Function* run) {
    run_ = run;
    return *this;
  }

  constexpr bool is_there() const { return run_ != nullptr; }

  /// Throws Error{"operation_unsupported"} that names the operation and the device where the row is null.
  Result operator()(const Context& ctx, Args... args) const {
    if (run_ == nullptr) refuse_operation(name_, ctx.device);
    return run_(ctx, args...);
  }

 private:
  const char* name_;
  Function* run_ = nullptr;
};

/// Operations of a kind of device, a row for each. Public entries of the families check arguments, and then call the
/// row of the context's device; nothing else chooses by device.
///
/// On a CPU every call works before it returns, on the context's pool. On a CUDA device a call queues its work in the
/// context's stream:
/// - Matrices and spans lie in the device's memory, Indices there as well as on the host.
/// - Results that are numbers of blocks (sums, magnitudes, hashes) lie on the host. A call with results on the host
///   returns when the results are there.
/// - What is given for a segment or group lies on the host, too.
///
/// Results depend on the arguments and the kind of device alone: work is cut by shapes, sums have one order, nothing is
/// added atomically. Errors of devices: as core/cuda/cuda_runtime.h says.
struct Backend {
  /// Returns the fingerprint of all that determines the bits of this device's results.
  std::string (*numerics)(const Device& device, CpuIsa isa) = nullptr;

  // gemm. With gemm_reads_packed, products read copies that pack() makes; else B where it is.
  bool gemm_reads_packed = false;
  Operation<void(std::span<const PackRequest>)> pack{"pack"};
  Operation<void(Scratch&, std::span<const GemmProblem>)> gemm{"gemm"};
  /// A problem with an epilogue, in one product; does nothing and returns false where that cannot be.
  Operation<bool(Scratch&, const GemmProblem&)> gemm_with_epilogue{"gemm_with_epilogue"};
  /// Products with a 16-bit C are at least as fast as those with one of fp32. A CPU's take fewer columns of C at a
  /// time.
  bool products_round_gradients = false;
  /// Rows of a matrix whose number varies are a multiple of it. A device has few shapes to choose algorithms for.
  std::int64_t row_unit = 2;
  /// Sequences of a leaf are computed to the lengths that they need, by an attention call each. Otherwise all are
  /// computed to the longest one: a device is not filled by one sequence.
  bool sequences_keep_lengths = true;

  // attention
  Operation<void(Scratch&, const AttentionForward&)> attention{"attention"};
  Operation<void(Scratch&, const AttentionBackward&)> attention_backward{"attention_backward"};
  Operation<PageBytes(const AttentionShape&, DType)> page_bytes{"page_bytes"};
  Operation<void(Scratch&, const PagedAttention&)> paged_attention{"paged_attention"};
  Operation<void(const Rope&)> rope{"rope"};
  Operation<void(const HeadOrder&)> order_heads{"order_heads"};

  // norm
  Operation<void(const RmsNormForward&)> rmsnorm{"rmsnorm"};
  Operation<void(const RmsNormBackward&)> rmsnorm_backward{"rmsnorm_backward"};
  Operation<void(const LayerNormForward&)> layernorm{"layernorm"};
  Operation<void(const LayerNormBackward&)> layernorm_backward{"layernorm_backward"};
  Operation<void(const HeadNormForward&)> head_norm{"head_norm"};
  Operation<void(const HeadNormBackward&)> head_norm_backward{"head_norm_backward"};

  // elementwise
  Operation<void(GeluKind, const ConstMatrix&, const Matrix&)> gelu{"gelu"};
  Operation<void(GeluKind, const ConstMatrix&, const ConstMatrix&, const Matrix&)> gelu_backward{"gelu_backward"};
  Operation<void(GluKind, const ConstMatrix&, const Matrix&)> glu{"glu"};
  Operation<void(GluKind, const ConstMatrix&, const ConstMatrix&, const Matrix&)> glu_backward{"glu_backward"};
  Operation<void(float, const ConstMatrix&, const Matrix&)> soft_cap{"soft_cap"};
  Operation<void(const ConstMatrix&, const ConstMatrix&, const Matrix&)> add_gated{"add_gated"};
  Operation<void(const GatedBackward&)> add_gated_backward{"add_gated_backward"};
  Operation<void(const ConstMatrix&, std::span<float>, bool)> bias_gradient{"bias_gradient"};
  Operation<void(const DropoutRule&, const ConstMatrix&, const Matrix&)> dropout{"dropout"};

  // adapter
  Operation<void(const DirectionNorms&)> direction_norms{"direction_norms"};
  Operation<void(const ColumnScaling&)> scale_columns{"scale_columns"};
  Operation<void(const MagnitudeGradient&)> magnitude_gradient{"magnitude_gradient"};

  // embedding and loss
  Operation<void(const ConstMatrix&, const Indices&, const Matrix&)> embedding{"embedding"};
  Operation<void(const PackedMatrix&, const Indices&, const Matrix&)> packed_embedding{"packed_embedding"};
  Operation<void(const Indices&, const PositionGroups&, const ConstMatrix&, const Matrix&, bool)> embedding_backward{
      "embedding_backward"};
  Operation<void(const CrossEntropy&)> cross_entropy{"cross_entropy"};
  /// With activation checkpointing: the most rows that a dense MLP, or the backward of a product with a weight,
  /// computes at once; a multiple of 64.
  std::int64_t max_rows_at_once = 0;
  /// Bytes of logits, in fp32, and of their gradients that exist at once. Gradients have at least as many rows as
  /// logits, whatever their limit.
  std::int64_t max_logits_bytes = 0, max_logit_gradient_bytes = 0;

  // moe. A device without group_by_expert and add_token_rows has its groups made by the host.
  Operation<void(const RouterForward&)> route{"route"};
  Operation<void(const RouterBackward&)> route_backward{"route_backward"};
  Operation<void(const RouterChoices&, const RouterSums&)> add_router_load{"add_router_load"};
  Operation<void(std::span<const std::int64_t>, double, double, std::span<float>)> load_balancing_gradient{
      "load_balancing_gradient"};
  Operation<void(std::span<const std::int32_t>, std::int64_t, const DeviceGroups&)> group_by_expert{"group_by_expert"};
  /// (M, k + 1): the rows of each token and then its own, behind those of all pairs.
  Operation<void(const ExpertGroups&, std::span<std::int32_t>)> add_token_rows{"add_token_rows"};
  Operation<void(const ExpertGroups&, const ConstMatrix&, const Matrix&)> gather_rows{"gather_rows"};
  /// y[m] = Σ of weight · row over the rows of token m; without weights they are 1.
  Operation<void(const ExpertGroups&, std::span<const float>, const ConstMatrix&, const Matrix&)> sum_rows{"sum_rows"};
  Operation<void(const CombineBackward&)> combine_rows_backward{"combine_rows_backward"};
  Operation<void(std::span<const std::int32_t>, std::span<std::int32_t>)> count_rows{"count_rows"};
  Operation<void(std::span<const std::int32_t>, const RowOrder&)> order_rows{"order_rows"};
  Operation<void(const ConstMatrix&, std::span<const std::int32_t>, const Matrix&)> pick_rows{"pick_rows"};

  // optimizer. The first is for every update that its formula describes fully (kernels/optimizer/formulas).
  Operation<void(std::span<const OptimizerSegment>, const OptimizerDTypes&, const OptimizerGroups&)> optimizer_update{
      "optimizer_update"};
  Operation<void(std::span<const OptimizerSegment>, const OptimizerDTypes&, std::span<const LambScalars>,
                 const LambSums&)>
      lamb_prepare{"lamb_prepare"};

  // quantize
  Operation<void(const ConstMatrix&, const QuantBlocks&)> quantize{"quantize"};
  Operation<void(const ConstQuantBlocks&, const Matrix&)> dequantize{"dequantize"};

  // flat
  Operation<void(std::span<const float>, DType, std::span<std::byte>, float)> cast_from_f32{"cast_from_f32"};
  Operation<void(std::span<const std::byte>, DType, std::span<float>)> cast_to_f32{"cast_to_f32"};
  Operation<void(const Fold&)> fold_pieces{"fold_pieces"};
  Operation<void(std::span<const std::byte>, DType, std::int64_t, std::span<double>, std::span<float>)> block_stats{
      "block_stats"};
  Operation<void(std::span<const std::byte>, std::uint64_t, std::span<Hash128>)> hash_blocks{"hash_blocks"};
};

/// The table of a device (kernels/backends). Throws Error{"device_unavailable"} for a kind that this build has not.
const Backend& backend_of(const Device& device);
inline const Backend& backend_of(const Context& ctx) { return backend_of(ctx.device); }

}  // namespace zerofleet
