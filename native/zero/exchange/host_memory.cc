#include "zero/exchange/host_memory.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/system/mapping.h"
#include "core/system/touch_pages.h"

namespace zerofleet {
namespace {

/// Returns the values of all ranks.
template <class T>
std::vector<T> values_of_ranks(Communicator& communicator, const T& own) {
  std::vector<T> values(static_cast<std::size_t>(communicator.world_size()));
  values[static_cast<std::size_t>(communicator.rank())] = own;
  std::vector<Range> pieces;
  const auto width = static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t rank = 0; rank < communicator.world_size(); ++rank)
    pieces.push_back({rank * width, (rank + 1) * width});
  communicator.all_gather(std::as_writable_bytes(std::span(values)), pieces);
  return values;
}

/// The first rank on the host of each rank. It creates the memory, and receives what other hosts have.
std::vector<int> first_ranks(std::span<const ProcessIdentity> processes) {
  std::vector<int> firsts;
  for (const ProcessIdentity& process : processes) {
    const auto first =
        std::ranges::find_if(processes, [&](const ProcessIdentity& other) { return other.shares_with(process); });
    const bool is_known = first != processes.end();
    firsts.push_back(is_known ? static_cast<int>(first - processes.begin()) : static_cast<int>(firsts.size()));
  }
  return firsts;
}

class HostMemory final : public ParamMemory {
 public:
  HostMemory(Communicator& communicator, std::vector<ProcessIdentity> processes, std::vector<int> firsts)
      : ParamMemory(Device{}, communicator),
        processes_(std::move(processes)),
        firsts_(std::move(firsts)),
        rank_(communicator.rank()) {}

  bool is_shared() const override { return std::ranges::count(firsts_, first_of(rank_)) > 1; }
  std::vector<Buffer> allocate(std::span<const std::size_t> sizes) override;
  void begin_writes() override;
  void all_gathers(std::span<const Gather> gathers) override;
  void end_writes() override;

 private:
  int first_of(int rank) const { return firsts_[static_cast<std::size_t>(rank)]; }
  bool is_first() const { return first_of(rank_) == rank_; }
  std::optional<SharedPages> shared_pages(std::size_t num_bytes);
  void agree(const std::optional<Error>& failure);
  void receive_from_other_hosts(const Gather& gather);

  std::vector<ProcessIdentity> processes_;
  std::vector<int> firsts_;
  int rank_;
  std::vector<std::span<std::byte>> shared_;  // arrays
  bool is_read_only_ = false;
};

/// Ranks of a host without others have memory of their own, and take part in the exchanges.
std::vector<Buffer> HostMemory::allocate(std::span<const std::size_t> sizes) {
  std::vector<std::size_t> mapped;
  std::size_t sum = 0;
  for (const std::size_t size : sizes) {
    mapped.push_back((size + page_bytes() - 1) / page_bytes() * page_bytes());
    sum += mapped.back();
  }
  const std::optional<SharedPages> pages = shared_pages(sum);
  std::vector<Buffer> arrays;
  std::optional<Error> failure;
  try {
    std::size_t offset = 0;
    for (std::size_t i = 0; i < sizes.size(); offset += mapped[i++]) {
      arrays.push_back(pages && sizes[i] > 0 ? Buffer::of_pages(pages->map(offset, mapped[i]), sizes[i], mapped[i])
                                             : Buffer(Device{}, sizes[i]));
      if (pages && sizes[i] > 0) shared_.emplace_back(arrays[i].data(), arrays[i].num_bytes());
    }
  } catch (const Error& error) {
    failure = error;
  }
  agree(failure);
  return arrays;
}

/// The memory of this host; none for a rank without others on its host.
std::optional<SharedPages> HostMemory::shared_pages(std::size_t num_bytes) {
  std::optional<SharedPages> pages;
  std::optional<Error> failure;
  const auto attempt = [&](const auto& body) {
    try {
      body();
    } catch (const Error& error) {
      failure = error;
    }
  };
  attempt([&] {
    if (is_shared() && is_first()) pages.emplace(SharedPages::create(num_bytes));
  });
  const std::vector<int> descriptors = values_of_ranks(communicator(), pages ? pages->descriptor() : -1);
  const auto first = static_cast<std::size_t>(first_of(rank_));
  attempt([&] {
    if (is_shared() && !is_first() && descriptors[first] >= 0)
      pages.emplace(SharedPages::of(processes_[first], descriptors[first], num_bytes));
  });
  agree(failure);  // until then the first rank holds its descriptor
  return pages;
}

/// Throws the error of this rank, or where another rank has one that of the first of them.
void HostMemory::agree(const std::optional<Error>& failure) {
  struct Outcome {
    char code[32], message[480];
  };
  Outcome own{};
  if (failure) {
    failure->code().copy(own.code, sizeof own.code - 1);
    std::string(failure->what()).copy(own.message, sizeof own.message - 1);
  }
  const std::vector<Outcome> outcomes = values_of_ranks(communicator(), own);
  if (failure) throw Error(*failure);
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (outcomes[rank].code[0] != '\0')
      throw Error(outcomes[rank].code, "rank " + std::to_string(rank) + ": " + outcomes[rank].message);
  }
}

void HostMemory::begin_writes() {
  if (!is_read_only_) return;
  for (const std::span<std::byte> array : shared_) set_page_access(array, PageAccess::kReadWrite);
  is_read_only_ = false;
}

void HostMemory::all_gathers(std::span<const Gather> gathers) {
  if (std::ranges::all_of(firsts_, [&](int first) { return first == first_of(rank_); })) return;
  for (const Gather& gather : gathers) receive_from_other_hosts(gather);
}

void HostMemory::end_writes() {
  communicator().barrier();  // all ranks have written their parts, and the first ones those of other hosts
  for (const std::span<std::byte> array : shared_) set_page_access(array, PageAccess::kRead);
  is_read_only_ = true;
}

/// Every rank sends its piece to the first rank of each other host.
void HostMemory::receive_from_other_hosts(const Gather& gather) {
  const auto piece_of = [&](int rank) { return gather.pieces_bytes[static_cast<std::size_t>(rank)]; };
  std::vector<Message> sends, recvs;
  for (int rank = 0; rank < communicator().world_size(); ++rank) {
    if (first_of(rank) == first_of(rank_)) continue;
    if (first_of(rank) == rank && !piece_of(rank_).empty()) sends.push_back({rank, piece_of(rank_)});
    if (is_first() && !piece_of(rank).empty()) recvs.push_back({rank, piece_of(rank)});
  }
  if (!recvs.empty()) begin_writes();
  communicator().all_to_all(gather.data, sends, gather.data, recvs);
}

}  // namespace

std::unique_ptr<ParamMemory> frozen_memory(Device device, Communicator& communicator, const ProcessIdentity& here) {
  const bool may_share =
      device.kind == DeviceKind::kCpu && communicator.world_size() > 1 && communicator.joins_processes();
  if (!may_share) return std::make_unique<ParamMemory>(device, communicator);
  std::vector<ProcessIdentity> processes = values_of_ranks(communicator, here);
  std::vector<int> firsts = first_ranks(processes);
  const bool any_shares = std::ranges::any_of(processes, [&](const ProcessIdentity& process) {
    return std::ranges::count_if(processes, [&](const ProcessIdentity& other) { return process.shares_with(other); }) >
           1;
  });
  if (!any_shares) return std::make_unique<ParamMemory>(device, communicator);
  return std::make_unique<HostMemory>(communicator, std::move(processes), std::move(firsts));
}

}  // namespace zerofleet
