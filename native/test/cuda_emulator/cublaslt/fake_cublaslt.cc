// A libcublasLt for tests: the entry points that kernels/gemm/cuda/cublaslt_library.h names, over the memory of the
// emulated device and in the order of its streams. It refuses what the real one refuses, as far as it is documented,
// and counts the choices of algorithms. GELU is computed from the sum, and from what it was rounded to for its
// gradient.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "core/dtype.h"
#include "matmul_job.h"

#define ZF_EXPORT extern "C" __attribute__((visibility("default")))

using zerofleet::DType;

namespace {

constexpr int kSuccess = 0, kInvalidValue = 7, kNotSupported = 15;
std::atomic<int> num_heuristics{0}, num_products{0}, num_gelus{0};
std::atomic<bool> has_gelu{true};

std::atomic<int> num_slow{0};
std::atomic<bool> has_choice{false};   // of a slow one, one that adds backwards, and the usual one
std::atomic<Fault> fault{kNoFault};    // of an algorithm that is offered before a right one
std::atomic<bool> only_faulty{false};  // no right one is offered

struct Algorithm {
  std::uint64_t data[8];
};

struct Heuristic {
  Algorithm algorithm;
  std::size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};

}  // namespace

struct Preference {
  std::uint64_t workspace_bytes = 0;
  std::uint32_t reductions = 7;
  std::array<std::uint32_t, 4> alignment{256, 256, 256, 256};
};

namespace {

bool fits(const MatmulDesc& desc, const Layout& a, const Layout& b, const Layout& d) {
  const std::int64_t m = desc.transpose_a != 0 ? a.cols : a.rows, k = desc.transpose_a != 0 ? a.rows : a.cols;
  const std::int64_t b_k = desc.transpose_b != 0 ? b.cols : b.rows, n = desc.transpose_b != 0 ? b.rows : b.cols;
  return m == d.rows && n == d.cols && k == b_k && a.stride >= a.rows && b.stride >= b.rows && d.stride >= d.rows;
}

/// Returns true if the epilogue has all its inputs. They are the bias and its type, and a second matrix whose leading
/// dimension is a multiple of 8 and no less than D's rows. There is no epilogue for both a bias and a gradient here.
bool is_complete(const MatmulDesc& desc, const Layout& d) {
  constexpr std::uint32_t kKnown[] = {1, kBias, kGelu | kAux, kGelu | kAux | kBias, kGeluGradient | kAux};
  if (std::ranges::find(kKnown, desc.epilogue) == std::end(kKnown)) return false;
  if (((desc.epilogue & kBias) != 0) != (desc.bias != nullptr)) return false;
  if ((desc.epilogue & kAux) == 0) return desc.aux == nullptr && desc.aux_stride == 0;
  return desc.aux != nullptr && desc.aux_stride % 8 == 0 && desc.aux_stride >= d.rows;
}

/// The largest power of two up to 256 that an address is a multiple of.
std::uint64_t alignment_of(const void* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data) | 256U;
  return address & (~address + 1);
}

}  // namespace

ZF_EXPORT std::size_t cublasLtGetVersion() { return 130101; }
ZF_EXPORT const char* cublasLtGetStatusString(int) { return "from the test's cuBLASLt"; }
ZF_EXPORT int cublasLtCreate(void** handle) {
  *handle = &num_heuristics;
  return kSuccess;
}
ZF_EXPORT int cublasLtDestroy(void*) { return kSuccess; }
ZF_EXPORT int zf_num_heuristics() { return num_heuristics; }
/// Products, trials of algorithms included.
ZF_EXPORT int zf_num_products() { return num_products; }
/// The number of these with GELU in their epilogue.
ZF_EXPORT int zf_num_gelus() { return num_gelus; }
/// The number of these by the slow algorithm.
ZF_EXPORT int zf_num_slow() { return num_slow; }
/// Sets whether a slow algorithm and one that adds in another order are offered before the usual one.
ZF_EXPORT void zf_have_choice(bool have) { has_choice = have; }
/// Sets whether the library has algorithms for GELU epilogues.
ZF_EXPORT void zf_have_gelu(bool have) { has_gelu = have; }
/// Sets the fault of an algorithm that is offered before the right one, or alone.
ZF_EXPORT void zf_have_fault(int which, bool alone) {
  fault = static_cast<Fault>(which);
  only_faulty = alone;
}

ZF_EXPORT int cublasLtMatmulDescCreate(MatmulDesc** desc, int compute, int scale) {
  if (compute != 68 || scale != 0) return kNotSupported;
  *desc = std::make_unique<MatmulDesc>().release();
  return kSuccess;
}
ZF_EXPORT int cublasLtMatmulDescDestroy(MatmulDesc* desc) {
  const std::unique_ptr<MatmulDesc> owner(desc);
  return kSuccess;
}
ZF_EXPORT int cublasLtMatmulDescSetAttribute(MatmulDesc* desc, int attribute, const void* value,
                                             std::size_t num_bytes) {
  const auto set = [&](auto& field) {
    if (num_bytes != sizeof field) return kInvalidValue;
    std::memcpy(&field, value, num_bytes);
    return kSuccess;
  };
  switch (attribute) {
    case 3:
      return set(desc->transpose_a);
    case 4:
      return set(desc->transpose_b);
    case 7:
      return set(desc->epilogue);
    case 8:
      return set(desc->bias);
    case 11:
      return set(desc->aux);
    case 12:
      return set(desc->aux_stride);
    case 26:
      return set(desc->bias_type);
    default:
      return kInvalidValue;
  }
}

