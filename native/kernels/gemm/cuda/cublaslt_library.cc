#include "kernels/gemm/cuda/cublaslt_library.h"

#include <vector>

namespace zerofleet::cublaslt {
namespace {

constexpr const char* kVariable = "ZF_CUBLASLT";
/// Without the library a kernel of our own computes products, so no message suggests installing it. A file that the
/// user names must open.
constexpr SharedLibrary::About kAbout{"cuBLASLt", "cuBLASLt of CUDA 12 or later", "device_unavailable",
                                      "ZF_CUBLASLT names this file: correct it, or unset it to have the library looked "
                                      "for on the library path"};

}  // namespace

Library::Library(std::span<const std::string> file_names) : file(kAbout, file_names) {}

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

std::shared_ptr<const Library> open_default_library() {
  const std::vector<std::string> usual{"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"};
  const std::vector<std::string> file_names = library_files(kVariable, usual);
  auto library = open_library(file_names);
  if (library == nullptr && file_names != usual) SharedLibrary(kAbout, file_names).require_open();
  return library;
}

}  // namespace zerofleet::cublaslt
