#pragma once

// Ranks that are threads of one process share the emulated device, but each must behave as on a device of its own. A
// call that waits for "the device" must not wait for an exchange of another rank, which waits for the caller. So
// streams that are ordered by events form a group. While ranks exchange on the device, a call waits for the group of
// the stream that its thread has used last.
namespace zerofleet::emulator {

/// Returns a group of its own.
int new_stream_group();
void unite_groups(int a, int b);
/// The calling thread uses a stream of this group.
void used_by_thread(int group);
/// Returns true if a call of this thread that waits for its device waits for streams of `group`.
bool waits_for_group(int group);

}  // namespace zerofleet::emulator
