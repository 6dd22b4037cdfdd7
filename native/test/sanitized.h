#pragma once

namespace zerofleet::test {

/// True where a sanitizer watches every access, which makes tests ten times slower: tests that only repeat the same
/// accesses with other values are then left out.
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
