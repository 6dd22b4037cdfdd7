#pragma once

#include <climits>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/system/shared_library.h"

struct CUstream_st;

// The part of NCCL that is used, declared here: NCCL is opened at run time, so that neither building nor loading needs
// it. Everything is as nccl.h of 2.14 and later has it; the entry points are stable within major version 2.
namespace zerofleet::nccl {

struct CommHandle;  // ncclComm
using Result = int;  // ncclResult_t
inline constexpr Result kSuccess = 0, kInProgress = 7;
using DataType = int;  // ncclDataType_t
inline constexpr DataType kByte = 0;  // ncclInt8

struct UniqueId {
  char bytes[128] = {};
};

/// ncclConfig_t as of 2.14. Later versions have more fields and take the defaults for those of an older structure.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 1;
  int padding = INT_MIN;  // in 2.14; later versions add members, and this value then means "undefined"
};
static_assert(sizeof(Config) == 24);

/// The opened library.
struct Library {
  explicit Library(std::span<const std::string> file_names);

  SharedLibrary file;
  const char* (*get_error_string)(Result) = nullptr;
  const char* (*get_last_error)(const CommHandle*) = nullptr;
  Result (*get_unique_id)(UniqueId*) = nullptr;
  Result (*comm_init_rank_config)(CommHandle**, int world_size, UniqueId, int rank, Config*) = nullptr;
  Result (*comm_get_async_error)(CommHandle*, Result*) = nullptr;
  Result (*comm_finalize)(CommHandle*) = nullptr;
  Result (*comm_destroy)(CommHandle*) = nullptr;
  Result (*comm_abort)(CommHandle*) = nullptr;
  Result (*group_start)() = nullptr;
  Result (*group_end)() = nullptr;
  Result (*send)(const void*, std::size_t count, DataType, int peer, CommHandle*, CUstream_st*) = nullptr;
  Result (*recv)(void*, std::size_t count, DataType, int peer, CommHandle*, CUstream_st*) = nullptr;
  Result (*all_gather)(const void*, void*, std::size_t send_count, DataType, CommHandle*, CUstream_st*) = nullptr;
};

/// The names under which NCCL is looked for, on the library path of the process.
std::vector<std::string> default_file_names();

/// Opens the first of the named libraries that is there. Throws Error{"comm_unavailable"} with the names that were tried
/// and why each failed, or with the function that the library lacks.
std::shared_ptr<const Library> open_library(std::span<const std::string> file_names);

}  // namespace zerofleet::nccl
