// A libcuda.so.1 without a GPU, so that any machine can query the graphs of the real cuDNN. The library looks up these
// functions, and calls none that matters for the query.
#define ZF_EXPORT extern "C" __attribute__((visibility("default")))
#define ZF_NO_DEVICE(name) \
  ZF_EXPORT int name() { return 100; }

ZF_EXPORT int cuInit(unsigned) { return 0; }
ZF_EXPORT int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}

ZF_NO_DEVICE(cuCtxGetCurrent)
ZF_NO_DEVICE(cuCtxGetDevice)
ZF_NO_DEVICE(cuCtxGetLimit)
ZF_NO_DEVICE(cuCtxPopCurrent)
ZF_NO_DEVICE(cuCtxPushCurrent)
ZF_NO_DEVICE(cuDeviceGet)
ZF_NO_DEVICE(cuDeviceGetAttribute)
ZF_NO_DEVICE(cuDeviceGetCount)
ZF_NO_DEVICE(cuDevicePrimaryCtxRelease)
ZF_NO_DEVICE(cuDevicePrimaryCtxReset)
ZF_NO_DEVICE(cuDevicePrimaryCtxRetain)
ZF_NO_DEVICE(cuFuncGetAttribute)
ZF_NO_DEVICE(cuFuncSetAttribute)
ZF_NO_DEVICE(cuGetErrorName)
ZF_NO_DEVICE(cuGetErrorString)
ZF_NO_DEVICE(cuKernelGetAttribute)
ZF_NO_DEVICE(cuKernelSetAttribute)
ZF_NO_DEVICE(cuLaunchCooperativeKernel)
ZF_NO_DEVICE(cuLaunchKernel)
ZF_NO_DEVICE(cuLaunchKernelEx)
ZF_NO_DEVICE(cuLibraryGetKernel)
ZF_NO_DEVICE(cuLibraryLoadData)
ZF_NO_DEVICE(cuLibraryLoadFromFile)
ZF_NO_DEVICE(cuLibraryUnload)
ZF_NO_DEVICE(cuLinkAddData)
ZF_NO_DEVICE(cuLinkAddData_v2)
ZF_NO_DEVICE(cuLinkAddFile_v2)
ZF_NO_DEVICE(cuLinkComplete)
ZF_NO_DEVICE(cuLinkCreate)
ZF_NO_DEVICE(cuLinkCreate_v2)
ZF_NO_DEVICE(cuLinkDestroy)
ZF_NO_DEVICE(cuMemcpyDtoH_v2)
ZF_NO_DEVICE(cuModuleGetFunction)
ZF_NO_DEVICE(cuModuleGetGlobal_v2)
ZF_NO_DEVICE(cuModuleLoadData)
ZF_NO_DEVICE(cuModuleLoadDataEx)
ZF_NO_DEVICE(cuModuleLoadFatBinary)
ZF_NO_DEVICE(cuModuleUnload)
ZF_NO_DEVICE(cuOccupancyMaxActiveBlocksPerMultiprocessor)
ZF_NO_DEVICE(cuOccupancyMaxPotentialClusterSize)
ZF_NO_DEVICE(cuStreamGetCtx)
ZF_NO_DEVICE(cuStreamSynchronize)
ZF_NO_DEVICE(cuTensorMapEncodeTiled)
