#include "kernels/attention/cuda/cudnn_library.h"

#include <algorithm>
#include <array>
#include <vector>

#include "core/error.h"
#include "kernels/gemm/cuda/cublaslt_library.h"

namespace zerofleet::cudnn {
namespace {

constexpr const char* kVariable = "ZF_CUDNN";
constexpr SharedLibrary::About kAbout{"cuDNN", "cuDNN 9", "device_unavailable",
                                      "ZF_CUDNN names this file: correct it, set it to off, or unset it to have the "
                                      "library looked for on the library path"};

// Ranges of cudnnStatus_t, and those of "not supported" that are about the machine.
constexpr Status kFirstBadParameter = 2000, kFirstNotSupported = 3000, kFirstInternalError = 4000;
constexpr std::array<Status, 4> kAboutMachine{3005, 3006, 3008, 3009};  // driver, runtime, prerequisite, part of cuDNN

bool is_refusal(Status status) {
  return status >= kFirstBadParameter && status < kFirstInternalError &&
         std::ranges::find(kAboutMachine, status) == kAboutMachine.end();
}

}  // namespace

Library::Library(std::span<const std::string> file_names) : file(kAbout, file_names) {}

std::string Library::name() const {
  const std::size_t version = get_version();  // 92400 for 9.24.0
  return "cuDNN " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

// It may be a stack for each engine, the innermost reason first, with a line about the engine before it.
std::string Library::last_error() const {
  std::array<char, 2048> text{};
  get_last_error(text.data(), text.size());
  const std::string message(text.data());
  const std::size_t reason = message.find("Reason: "), before = message.rfind('\n', reason);
  const std::size_t begin = reason == std::string::npos || before == std::string::npos ? 0 : before + 1;
  return message.substr(begin, message.find('\n', begin) - begin);
}

bool is_about_machine(const std::string& message) {
  return message.find("RUNTIME_PREREQUISITE_MISSING") != std::string::npos ||
         message.find("SUBLIBRARY") != std::string::npos;
}

void check(const Library& library, Status status, const char* call) {
  if (status == kSuccess) return;
  std::string message = std::string(call) + ": " + library.get_error_string(status);
  const std::string reason = library.last_error();
  if (!reason.empty()) message += " (" + reason + ")";
  if (is_refusal(status) && !is_about_machine(reason)) throw Refusal(message);
  throw Error("device_failed", library.name() + ": " + message);
}

std::shared_ptr<const Library> open_library(std::span<const std::string> file_names) {
  auto library = std::make_shared<Library>(file_names);
  const SharedLibrary& file = library->file;
  if (!file.is_open()) return nullptr;
  file.find("cudnnGetVersion", library->get_version);
  file.find("cudnnGetCudartVersion", library->get_cuda_version);
  file.find("cudnnGetErrorString", library->get_error_string);
  file.find("cudnnGetLastErrorString", library->get_last_error);
  file.find("cudnnCreate", library->create);
  file.find("cudnnDestroy", library->destroy);
  file.find("cudnnSetStream", library->set_stream);
  file.find("cudnnBackendCreateDescriptor", library->descriptor_create);
  file.find("cudnnBackendDestroyDescriptor", library->descriptor_destroy);
  file.find("cudnnBackendSetAttribute", library->descriptor_set);
  file.find("cudnnBackendGetAttribute", library->descriptor_get);
  file.find("cudnnBackendFinalize", library->descriptor_finalize);
  file.find("cudnnBackendExecute", library->execute);
  return library;
}

std::shared_ptr<const Library> open_default_library() {
  const std::vector<std::string> usual{"libcudnn.so.9", "libcudnn_graph.so.9"};
  const std::vector<std::string> file_names = library_files(kVariable, usual);
  const auto cublaslt = cublaslt::open_default_library();
  if (file_names == std::vector<std::string>{"off"} || cublaslt == nullptr) return nullptr;
  auto library = open_library(file_names);
  const bool is_wanted = file_names != usual;
  if (library == nullptr) {
    if (is_wanted) SharedLibrary(kAbout, file_names).require_open();
    return nullptr;
  }
  const std::size_t own = library->get_cuda_version() / 1000, of_cublaslt = cublaslt->get_version() / 10000;  // 130101
  if (own == of_cublaslt) return library;
  require(!is_wanted, "device_unavailable",
          library->file.file_name() + " is for CUDA " + std::to_string(own) + ", and cuBLASLt is of CUDA " +
              std::to_string(of_cublaslt) + ": set ZF_CUDNN or ZF_CUBLASLT to one of the same, or ZF_CUDNN to off");
  return nullptr;
}

}  // namespace zerofleet::cudnn
