#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/system/shared_library.h"

struct CUstream_st;

// Declarations of the part of cuBLASLt that is used. The library is opened at run time, so neither building nor loading
// needs it. Types and values follow cublasLt.h of CUDA 12 and 13.
namespace zerofleet::cublaslt {

struct Handle;      // cublasLtContext
struct MatmulDesc;  // cublasLtMatmulDescOpaque_t
struct Layout;      // cublasLtMatrixLayoutOpaque_t
struct Preference;  // cublasLtMatmulPreferenceOpaque_t

using Status = int;  // cublasStatus_t
inline constexpr Status kSuccess = 0, kInvalidValue = 7, kNotSupported = 15;

enum DataType : int { kFloat32 = 0, kFloat16 = 2, kBFloat16 = 14 };  // cudaDataType
enum ComputeType : int { kCompute32F = 68 };                         // cublasComputeType_t
enum Operation : std::int32_t { kAsItIs = 0, kTransposed = 1 };      // cublasOperation_t
enum MatmulAttribute : int {
  kTransposeA = 3,
  kTransposeB = 4,
  kEpilogue = 7,
  kBiasPointer = 8,
  kAuxPointer = 11,
  kAuxLeadingDimension = 12,
  kBiasDataType = 26
};
/// GELU in its tanh form. Aux: a second matrix of D's type, which receives the input of GELU, or provides it for the
/// gradient.
enum Epilogue : std::uint32_t {
  kNoEpilogue = 1,
  kAddBias = 4,
  kGeluAux = 32 | 128,
  kGeluAuxBias = kGeluAux | kAddBias,
  kGeluGradient = 64 | 128
};
enum PreferenceAttribute : int {
  kMaxWorkspaceBytes = 1,
  kReductionSchemeMask = 3,
  kMinAlignmentA = 5,
  kMinAlignmentB = 6,
  kMinAlignmentC = 7,
  kMinAlignmentD = 8
};
/// Reduction schemes: sums in one pass, or in several passes. The fp32 parts of several passes lie in the workspace,
/// and are added in a fixed order.
inline constexpr std::uint32_t kUnsplitSums = 0, kFixedOrderReductions = kUnsplitSums | 2;

struct Algorithm {  // cublasLtMatmulAlgo_t
  std::uint64_t data[8];
};

struct Heuristic {  // cublasLtMatmulHeuristicResult_t
  Algorithm algorithm;
  std::size_t workspace_bytes;
  Status state;
  float waves;
  int reserved[4];
};

/// The opened library.
struct Library {
  explicit Library(std::span<const std::string> file_names);

  SharedLibrary file;
  std::size_t (*get_version)() = nullptr;
  const char* (*get_status_string)(Status) = nullptr;
  Status (*create)(Handle**) = nullptr;
  Status (*destroy)(Handle*) = nullptr;
  Status (*desc_create)(MatmulDesc**, ComputeType, DataType scale) = nullptr;
  Status (*desc_destroy)(MatmulDesc*) = nullptr;
  Status (*desc_set)(MatmulDesc*, MatmulAttribute, const void*, std::size_t) = nullptr;
  Status (*layout_create)(Layout**, DataType, std::uint64_t rows, std::uint64_t cols, std::int64_t stride) = nullptr;
  Status (*layout_destroy)(Layout*) = nullptr;
  Status (*preference_create)(Preference**) = nullptr;
  Status (*preference_destroy)(Preference*) = nullptr;
  Status (*preference_set)(Preference*, PreferenceAttribute, const void*, std::size_t) = nullptr;
  Status (*get_heuristic)(Handle*, MatmulDesc*, Layout* a, Layout* b, Layout* c, Layout* d, Preference*, int requested,
                          Heuristic* results, int* returned) = nullptr;
  Status (*matmul)(Handle*, MatmulDesc*, const void* alpha, const void* a, Layout*, const void* b, Layout*,
                   const void* beta, const void* c, Layout*, void* d, Layout*, const Algorithm*, void* workspace,
                   std::size_t workspace_bytes, CUstream_st*) = nullptr;
};

/// Opens the first of the named libraries that exists; null if none can be opened. Throws Error{"device_unavailable"}
/// with the name of a function that the library lacks.
std::shared_ptr<const Library> open_library(std::span<const std::string> file_names);

/// Opens the file that the environment variable ZF_CUBLASLT names. Without the variable, opens the library by its usual
/// names on the library path of the process; null if none can be opened. Throws Error{"device_unavailable"} if the
/// variable's file cannot be opened.
std::shared_ptr<const Library> open_default_library();

}  // namespace zerofleet::cublaslt
