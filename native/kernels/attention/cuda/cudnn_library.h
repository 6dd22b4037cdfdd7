#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "core/system/shared_library.h"

struct CUstream_st;

// The part of cuDNN's backend API that is used, declared here: the library is opened at run time, so that neither
// building nor loading needs it. Types and values are as cudnn_graph.h of cuDNN 9 has them.
namespace zerofleet::cudnn {

struct Handle;            // cudnnContext
struct OpaqueDescriptor;  // what a cudnnBackendDescriptor_t points to

using Status = int;  // cudnnStatus_t
inline constexpr Status kSuccess = 0;

enum DescriptorType : int {  // cudnnBackendDescriptorType_t
  kPointwise = 0,
  kEngine = 2,
  kEngineConfig = 3,
  kHeuristics = 4,
  kExecutionPlan = 5,
  kPointwiseOperation = 13,
  kOperationGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
  kMatmul = 18,
  kMatmulOperation = 19,
  kReduction = 21,
  kReductionOperation = 22,
  kReshapeOperation = 31,
  kDeviceProperties = 38
};

enum AttributeType : int {  // cudnnBackendAttributeType_t
  kHandleType = 0,
  kDataTypeType = 1,
  kBooleanType = 2,
  kInt64Type = 3,
  kPointerType = 6,
  kHeuristicModeType = 8,
  kNumericalNoteType = 11,
  kPointwiseModeType = 14,
  kDescriptorType = 15,
  kReductionOperatorType = 18,
  kCharType = 24
};

enum Attribute : int {  // cudnnBackendAttributeName_t
  kPointwiseMode = 0,
  kPointwiseComputeType = 1,
  kPointwiseAxis = 9,
  kHeuristicsMode = 200,
  kHeuristicsGraph = 201,
  kHeuristicsResults = 202,
  kHeuristicsDevice = 204,
  kConfigEngine = 300,
  kConfigWorkspaceBytes = 303,
  kPlanHandle = 400,
  kPlanConfig = 401,
  kPlanWorkspaceBytes = 402,
  kOperationPointwise = 750,
  kOperationPointwiseX = 751,
  kOperationPointwiseB = 752,
  kOperationPointwiseY = 753,
  kOperationPointwiseT = 758,
  kGraphHandle = 800,
  kGraphOperations = 801,
  kTensorAlignment = 900,
  kTensorDataType = 901,
  kTensorDimensions = 902,
  kTensorStrides = 903,
  kTensorId = 906,
  kTensorIsVirtual = 907,
  kTensorIsByValue = 908,
  kPackIds = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
  kEngineNumericalNotes = 1303,
  kMatmulComputeType = 1500,
  kOperationMatmulA = 1520,
  kOperationMatmulB = 1521,
  kOperationMatmulC = 1522,
  kOperationMatmul = 1523,
  kReductionOperator = 1600,
  kReductionComputeType = 1601,
  kOperationReductionX = 1610,
  kOperationReductionY = 1611,
  kOperationReduction = 1612,
  kOperationReshapeX = 2200,
  kOperationReshapeY = 2201,
  kDeviceJson = 2702
};

enum DataType : int { kFloat32 = 0, kFloat16 = 2, kInt32 = 4, kBFloat16 = 9, kBool = 11 };  // cudnnDataType_t
enum PointwiseMode : int {                                                                  // cudnnPointwiseMode_t
  kAdd = 0,
  kMultiply = 1,
  kDivide = 6,
  kSubtract = 9,
  kExp = 13,
  kLog = 15,
  kGreater = 302,
  kGreaterOrEqual = 303,
  kIndex = 501,
  kSelect = 601
};
enum ReductionOperator : int { kSum = 0, kMaximum = 3 };             // cudnnReduceTensorOp_t
enum HeuristicMode : int { kModeA = 3 };                             // cudnnBackendHeurMode_t
enum NumericalNote : int { kNondeterministic = 4, kNumNotes = 10 };  // cudnnBackendNumericalNote_t

/// The opened library.
struct Library {
  explicit Library(std::span<const std::string> file_names);

  SharedLibrary file;
  std::size_t (*get_version)() = nullptr;
  std::size_t (*get_cuda_version)() = nullptr;  // 13000 for 13.0: that which it was built for
  const char* (*get_error_string)(Status) = nullptr;
  void (*get_last_error)(char* message, std::size_t num_bytes) = nullptr;
  Status (*create)(Handle**) = nullptr;
  Status (*destroy)(Handle*) = nullptr;
  Status (*set_stream)(Handle*, CUstream_st*) = nullptr;
  Status (*descriptor_create)(DescriptorType, OpaqueDescriptor**) = nullptr;
  Status (*descriptor_destroy)(OpaqueDescriptor*) = nullptr;
  Status (*descriptor_set)(OpaqueDescriptor*, Attribute, AttributeType, std::int64_t count, const void*) = nullptr;
  Status (*descriptor_get)(const OpaqueDescriptor*, Attribute, AttributeType, std::int64_t requested,
                           std::int64_t* count, void*) = nullptr;
  Status (*descriptor_finalize)(OpaqueDescriptor*) = nullptr;
  Status (*execute)(Handle*, OpaqueDescriptor* plan, OpaqueDescriptor* variant_pack) = nullptr;

  /// "cuDNN 9.24.0".
  std::string name() const;
  /// The library's message about the last call that failed, in one line; empty if there is none.
  std::string last_error() const;
};

/// The library does not support something: what is not an error, because a kernel of our own does it.
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws Refusal if cuDNN does not support the request. Throws Error{"device_failed"} for every other failure, because
/// a failure of this machine must not make its rank choose another kernel than the other ranks.
void check(const Library& library, Status status, const char* call);
/// True for a message about something that this machine lacks, such as the compiler that the library needs.
bool is_about_machine(const std::string& message);

/// Opens the first of the named libraries that is there; null where none can be opened. Throws
/// Error{"device_unavailable"} with the name of a function that the library lacks.
std::shared_ptr<const Library> open_library(std::span<const std::string> file_names);

/// The file that the environment variable ZF_CUDNN names alone, or else one of the usual names on the library path of
/// the process. Null where none of these can be opened, and where the variable is "off". Null also without a cuBLASLt
/// of the library's version of CUDA, whose absence ends a process that uses cuDNN. Throws Error{"device_unavailable"}
/// where the variable's file can't be opened, or is for another CUDA than cuBLASLt.
std::shared_ptr<const Library> open_default_library();

}  // namespace zerofleet::cudnn
