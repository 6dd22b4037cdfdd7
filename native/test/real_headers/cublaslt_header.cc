#include "test/real_headers/real_headers.h"

#if __has_include(<cublasLt.h>) && __has_include(<cuda_runtime_api.h>)
#include <cublasLt.h>

#include <cstddef>

#include "kernels/gemm/cuda/cublaslt_library.h"
#include "test/real_headers/same_call.h"

namespace zerofleet::test {
namespace {

using namespace cublaslt;

static_assert(kSuccess == CUBLAS_STATUS_SUCCESS);
static_assert(kInvalidValue == CUBLAS_STATUS_INVALID_VALUE);
static_assert(kNotSupported == CUBLAS_STATUS_NOT_SUPPORTED);
static_assert(int{kFloat32} == CUDA_R_32F && int{kFloat16} == CUDA_R_16F && int{kBFloat16} == CUDA_R_16BF);
static_assert(int{kCompute32F} == CUBLAS_COMPUTE_32F);
static_assert(int{kAsItIs} == CUBLAS_OP_N && int{kTransposed} == CUBLAS_OP_T &&
              sizeof(Operation) == sizeof(cublasOperation_t));

static_assert(int{kTransposeA} == CUBLASLT_MATMUL_DESC_TRANSA && int{kTransposeB} == CUBLASLT_MATMUL_DESC_TRANSB);
static_assert(int{kEpilogue} == CUBLASLT_MATMUL_DESC_EPILOGUE);
static_assert(int{kBiasPointer} == CUBLASLT_MATMUL_DESC_BIAS_POINTER);
static_assert(int{kBiasDataType} == CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
static_assert(int{kAuxPointer} == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER);
static_assert(int{kAuxLeadingDimension} == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD);

static_assert(int{kNoEpilogue} == CUBLASLT_EPILOGUE_DEFAULT && int{kAddBias} == CUBLASLT_EPILOGUE_BIAS);
static_assert(int{kGeluAux} == CUBLASLT_EPILOGUE_GELU_AUX && int{kGeluAuxBias} == CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
static_assert(int{kGeluGradient} == CUBLASLT_EPILOGUE_DGELU && sizeof(Epilogue) == sizeof(cublasLtEpilogue_t));

static_assert(int{kMaxWorkspaceBytes} == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(int{kReductionSchemeMask} == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
static_assert(int{kMinAlignmentA} == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
static_assert(int{kMinAlignmentB} == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
static_assert(int{kMinAlignmentC} == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
static_assert(int{kMinAlignmentD} == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
static_assert(kFixedOrderReductions == (CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));

static_assert(sizeof(Algorithm) == sizeof(cublasLtMatmulAlgo_t));
using TheirHeuristic = cublasLtMatmulHeuristicResult_t;
static_assert(sizeof(Heuristic) == sizeof(TheirHeuristic) && alignof(Heuristic) == alignof(TheirHeuristic));
static_assert(offsetof(Heuristic, algorithm) == offsetof(TheirHeuristic, algo));
static_assert(offsetof(Heuristic, workspace_bytes) == offsetof(TheirHeuristic, workspaceSize));
static_assert(offsetof(Heuristic, state) == offsetof(TheirHeuristic, state));
static_assert(offsetof(Heuristic, waves) == offsetof(TheirHeuristic, wavesCount));

static_assert(kSameCall<decltype(Library::get_version), decltype(cublasLtGetVersion)>);
static_assert(kSameCall<decltype(Library::get_status_string), decltype(cublasLtGetStatusString)>);
static_assert(kSameCall<decltype(Library::create), decltype(cublasLtCreate)>);
static_assert(kSameCall<decltype(Library::destroy), decltype(cublasLtDestroy)>);
static_assert(kSameCall<decltype(Library::desc_create), decltype(cublasLtMatmulDescCreate)>);
static_assert(kSameCall<decltype(Library::desc_destroy), decltype(cublasLtMatmulDescDestroy)>);
static_assert(kSameCall<decltype(Library::desc_set), decltype(cublasLtMatmulDescSetAttribute)>);
static_assert(kSameCall<decltype(Library::layout_create), decltype(cublasLtMatrixLayoutCreate)>);
static_assert(kSameCall<decltype(Library::layout_destroy), decltype(cublasLtMatrixLayoutDestroy)>);
static_assert(kSameCall<decltype(Library::preference_create), decltype(cublasLtMatmulPreferenceCreate)>);
static_assert(kSameCall<decltype(Library::preference_destroy), decltype(cublasLtMatmulPreferenceDestroy)>);
static_assert(kSameCall<decltype(Library::preference_set), decltype(cublasLtMatmulPreferenceSetAttribute)>);
static_assert(kSameCall<decltype(Library::get_heuristic), decltype(cublasLtMatmulAlgoGetHeuristic)>);
static_assert(kSameCall<decltype(Library::matmul), decltype(cublasLtMatmul)>);

}  // namespace

std::string compared_cublaslt_header() {
  return std::to_string(CUBLAS_VER_MAJOR) + "." + std::to_string(CUBLAS_VER_MINOR) + "." +
         std::to_string(CUBLAS_VER_PATCH);
}

}  // namespace zerofleet::test
#else
std::string zerofleet::test::compared_cublaslt_header() { return ""; }
#endif
