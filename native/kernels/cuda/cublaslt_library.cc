#include "kernels/cuda/cublaslt_library.h"

namespace zerofleet::cublaslt {
namespace {

constexpr SharedLibrary::About kAbout{"cuBLASLt", "cuBLASLt of CUDA 12 or later", "device_unavailable",
                                      "Install it, add its folder to LD_LIBRARY_PATH, or name its file in ZF_CUBLASLT"};

}  // namespace

Library::Library(std::span<const std::string> file_names) : file(kAbout, file_names) {}

std::vector<std::string> default_file_names() {
  return library_files("ZF_CUBLASLT", {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"});
}

std::shared_ptr<const Library> open_library(std::span<const std::string> file_names) {
  auto library = std::make_shared<Library>(file_names);
  const SharedLibrary& file = library->file;
  if (!file.is_open()) return nullptr;
  file.find("cublasLtGetVersion", library->get_version);
  file.find("cublasLtGetStatusString", library->get_status_string);
  file.find("cublasLtCreate", library->create);
  file.find("cublasLtDestroy", library->destroy);
  file.find("cublasLtMatmulDescCreate", library->desc_create);
  file.find("cublasLtMatmulDescDestroy", library->desc_destroy);
  file.find("cublasLtMatmulDescSetAttribute", library->desc_set);
  file.find("cublasLtMatrixLayoutCreate", library->layout_create);
  file.find("cublasLtMatrixLayoutDestroy", library->layout_destroy);
  file.find("cublasLtMatmulPreferenceCreate", library->preference_create);
  file.find("cublasLtMatmulPreferenceDestroy", library->preference_destroy);
  file.find("cublasLtMatmulPreferenceSetAttribute", library->preference_set);
  file.find("cublasLtMatmulAlgoGetHeuristic", library->get_heuristic);
  file.find("cublasLtMatmul", library->matmul);
  return library;
}

}  // namespace zerofleet::cublaslt
