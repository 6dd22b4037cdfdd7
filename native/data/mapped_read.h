#pragma once

#include <functional>

namespace zerofleet {

/// Runs `read`, which reads memory that is mapped from a file. Where the file can't give the bytes (its medium fails,
/// or it was cut short after it was mapped) the system sends SIGBUS; here that is Error{"token_file_unreadable"}.
/// `read` may throw, but must have no objects with destructors while it reads the memory.
void read_mapped(const std::function<void()>& read);

}  // namespace zerofleet
