#include "kernels/cuda/cublaslt_library.h"

#include <dlfcn.h>

#include <cstdlib>

#include "core/error.h"

namespace zerofleet::cublaslt {
namespace {

template <class Function>
void find(void* handle, const Library& library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(handle, name));
  require(function != nullptr, "device_unavailable",
          library.file_name + " has no " + name + ": cuBLASLt of CUDA 12 or later is needed");
}

}  // namespace

std::vector<std::string> default_file_names() {
  const char* wanted = std::getenv("ZF_CUBLASLT");
  if (wanted != nullptr && *wanted != '\0') return {wanted};
  return {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"};
}

std::shared_ptr<const Library> open_library(std::span<const std::string> file_names) {
  auto library = std::make_shared<Library>();
  void* handle = nullptr;
  for (const std::string& file_name : file_names) {
    handle = ::dlopen(file_name.c_str(), RTLD_NOW | RTLD_LOCAL);
    library->file_name = file_name;
    if (handle != nullptr) break;
  }
  if (handle == nullptr) return nullptr;
  find(handle, *library, "cublasLtGetVersion", library->get_version);
  find(handle, *library, "cublasLtGetStatusString", library->get_status_string);
  find(handle, *library, "cublasLtCreate", library->create);
  find(handle, *library, "cublasLtDestroy", library->destroy);
  find(handle, *library, "cublasLtMatmulDescCreate", library->desc_create);
  find(handle, *library, "cublasLtMatmulDescDestroy", library->desc_destroy);
  find(handle, *library, "cublasLtMatmulDescSetAttribute", library->desc_set);
  find(handle, *library, "cublasLtMatrixLayoutCreate", library->layout_create);
  find(handle, *library, "cublasLtMatrixLayoutDestroy", library->layout_destroy);
  find(handle, *library, "cublasLtMatmulPreferenceCreate", library->preference_create);
  find(handle, *library, "cublasLtMatmulPreferenceDestroy", library->preference_destroy);
  find(handle, *library, "cublasLtMatmulPreferenceSetAttribute", library->preference_set);
  find(handle, *library, "cublasLtMatmulAlgoGetHeuristic", library->get_heuristic);
  find(handle, *library, "cublasLtMatmul", library->matmul);
  return library;
}

}  // namespace zerofleet::cublaslt
