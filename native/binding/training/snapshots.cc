#include "binding/training/snapshots.h"

#include <memory>
#include <thread>

#include "binding/training/trainer_results.h"
#include "core/error.h"
#include "core/system/touch_pages.h"
#include "core/threads/start_thread.h"

namespace zerofleet::binding {

void prepare_snapshot(Session& session) {
  auto& buffer = session.slots[0].buffer;
  if (buffer) return;
  buffer = std::make_shared<Buffer>(Device{}, session.trainer().owned_bytes());
  session.page_toucher = start_thread<std::jthread>(
      [buffer](const std::stop_token& stop) { touch_pages({buffer->data(), buffer->num_bytes()}, stop); });
}

std::size_t free_slot(const Session& session) {
  const std::size_t slot = session.slots[0].in_use ? 1 : 0;
  require(!session.slots[slot].in_use, "snapshot_busy", "two snapshots are still in use");
  return slot;
}

SnapshotResult take_snapshot(Session& session, std::size_t slot) {
  Trainer& trainer = session.trainer();
  session.page_toucher = {};  // it must not write zeros behind the copy
  auto& buffer = session.slots[slot].buffer;
  if (!buffer) buffer = std::make_shared<Buffer>(Device{}, trainer.owned_bytes());
  trainer.copy_state({buffer->data(), buffer->num_bytes()});
  return {slot, trainer.position(), trainer.digest_part(), trainer.slices()};
}

Napi::Value snapshot_object(Napi::Env env, Session& session, SnapshotResult& result) {
  SnapshotSlot& slot = session.slots[result.slot];
  slot.in_use = true;
  if (slot.view.IsEmpty()) {
    auto keep = std::make_unique<std::shared_ptr<Buffer>>(slot.buffer);
    auto view = Napi::ArrayBuffer::New(
        env, slot.buffer->data(), slot.buffer->num_bytes(),
        [](Napi::Env, void*, std::shared_ptr<Buffer>* kept) {
          const std::unique_ptr<std::shared_ptr<Buffer>> owned(kept);
        },
        keep.get());
    static_cast<void>(keep.release());
    slot.view = Napi::Persistent(view);
  }
  Napi::Object object = Napi::Object::New(env);
  object.Set("slot", static_cast<double>(result.slot));
  set_position(object, result.position);
  object.Set("digest_part", result.digest.to_hex());
  object.Set("buffer", slot.view.Value());
  object.Set("slices", slices_array(env, result.slices));
  return object;
}

}  // namespace zerofleet::binding