ZF_EXPORT int cublasLtMatrixLayoutCreate(Layout** layout, int type, std::uint64_t rows, std::uint64_t cols,
                                         std::int64_t stride) {
  *layout = std::make_unique<Layout>(
                Layout{dtype_of(type), static_cast<std::int64_t>(rows), static_cast<std::int64_t>(cols), stride})
                .release();
  return kSuccess;
}
ZF_EXPORT int cublasLtMatrixLayoutDestroy(Layout* layout) {
  const std::unique_ptr<Layout> owner(layout);
  return kSuccess;
}

ZF_EXPORT int cublasLtMatmulPreferenceCreate(Preference** preference) {
  *preference = std::make_unique<Preference>().release();
  return kSuccess;
}
ZF_EXPORT int cublasLtMatmulPreferenceDestroy(Preference* preference) {
  const std::unique_ptr<Preference> owner(preference);
  return kSuccess;
}
ZF_EXPORT int cublasLtMatmulPreferenceSetAttribute(Preference* preference, int attribute, const void* value,
                                                   std::size_t num_bytes) {
  if (attribute == 1 && num_bytes == 8) {
    std::memcpy(&preference->workspace_bytes, value, num_bytes);
  } else if (attribute == 3 && num_bytes == 4) {
    std::memcpy(&preference->reductions, value, num_bytes);
  } else if (attribute >= 5 && attribute <= 8 && num_bytes == 4) {
    std::memcpy(&preference->alignment[static_cast<std::size_t>(attribute - 5)], value, num_bytes);
  } else {
    return kInvalidValue;
  }
  return kSuccess;
}

// An algorithm remembers the alignment that it was chosen for, and that of the second matrix, whose address the
// heuristic looks at. Those for operands at odd addresses are missing, as they are for some shapes in the real library.
// The first candidate cannot be used: who takes it without a look fails. Sums that are split over k drop their end,
// unless k is a multiple of 64.
ZF_EXPORT int cublasLtMatmulAlgoGetHeuristic(void*, const MatmulDesc* desc, const Layout* a, const Layout* b,
                                             const Layout* c, const Layout* d, const Preference* preference,
                                             int requested, Heuristic* results, int* returned) {
  ++num_heuristics;
  *returned = 0;
  if (!fits(*desc, *a, *b, *d) || c->rows != d->rows || c->cols != d->cols || requested < 5) return kInvalidValue;
  if (!is_complete(*desc, *d)) return kInvalidValue;
  if ((desc->epilogue & kAux) != 0 && !has_gelu) return kNotSupported;
  if ((preference->reductions & ~2U) != 0) return kInvalidValue;  // this project wants sums of a fixed order
  if (std::ranges::min(preference->alignment) < size_of(d->dtype)) return kNotSupported;
  if (a->rows % 2 == 1 && a->dtype != DType::kF32) return kNotSupported;
  const auto offer = [&](Fault with) {
    results[(*returned)++] = {{{2, preference->alignment[0], preference->alignment[1], preference->alignment[2],
                                preference->alignment[3], alignment_of(desc->aux), desc->epilogue, with}},
                              1024,
                              kSuccess,
                              1,
                              {}};
  };
  const std::int64_t k = desc->transpose_a != 0 ? a->rows : a->cols;
  results[(*returned)++] = {{{1}}, preference->workspace_bytes + 1, kSuccess, 1, {}};
  if (preference->reductions != 0 && k % 64 != 0) offer(kDropsEndOfK);
  if (fault != kNoFault) offer(fault);
  if (has_choice) offer(kTakesItsTime);
  if (has_choice) offer(kAddsBackwards);
  if (!only_faulty) offer(kNoFault);
  return kSuccess;
}

ZF_EXPORT int cublasLtMatmul(void*, const MatmulDesc* desc, const float* alpha, const void* a, const Layout* a_layout,
                             const void* b, const Layout* b_layout, const float* beta, const void* c, const Layout*,
                             void* d, const Layout* d_layout, const Algorithm* algorithm, void* workspace,
                             std::size_t workspace_bytes, cudaStream_t stream) {
  const auto aligned = [&](const void* data, std::size_t which) {
    return reinterpret_cast<std::uintptr_t>(data) % algorithm->data[which] == 0;
  };
  if (algorithm->data[0] != 2 || c != d || workspace == nullptr || workspace_bytes < 1024) return kInvalidValue;
  if (!aligned(a, 1) || !aligned(b, 2) || !aligned(c, 3) || !aligned(d, 4) ||
      !fits(*desc, *a_layout, *b_layout, *d_layout))
    return kInvalidValue;
  if (!is_complete(*desc, *d_layout) || !aligned(desc->aux, 5) || desc->epilogue != algorithm->data[6])
    return kInvalidValue;
  ++num_products;
  if (algorithm->data[7] == kTakesItsTime) ++num_slow;
  if ((desc->epilogue & kAux) != 0) ++num_gelus;
  auto job = std::make_unique<Job>(Job{*desc, *a_layout, *b_layout, *d_layout, static_cast<const std::byte*>(a),
                                       static_cast<const std::byte*>(b), static_cast<std::byte*>(d), *alpha, *beta,
                                       algorithm->data[7]});
  const cudaError_t status = cudaLaunchHostFunc(
      stream,
      [](void* data) {
        const std::unique_ptr<Job> owner(static_cast<Job*>(data));
        multiply(*owner);
      },
      job.get());
  if (status != cudaSuccess) return kInvalidValue;
  job.release();
  return kSuccess;
}
