#include "core/gpu/gpu_events.h"

#include "core/gpu/nvml_session.h"

namespace zerofleet {
namespace {

using nvml::Library;

/// A double-bit ECC error has this number, too.
constexpr unsigned kDoubleBitEccXid = 48;
/// More are left to the next call: a driver that reports one without end must not hold its caller.
constexpr std::size_t kMostAtOnce = 64;

bool has_events(const Library& library) {
  return library.handle_by_uuid && library.supported_event_types && library.register_events &&
         library.event_set_create && library.event_set_free && library.event_set_wait;
}

}  // namespace

/// A session with an event set in which one GPU is registered.
class GpuEvents::Listener {
 public:
  Listener(std::shared_ptr<const Library> library, const std::string& uuid)
      : library_(std::move(library)), session_(*library_) {
    nvml::DeviceHandle* device = nullptr;
    unsigned long long types = 0;
    if (session_.result() != nvml::kSuccess || library_->handle_by_uuid(uuid.c_str(), &device) != nvml::kSuccess ||
        library_->supported_event_types(device, &types) != nvml::kSuccess) {
      return;
    }
    types &= nvml::kXidEvent | nvml::kDoubleBitEccEvent;
    if (types == 0 || library_->event_set_create(&set_) != nvml::kSuccess) return;
    is_registered_ = library_->register_events(device, types, set_) == nvml::kSuccess;
  }
  ~Listener() {
    if (set_ != nullptr) library_->event_set_free(set_);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  bool is_registered() const { return is_registered_; }

  std::vector<unsigned> take() {
    std::vector<unsigned> xids;
    nvml::EventData event;
    while (xids.size() < kMostAtOnce && library_->event_set_wait(set_, &event, 0) == nvml::kSuccess) {
      xids.push_back(event.type == nvml::kXidEvent ? static_cast<unsigned>(event.data) : kDoubleBitEccXid);
    }
    return xids;
  }

 private:
  std::shared_ptr<const Library> library_;
  nvml::Session session_;
  nvml::EventSet* set_ = nullptr;
  bool is_registered_ = false;
};

GpuEvents::GpuEvents(const std::string& uuid) : GpuEvents(uuid, nvml::default_file_names()) {}

GpuEvents::GpuEvents(const std::string& uuid, std::span<const std::string> file_names) {
  std::shared_ptr<const Library> library = nvml::open_library(file_names);
  if (library == nullptr || !has_events(*library)) return;
  auto listener = std::make_unique<Listener>(std::move(library), uuid);
  if (listener->is_registered()) listener_ = std::move(listener);
}

GpuEvents::~GpuEvents() = default;

std::vector<unsigned> GpuEvents::take_xids() { return listener_ ? listener_->take() : std::vector<unsigned>{}; }

}  // namespace zerofleet
