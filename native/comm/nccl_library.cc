#include "comm/nccl_library.h"

#include <dlfcn.h>

#include "core/error.h"

namespace zerofleet::nccl {
namespace {

/// The last message of dlopen or dlsym.
std::string dl_message() {
  const char* message = ::dlerror();
  return message == nullptr ? "unknown" : message;
}

void* open_first(std::span<const std::string> file_names, std::string& opened) {
  std::string failures;
  for (const std::string& file_name : file_names) {
    void* handle = ::dlopen(file_name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) {
      opened = file_name;
      return handle;
    }
    failures += (failures.empty() ? "" : "; ") + file_name + " (" + dl_message() + ")";
  }
  throw Error("comm_unavailable", "NCCL cannot be opened; tried " + failures +
                                      ". Install NCCL 2.14 or later, or add its folder to LD_LIBRARY_PATH");
}

template <class Function>
void find(void* handle, const Library& library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(handle, name));
  require(function != nullptr, "comm_unavailable",
          library.file_name + " has no " + name + ": NCCL 2.14 or later is needed");
}

}  // namespace

std::vector<std::string> default_file_names() { return {"libnccl.so.2", "libnccl.so"}; }

std::shared_ptr<const Library> open_library(std::span<const std::string> file_names) {
  auto library = std::make_shared<Library>();
  void* handle = open_first(file_names, library->file_name);
  find(handle, *library, "ncclGetErrorString", library->get_error_string);
  find(handle, *library, "ncclGetLastError", library->get_last_error);
  find(handle, *library, "ncclGetUniqueId", library->get_unique_id);
  find(handle, *library, "ncclCommInitRankConfig", library->comm_init_rank_config);
  find(handle, *library, "ncclCommGetAsyncError", library->comm_get_async_error);
  find(handle, *library, "ncclCommFinalize", library->comm_finalize);
  find(handle, *library, "ncclCommDestroy", library->comm_destroy);
  find(handle, *library, "ncclCommAbort", library->comm_abort);
  find(handle, *library, "ncclGroupStart", library->group_start);
  find(handle, *library, "ncclGroupEnd", library->group_end);
  find(handle, *library, "ncclSend", library->send);
  find(handle, *library, "ncclRecv", library->recv);
  find(handle, *library, "ncclAllGather", library->all_gather);
  return library;
}

}  // namespace zerofleet::nccl
