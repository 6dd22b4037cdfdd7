#include "kernels/gemm/cuda/matmuls.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <iterator>
#include <limits>
#include <optional>

#include "core/cuda/cuda_runtime.h"
#include "core/device/stream.h"
#include "core/device/transfer.h"
#include "core/error.h"
#include "kernels/gemm/cuda/noise_trial.h"
#include "kernels/gemm/cuda/ones_trial.h"

// cuBLASLt's matrices are column-major, and a row-major matrix read so is its transpose. So cuBLASLt computes Cᵀ (n, m)
// = op(B)ᵀ · op(A)ᵀ. Its A is our B and the other way round. A bias per row of Cᵀ is one per column of C. The input of
// GELU is a second matrix that lies as Cᵀ does, with a leading dimension of its own: our rows once more.
namespace zerofleet::cuda {
namespace {

using namespace cublaslt;

constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;  // NVIDIA's advice for Hopper
constexpr int kCandidates = 8;
/// Sums are split over k only where k is a multiple of this: a fault of some releases drops what lies behind the last
/// one.
constexpr std::int64_t kSplitUnit = 64;
constexpr int kTimedRuns = 3;
constexpr double kWorthwhile = 0.99;  // of the time before

std::optional<DataType> data_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return kFloat32;
    case DType::kBF16:
      return kBFloat16;
    case DType::kF16:
      return kFloat16;
  }
  return std::nullopt;
}

using EpilogueKind = GemmEpilogue::Kind;

std::int64_t depth_of(const Matmul& p) { return p.a_transposed ? p.a.rows : p.a.cols; }

/// cuBLASLt's GELU is by tanh, over a second matrix of C's type whose leading dimension is a multiple of 8. Its
/// accuracy in fp32 is not documented, so fp32 is left to a kernel of our own. A trial knows its result from 8 on.
bool takes_epilogue(const Matmul& p) {
  const Matrix& inner = p.epilogue.inner;
  return p.epilogue.gelu == GeluKind::kTanh && depth_of(p) >= 8 && p.a.dtype == p.c.dtype && p.c.dtype != DType::kF32 &&
         inner.stride % 8 == 0 && alignment_of(inner.data, inner.stride, inner.dtype) >= 16 && !p.accumulate &&
         (p.epilogue.kind == EpilogueKind::kGelu || p.bias == nullptr);
}

/// Returns true if cuBLASLt multiplies this pair of types with fp32 sums, and supports the epilogue.
bool takes(const Matmul& p) {
  if (p.c.dtype != DType::kF32 && p.a.dtype != p.c.dtype) return false;
  return p.epilogue.kind == EpilogueKind::kNone || takes_epilogue(p);
}

Epilogue epilogue_of(const Matmul& p) {
  switch (p.epilogue.kind) {
    case EpilogueKind::kNone:
      break;
    case EpilogueKind::kGelu:
      return p.bias == nullptr ? kGeluAux : kGeluAuxBias;
    case EpilogueKind::kGeluBackward:
      return kGeluGradient;
  }
  return p.bias == nullptr ? kNoEpilogue : kAddBias;
}

/// Algorithms that failed a trial are a fault of the library: worth a line in the rank's log.
void report_wrong(const Library& library, const Matmul& p, std::size_t num_wrong, bool found) {
  std::fprintf(stderr,
               "zerofleet: cuBLASLt %zu adds up a product of (%lld, %lld) by (%lld, %lld) wrongly with %zu of its "
               "algorithms; %s\n",
               library.get_version(), static_cast<long long>(p.c.rows), static_cast<long long>(depth_of(p)),
               static_cast<long long>(depth_of(p)), static_cast<long long>(p.c.cols), num_wrong,
               found ? "another one is used" : "a kernel of zerofleet computes it");
}

}  // namespace

std::uint32_t alignment_of(const void* data, std::int64_t stride, DType dtype) {
  const auto address =
      reinterpret_cast<std::uintptr_t>(data) | static_cast<std::uintptr_t>(stride) * size_of(dtype) | 256U;
  return std::uint32_t{1} << std::countr_zero(address);
}

