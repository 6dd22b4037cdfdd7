#include "test/real_headers/real_headers.h"

#if __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>)
#include <nccl.h>

#include <cstddef>

#include "comm/nccl_library.h"
#include "test/real_headers/same_call.h"

namespace zerofleet::test {
namespace {

using namespace nccl;

static_assert(kSuccess == ncclSuccess && kInProgress == ncclInProgress && sizeof(Result) == sizeof(ncclResult_t));
static_assert(kByte == ncclInt8 && sizeof(DataType) == sizeof(ncclDataType_t));
static_assert(sizeof(UniqueId) == sizeof(ncclUniqueId) && sizeof(UniqueId) == NCCL_UNIQUE_ID_BYTES);

// Ours is that of 2.14, with which later versions begin.
constexpr Config kOurs;
constexpr ncclConfig_t kTheirs = NCCL_CONFIG_INITIALIZER;
static_assert(sizeof(Config) <= sizeof(ncclConfig_t));
static_assert(offsetof(Config, size) == offsetof(ncclConfig_t, size));
static_assert(offsetof(Config, magic) == offsetof(ncclConfig_t, magic) && kOurs.magic == kTheirs.magic);
static_assert(offsetof(Config, version) == offsetof(ncclConfig_t, version) && kOurs.version <= kTheirs.version);
static_assert(NCCL_VERSION(2, 14, 0) == Config{}.version);
static_assert(offsetof(Config, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(kOurs.padding == NCCL_CONFIG_UNDEF_INT);

static_assert(kSameCall<decltype(Library::get_error_string), decltype(ncclGetErrorString)>);
static_assert(kSameCall<decltype(Library::get_last_error), decltype(ncclGetLastError)>);
static_assert(kSameCall<decltype(Library::get_unique_id), decltype(ncclGetUniqueId)>);
static_assert(kSameCall<decltype(Library::comm_init_rank_config), decltype(ncclCommInitRankConfig)>);
static_assert(kSameCall<decltype(Library::comm_get_async_error), decltype(ncclCommGetAsyncError)>);
static_assert(kSameCall<decltype(Library::comm_finalize), decltype(ncclCommFinalize)>);
static_assert(kSameCall<decltype(Library::comm_destroy), decltype(ncclCommDestroy)>);
static_assert(kSameCall<decltype(Library::comm_abort), decltype(ncclCommAbort)>);
static_assert(kSameCall<decltype(Library::group_start), decltype(ncclGroupStart)>);
static_assert(kSameCall<decltype(Library::group_end), decltype(ncclGroupEnd)>);
static_assert(kSameCall<decltype(Library::send), decltype(ncclSend)>);
static_assert(kSameCall<decltype(Library::recv), decltype(ncclRecv)>);
static_assert(kSameCall<decltype(Library::all_gather), decltype(ncclAllGather)>);

}  // namespace

std::string compared_nccl_header() {
  return std::to_string(NCCL_MAJOR) + "." + std::to_string(NCCL_MINOR) + "." + std::to_string(NCCL_PATCH);
}

}  // namespace zerofleet::test
#else
std::string zerofleet::test::compared_nccl_header() { return ""; }
#endif
