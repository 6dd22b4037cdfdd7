#pragma once

#include <type_traits>

namespace zerofleet::test {

/// True if both types are passed alike: pointers, structs of one size, or integers and enumerations of one size.
template <class Ours, class Theirs>
inline constexpr bool kPassedAlike =
    sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> &&
    std::is_class_v<Ours> == std::is_class_v<Theirs> &&
    std::is_floating_point_v<Ours> == std::is_floating_point_v<Theirs>;

template <class Ours, class Theirs>
struct SameCall : std::false_type {};
template <class OurResult, class TheirResult, class... Ours, class... Theirs>
  requires(sizeof...(Ours) == sizeof...(Theirs))
struct SameCall<OurResult (*)(Ours...), TheirResult(Theirs...)>
    : std::bool_constant<kPassedAlike<OurResult, TheirResult> && (kPassedAlike<Ours, Theirs> && ...)> {};

/// True if a pointer to a function, as we declare it, may point to the header's function.
template <class Ours, class Theirs>
inline constexpr bool kSameCall = SameCall<Ours, Theirs>::value;

}  // namespace zerofleet::test