/// All that a call needs beside the addresses.
struct Matmuls::Plan {
  explicit Plan(std::shared_ptr<const Library> opened) : library(std::move(opened)) {}
  ~Plan() {
    for (Layout* layout : {left, right, result}) {
      if (layout != nullptr) library->layout_destroy(layout);
    }
    if (desc != nullptr) library->desc_destroy(desc);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  std::shared_ptr<const Library> library;
  MatmulDesc* desc = nullptr;
  Layout *left = nullptr, *right = nullptr, *result = nullptr;  // of our B, A and C
  std::optional<Algorithm> algorithm;                           // none: the library can't do it
};

Matmuls::Matmuls(const Context& ctx, std::shared_ptr<const Library> library) : ctx_(ctx), library_(std::move(library)) {
  if (library_ == nullptr) return;
  use(ctx.device);
  check(library_->create(&handle_), "cublasLtCreate");
  workspace_ = Buffer(ctx.device, kWorkspaceBytes);
}

Matmuls::~Matmuls() {
  plans_.clear();
  if (handle_ != nullptr) library_->destroy(handle_);
}

std::string Matmuls::library_name() const {
  return library_ == nullptr ? "" : "cublasLt " + std::to_string(library_->get_version());
}

void Matmuls::check(Status status, const char* call) const {
  if (status == kSuccess) return;
  throw Error("device_failed",
              std::string(call) + ": " + library_->get_status_string(status) + " (" + std::to_string(status) + ")");
}

std::unique_ptr<Matmuls::Plan> Matmuls::make_plan(const Matmul& p, std::int64_t k) {
  auto plan = std::make_unique<Plan>(library_);
  describe(p, *plan);
  if (p.c.rows < 1 || p.c.cols < 1 || k < 1) return plan;
  const std::vector<Algorithm> found = candidates(p, k, *plan);
  if (found.empty()) return plan;
  OnesTrial trial(ctx_, p, k);
  const auto right = std::ranges::find_if(found, [&](const Algorithm& a) { return passes_trial(*plan, a, trial); });
  if (right != found.begin())
    report_wrong(*library_, p, static_cast<std::size_t>(right - found.begin()), right != found.end());
  if (right != found.end()) plan->algorithm = fastest(*plan, {right, found.end()}, trial);
  return plan;
}

// Which is the fastest differs from run to run and from GPU to GPU: it must not show in the result.
Algorithm Matmuls::fastest(const Plan& plan, std::span<const Algorithm> found, OnesTrial& ones) {
  Algorithm chosen = found.front();
  const Matrix& c = ones.product().c;
  if (c.rows * c.cols < NoiseTrial::kMinElements) return chosen;
  std::vector<Algorithm> others;
  std::ranges::copy_if(found.subspan(1), std::back_inserter(others),
                       [&](const Algorithm& a) { return passes_trial(plan, a, ones); });
  const NoiseTrial noise(ctx_, ones.product());
  double least = seconds_of(plan, chosen, noise.product());
  const std::uint64_t bits = noise.checksum();
  for (const Algorithm& other : others) {
    const double seconds = seconds_of(plan, other, noise.product());
    if (noise.checksum() != bits || seconds > kWorthwhile * least) continue;
    least = seconds;
    chosen = other;
  }
  return chosen;
}

/// The least of a few runs.
double Matmuls::seconds_of(const Plan& plan, const Algorithm& algorithm, const Matmul& product) {
  Event begin(ctx_.device, Event::Times::kKept), end(ctx_.device, Event::Times::kKept);
  double least = std::numeric_limits<double>::infinity();
  for (int run = 0; run < kTimedRuns; ++run) {
    begin.record(stream_of(ctx_));
    check(multiply(plan, algorithm, product), "cublasLtMatmul");
    end.record(stream_of(ctx_));
    end.synchronize();
    least = std::min(least, end.seconds_since(begin));
  }
  return least;
}

void Matmuls::describe(const Matmul& p, Plan& plan) const {
  const Library& lt = *library_;
  const DataType in = data_type(p.a.dtype).value(), out = data_type(p.c.dtype).value();
  const auto set = [&](MatmulAttribute attribute, auto value) {
    check(lt.desc_set(plan.desc, attribute, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
  };
  check(lt.desc_create(&plan.desc, kCompute32F, kFloat32), "cublasLtMatmulDescCreate");
  set(kTransposeA, p.b_transposed ? kTransposed : kAsItIs);
  set(kTransposeB, p.a_transposed ? kTransposed : kAsItIs);
  set(kEpilogue, epilogue_of(p));
  if (p.bias != nullptr) {
    set(kBiasDataType, static_cast<std::int32_t>(out));
    set(kBiasPointer, p.bias);  // the heuristic looks at its alignment
  }
  if (p.epilogue.kind != EpilogueKind::kNone) {
    set(kAuxLeadingDimension, p.epilogue.inner.stride);
    set(kAuxPointer, p.epilogue.inner.data);  // at its alignment, too
  }
  const auto layout = [&](Layout*& target, DataType type, const ConstMatrix& matrix) {
    check(lt.layout_create(&target, type, static_cast<std::uint64_t>(matrix.cols),
                           static_cast<std::uint64_t>(matrix.rows), matrix.stride),
          "cublasLtMatrixLayoutCreate");
  };
  layout(plan.left, in, p.b);
  layout(plan.right, in, p.a);
  layout(plan.result, out, p.c);
}

/// Algorithms in the heuristic's order; none where the library has none.
std::vector<Algorithm> Matmuls::candidates(const Matmul& p, std::int64_t k, const Plan& plan) const {
  const Library& lt = *library_;
  Preference* made = nullptr;
  check(lt.preference_create(&made), "cublasLtMatmulPreferenceCreate");
  const std::unique_ptr<Preference, Status (*)(Preference*)> preference(made, lt.preference_destroy);
  const auto prefer = [&](PreferenceAttribute attribute, auto value) {
    check(lt.preference_set(preference.get(), attribute, &value, sizeof value), "cublasLtMatmulPreferenceSetAttribute");
  };
  prefer(kMaxWorkspaceBytes, static_cast<std::uint64_t>(workspace_.num_bytes()));
  prefer(kReductionSchemeMask, k % kSplitUnit == 0 ? kFixedOrderReductions : kUnsplitSums);
  prefer(kMinAlignmentA, alignment_of(p.b.data, p.b.stride, p.b.dtype));
  prefer(kMinAlignmentB, alignment_of(p.a.data, p.a.stride, p.a.dtype));
  const std::uint32_t of_result = alignment_of(p.c.data, p.c.stride, p.c.dtype);
  prefer(kMinAlignmentC, of_result);
  prefer(kMinAlignmentD, of_result);
  Heuristic results[kCandidates] = {};
  int found = 0;
  const Status status = lt.get_heuristic(handle_, plan.desc, plan.left, plan.right, plan.result, plan.result,
                                         preference.get(), kCandidates, results, &found);
  // An epilogue that it lacks may be invalid to it: there is another way to compute that.
  const bool is_optional = p.epilogue.kind != EpilogueKind::kNone;
  if (status == kNotSupported || (is_optional && status == kInvalidValue)) return {};
  check(status, "cublasLtMatmulAlgoGetHeuristic");
  std::vector<Algorithm> algorithms;
  for (int i = 0; i < found; ++i) {
    if (results[i].state == kSuccess && results[i].workspace_bytes <= workspace_.num_bytes())
      algorithms.push_back(results[i].algorithm);
  }
  return algorithms;
}

bool Matmuls::passes_trial(const Plan& plan, const Algorithm& algorithm, OnesTrial& trial) {
  trial.prepare();
  const Status status = multiply(plan, algorithm, trial.product());
  if (status == kNotSupported || status == kInvalidValue) return false;
  check(status, "cublasLtMatmul");
  return trial.is_right();
}

Matmuls::Plan& Matmuls::plan_of(const Matmul& p) {
  const std::int64_t k = depth_of(p);
  // Not `accumulate`: the heuristic does not know of it.
  const int flags = (p.a_transposed ? 1 : 0) | (p.b_transposed ? 2 : 0) | (p.bias != nullptr ? 4 : 0) |
                    static_cast<int>(p.epilogue.kind) * 8;
  const auto alignment = [](const ConstMatrix& m) { return static_cast<int>(alignment_of(m.data, m.stride, m.dtype)); };
  const int bias_alignment = p.bias == nullptr ? 0 : static_cast<int>(alignment_of(p.bias, 0, p.c.dtype));
  const Matrix& inner = p.epilogue.inner;
  const int types = static_cast<int>(p.a.dtype) * 16 + static_cast<int>(p.c.dtype);
  const Key key{p.c.rows,
                p.c.cols,
                k,
                p.a.stride,
                p.b.stride,
                p.c.stride,
                inner.stride,
                types * 32 + flags,
                alignment(p.a) * 1024 + alignment(p.b),
                alignment(p.c) * 1024 + alignment(inner),
                bias_alignment};
  std::unique_ptr<Plan>& plan = plans_[key];
  if (plan == nullptr) plan = make_plan(p, k);
  return *plan;
}

bool Matmuls::can_run(const Matmul& p) { return library_ != nullptr && takes(p) && plan_of(p).algorithm.has_value(); }

void Matmuls::run(const Matmul& p) {
  const Plan& plan = plan_of(p);
  check(multiply(plan, plan.algorithm.value(), p), "cublasLtMatmul");
}

Status Matmuls::multiply(const Plan& plan, const Algorithm& algorithm, const Matmul& p) {
  const auto set_pointer = [&](MatmulAttribute attribute, const void* address) {
    check(library_->desc_set(plan.desc, attribute, &address, sizeof address), "cublasLtMatmulDescSetAttribute");
  };
  if (p.bias != nullptr) set_pointer(kBiasPointer, p.bias);
  if (p.epilogue.kind != EpilogueKind::kNone) set_pointer(kAuxPointer, p.epilogue.inner.data);
  const float beta = p.accumulate ? 1 : 0;
  return library_->matmul(handle_, plan.desc, &p.alpha, p.b.data, plan.left, p.a.data, plan.right, &beta, p.c.data,
                          plan.result, p.c.data, plan.result, &algorithm, workspace_.data(), workspace_.num_bytes(),
                          stream_of(ctx_).handle());
}

}  // namespace zerofleet::cuda
