#include "comm/nccl_library.h"

namespace zerofleet::nccl {
namespace {

constexpr SharedLibrary::About kAbout{"NCCL", "NCCL 2.14 or later", "comm_unavailable",
                                      "Install NCCL 2.14 or later, or add its folder to LD_LIBRARY_PATH"};

}  // namespace

Library::Library(std::span<const std::string> file_names) : file(kAbout, file_names) {}

std::vector<std::string> default_file_names() { return {"libnccl.so.2", "libnccl.so"}; }

std::shared_ptr<const Library> open_library(std::span<const std::string> file_names) {
  auto library = std::make_shared<Library>(file_names);
  const SharedLibrary& file = library->file;
  file.require_open();
  file.find("ncclGetErrorString", library->get_error_string);
  file.find("ncclGetLastError", library->get_last_error);
  file.find("ncclGetUniqueId", library->get_unique_id);
  file.find("ncclCommInitRankConfig", library->comm_init_rank_config);
  file.find("ncclCommGetAsyncError", library->comm_get_async_error);
  file.find("ncclCommFinalize", library->comm_finalize);
  file.find("ncclCommDestroy", library->comm_destroy);
  file.find("ncclCommAbort", library->comm_abort);
  file.find("ncclGroupStart", library->group_start);
  file.find("ncclGroupEnd", library->group_end);
  file.find("ncclSend", library->send);
  file.find("ncclRecv", library->recv);
  file.find("ncclAllGather", library->all_gather);
  return library;
}

}  // namespace zerofleet::nccl
