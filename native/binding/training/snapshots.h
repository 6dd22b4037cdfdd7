#pragma once

#include <napi.h>

#include <cstddef>
#include <vector>

#include "binding/training/trainer_session.h"
#include "train/trainer.h"
#include "zero/partition/digest.h"

namespace zerofleet::binding {

/// A copy of the owned state, in the buffer of a slot.
struct SnapshotResult {
  std::size_t slot = 0;
  TrainingPosition position;
  Digest128 digest;
  std::vector<OwnedSlice> slices;
};

/// Allocates the first snapshot's buffer and has its pages fetched while training goes on. The kernel takes longer to
/// clear fresh memory than the copy takes, and training would wait for both.
void prepare_snapshot(Session& session);

/// Throws Error{"snapshot_busy"} where both are in use.
std::size_t free_slot(const Session& session);

SnapshotResult take_snapshot(Session& session, std::size_t slot);

/// Marks the slot as used. Returns TrainingPosition & {slot, digest_part, buffer: ArrayBuffer, slices}.
Napi::Value snapshot_object(Napi::Env env, Session& session, SnapshotResult& result);

}  // namespace zerofleet::binding
