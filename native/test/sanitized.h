#pragma once

namespace zerofleet::test {

/// True where a sanitizer watches every access, which makes tests ten times slower: what only repeats the same accesses
/// with other values is then left out.
#ifdef ZF_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// True where that is ThreadSanitizer.
#ifdef __SANITIZE_THREAD__
inline constexpr bool kThreadSanitized = true;
#else
inline constexpr bool kThreadSanitized = false;
#endif

}  // namespace zerofleet::test
