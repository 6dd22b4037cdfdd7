#include <napi.h>

#include "binding/answer_engine_binding.h"
#include "binding/gpu_binding.h"
#include "binding/info_binding.h"
#include "binding/measure/measure_binding.h"
#include "binding/measure/measure_kernels.h"
#include "binding/measure/measure_memory_binding.h"
#include "binding/process_binding.h"
#include "binding/training/trainer_binding.h"

namespace {

/// The addon's exports. native/js/addon.ts declares the same names with their types.
Napi::Object init(Napi::Env env, Napi::Object exports) {
  using namespace zerofleet::binding;
  exports.Set("paramTable", Napi::Function::New(env, param_table, "paramTable"));
  exports.Set("stateNames", Napi::Function::New(env, state_names, "stateNames"));
  exports.Set("fingerprint", Napi::Function::New(env, fingerprint, "fingerprint"));
  exports.Set("gpus", Napi::Function::New(env, gpus, "gpus"));
  exports.Set("watchGpu", Napi::Function::New(env, watch_gpu, "watchGpu"));
  exports.Set("measureGpu", Napi::Function::New(env, measure_gpu, "measureGpu"));
  exports.Set("cudaDevices", Napi::Function::New(env, cuda_devices, "cudaDevices"));
  exports.Set("cudaProblem", Napi::Function::New(env, cuda_problem, "cudaProblem"));
  exports.Set("castTo16Bit", Napi::Function::New(env, cast_to_16_bit, "castTo16Bit"));
  exports.Set("mergeAdapter", Napi::Function::New(env, merge_adapter, "mergeAdapter"));
  exports.Set("quantizedValues", Napi::Function::New(env, quantized_values, "quantizedValues"));
  exports.Set("initialValues", Napi::Function::New(env, initial_values, "initialValues"));
  exports.Set("addOutputSquares", Napi::Function::New(env, add_output_squares, "addOutputSquares"));
  exports.Set("digestValues", Napi::Function::New(env, digest_values, "digestValues"));
  exports.Set("endWithParent", Napi::Function::New(env, end_with_parent, "endWithParent"));
  exports.Set("stayOnNode", Napi::Function::New(env, stay_on_node, "stayOnNode"));
  exports.Set("measureOptimizer", Napi::Function::New(env, measure_optimizer, "measureOptimizer"));
  exports.Set("measureZeroMemory", Napi::Function::New(env, measure_zero_memory, "measureZeroMemory"));
  exports.Set("measureGemm", Napi::Function::New(env, measure_gemm, "measureGemm"));
  exports.Set("kernelNames", Napi::Function::New(env, kernel_names, "kernelNames"));
  exports.Set("measureKernel", Napi::Function::New(env, measure_kernel, "measureKernel"));
  exports.Set("measureBandwidth", Napi::Function::New(env, measure_bandwidth, "measureBandwidth"));
  export_trainer(env, exports);
  export_answer_engine(env, exports);
  return exports;
}

}  // namespace

NODE_API_MODULE(zerofleet, init)
