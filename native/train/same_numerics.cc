#include "train/same_numerics.h"

#include "core/error.h"

namespace zerofleet {

void require_same_numerics(KvStore& store, int rank, const std::string& fingerprint,
                           std::chrono::milliseconds timeout) {
  const char* key = "numerics-fingerprint";
  if (rank == 0) {
    store.set(key, KvStore::Bytes(fingerprint.begin(), fingerprint.end()));
    return;
  }
  const KvStore::Bytes bytes = store.wait(key, timeout);
  const std::string first(bytes.begin(), bytes.end());
  require(first == fingerprint, "numerics_mismatch",
          "rank " + std::to_string(rank) + " computes with the numerics of " + fingerprint +
              ", and rank 0 with those of " + first + ": their bits would differ");
}

}  // namespace zerofleet
