#include "test/real_headers/real_headers.h"

#if __has_include(<cudnn.h>) && __has_include(<cuda_runtime_api.h>)
#include <cudnn.h>

#include "kernels/attention/cuda/cudnn_library.h"
#include "test/real_headers/same_call.h"

namespace zerofleet::test {
namespace {

namespace ours = cudnn;

static_assert(CUDNN_MAJOR == 9 && ours::kSuccess == CUDNN_STATUS_SUCCESS &&
              sizeof(ours::Status) == sizeof(cudnnStatus_t));

#define ZF_COMPARE(name, theirs) static_assert(static_cast<int>(ours::name) == static_cast<int>(theirs))
ZF_COMPARE(kPointwise, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
ZF_COMPARE(kEngine, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
ZF_COMPARE(kEngineConfig, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
ZF_COMPARE(kHeuristics, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
ZF_COMPARE(kExecutionPlan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
ZF_COMPARE(kPointwiseOperation, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
ZF_COMPARE(kOperationGraph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
ZF_COMPARE(kVariantPack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
ZF_COMPARE(kTensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
ZF_COMPARE(kMatmul, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
ZF_COMPARE(kMatmulOperation, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
ZF_COMPARE(kReduction, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
ZF_COMPARE(kReductionOperation, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
ZF_COMPARE(kReshapeOperation, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);

ZF_COMPARE(kHandleType, CUDNN_TYPE_HANDLE);
ZF_COMPARE(kDataTypeType, CUDNN_TYPE_DATA_TYPE);
ZF_COMPARE(kBooleanType, CUDNN_TYPE_BOOLEAN);
ZF_COMPARE(kInt64Type, CUDNN_TYPE_INT64);
ZF_COMPARE(kPointerType, CUDNN_TYPE_VOID_PTR);
ZF_COMPARE(kHeuristicModeType, CUDNN_TYPE_HEUR_MODE);
ZF_COMPARE(kNumericalNoteType, CUDNN_TYPE_NUMERICAL_NOTE);
ZF_COMPARE(kPointwiseModeType, CUDNN_TYPE_POINTWISE_MODE);
ZF_COMPARE(kDescriptorType, CUDNN_TYPE_BACKEND_DESCRIPTOR);
ZF_COMPARE(kReductionOperatorType, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE);
ZF_COMPARE(kCharType, CUDNN_TYPE_CHAR);

ZF_COMPARE(kPointwiseMode, CUDNN_ATTR_POINTWISE_MODE);
ZF_COMPARE(kPointwiseComputeType, CUDNN_ATTR_POINTWISE_MATH_PREC);
ZF_COMPARE(kPointwiseAxis, CUDNN_ATTR_POINTWISE_AXIS);
ZF_COMPARE(kHeuristicsMode, CUDNN_ATTR_ENGINEHEUR_MODE);
ZF_COMPARE(kHeuristicsGraph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
ZF_COMPARE(kHeuristicsResults, CUDNN_ATTR_ENGINEHEUR_RESULTS);
ZF_COMPARE(kConfigEngine, CUDNN_ATTR_ENGINECFG_ENGINE);
ZF_COMPARE(kPlanHandle, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
ZF_COMPARE(kPlanConfig, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
ZF_COMPARE(kPlanWorkspaceBytes, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
ZF_COMPARE(kOperationPointwise, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
ZF_COMPARE(kOperationPointwiseX, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
ZF_COMPARE(kOperationPointwiseB, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
ZF_COMPARE(kOperationPointwiseY, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
ZF_COMPARE(kOperationPointwiseT, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
ZF_COMPARE(kGraphHandle, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
ZF_COMPARE(kGraphOperations, CUDNN_ATTR_OPERATIONGRAPH_OPS);
ZF_COMPARE(kTensorAlignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
ZF_COMPARE(kTensorDataType, CUDNN_ATTR_TENSOR_DATA_TYPE);
ZF_COMPARE(kTensorDimensions, CUDNN_ATTR_TENSOR_DIMENSIONS);
ZF_COMPARE(kTensorStrides, CUDNN_ATTR_TENSOR_STRIDES);
ZF_COMPARE(kTensorId, CUDNN_ATTR_TENSOR_UNIQUE_ID);
ZF_COMPARE(kTensorIsVirtual, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
ZF_COMPARE(kTensorIsByValue, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
ZF_COMPARE(kPackIds, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
ZF_COMPARE(kPackPointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
ZF_COMPARE(kPackWorkspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
ZF_COMPARE(kEngineNumericalNotes, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
ZF_COMPARE(kMatmulComputeType, CUDNN_ATTR_MATMUL_COMP_TYPE);
ZF_COMPARE(kOperationMatmulA, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
ZF_COMPARE(kOperationMatmulB, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
ZF_COMPARE(kOperationMatmulC, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
ZF_COMPARE(kOperationMatmul, CUDNN_ATTR_OPERATION_MATMUL_DESC);
ZF_COMPARE(kReductionOperator, CUDNN_ATTR_REDUCTION_OPERATOR);
ZF_COMPARE(kReductionComputeType, CUDNN_ATTR_REDUCTION_COMP_TYPE);
ZF_COMPARE(kOperationReductionX, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
ZF_COMPARE(kOperationReductionY, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
ZF_COMPARE(kOperationReduction, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
ZF_COMPARE(kOperationReshapeX, CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
ZF_COMPARE(kOperationReshapeY, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
#if CUDNN_VERSION >= 90800  // with described devices, which only a test uses
ZF_COMPARE(kDeviceProperties, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
ZF_COMPARE(kHeuristicsDevice, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
ZF_COMPARE(kConfigWorkspaceBytes, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE);
ZF_COMPARE(kDeviceJson, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
#endif

ZF_COMPARE(kFloat32, CUDNN_DATA_FLOAT);
ZF_COMPARE(kFloat16, CUDNN_DATA_HALF);
ZF_COMPARE(kInt32, CUDNN_DATA_INT32);
ZF_COMPARE(kBFloat16, CUDNN_DATA_BFLOAT16);
ZF_COMPARE(kBool, CUDNN_DATA_BOOLEAN);
ZF_COMPARE(kAdd, CUDNN_POINTWISE_ADD);
ZF_COMPARE(kMultiply, CUDNN_POINTWISE_MUL);
ZF_COMPARE(kDivide, CUDNN_POINTWISE_DIV);
ZF_COMPARE(kSubtract, CUDNN_POINTWISE_SUB);
ZF_COMPARE(kExp, CUDNN_POINTWISE_EXP);
ZF_COMPARE(kLog, CUDNN_POINTWISE_LOG);
ZF_COMPARE(kGreater, CUDNN_POINTWISE_CMP_GT);
ZF_COMPARE(kGreaterOrEqual, CUDNN_POINTWISE_CMP_GE);
ZF_COMPARE(kIndex, CUDNN_POINTWISE_GEN_INDEX);
ZF_COMPARE(kSelect, CUDNN_POINTWISE_BINARY_SELECT);
ZF_COMPARE(kSum, CUDNN_REDUCE_TENSOR_ADD);
ZF_COMPARE(kMaximum, CUDNN_REDUCE_TENSOR_MAX);
ZF_COMPARE(kModeA, CUDNN_HEUR_MODE_A);
ZF_COMPARE(kNondeterministic, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
ZF_COMPARE(kNumNotes, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
#undef ZF_COMPARE

using Library = ours::Library;
static_assert(kSameCall<decltype(Library::get_version), decltype(cudnnGetVersion)>);
static_assert(kSameCall<decltype(Library::get_cuda_version), decltype(cudnnGetCudartVersion)>);
static_assert(kSameCall<decltype(Library::get_error_string), decltype(cudnnGetErrorString)>);
static_assert(kSameCall<decltype(Library::create), decltype(cudnnCreate)>);
static_assert(kSameCall<decltype(Library::destroy), decltype(cudnnDestroy)>);
static_assert(kSameCall<decltype(Library::set_stream), decltype(cudnnSetStream)>);
static_assert(kSameCall<decltype(Library::descriptor_create), decltype(cudnnBackendCreateDescriptor)>);
static_assert(kSameCall<decltype(Library::descriptor_destroy), decltype(cudnnBackendDestroyDescriptor)>);
static_assert(kSameCall<decltype(Library::descriptor_set), decltype(cudnnBackendSetAttribute)>);
static_assert(kSameCall<decltype(Library::descriptor_get), decltype(cudnnBackendGetAttribute)>);
static_assert(kSameCall<decltype(Library::descriptor_finalize), decltype(cudnnBackendFinalize)>);
static_assert(kSameCall<decltype(Library::execute), decltype(cudnnBackendExecute)>);
static_assert(std::is_same_v<decltype(cudnnGetLastErrorString), void(char*, std::size_t)>);

}  // namespace

std::string compared_cudnn_header() {
  return std::to_string(CUDNN_MAJOR) + "." + std::to_string(CUDNN_MINOR) + "." + std::to_string(CUDNN_PATCHLEVEL);
}

}  // namespace zerofleet::test
#else
std::string zerofleet::test::compared_cudnn_header() { return ""; }
#endif
