#pragma once

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "core/error.h"

namespace zerofleet {

/// Starts a thread that runs `body`. Throws Error{"threads_unavailable"} if the system refuses.
template <class Thread = std::thread, class Body>
Thread start_thread(Body&& body) {
  try {
    return Thread(std::forward<Body>(body));
  } catch (const std::system_error& error) {
    throw Error("threads_unavailable",
                std::string("the system starts no more threads (") + error.what() +
                    "); raise the limit of processes (ulimit -u, pids.max), or use fewer threads per rank");
  }
}

}  // namespace zerofleet
