#pragma once

#include <climits>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/system/shared_library.h"

struct CUstream_st;

// Declarations of the part of NCCL that is used. NCCL is opened at run time, so neither building nor loading needs it.
// They follow nccl.h of 2.14 and later; the entry points are stable within major version 2.
namespace zerofleet::nccl {

struct CommHandle;   // ncclComm
using Result = int;  // ncclResult_t
inline constexpr Result kSuccess = 0, kInProgress = 7;
using DataType = int;                 // ncclDataType_t
inline constexpr DataType kByte = 0;  // ncclInt8

struct UniqueId {
  char bytes[128] = {};
};

/// ncclConfig_t of 2.14. Later versions accept an older structure, and use defaults for the fields that it lacks.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 1;
  int padding = INT_MIN;  // a member in later versions, for which this value means "undefined"
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

/// File names under which NCCL is searched on the library path of the process.
std::vector<std::string> default_file_names();

/// Opens the first of the named libraries that exists. Throws Error{"comm_unavailable"}, with each name and why it
/// failed, or with the function that the library lacks.
std::shared_ptr<const Library> open_library(std::span<const std::string> file_names);

}  // namespace zerofleet::nccl
