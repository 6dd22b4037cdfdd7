#pragma once

#include <string>

#include "core/error.h"

namespace zerofleet {

/// Position of a world rank among the ranks of its group.
struct GroupMember {
  int group = 0;
  int rank = 0;        // within the group
  int world_size = 1;  // of the group
};

/// Group s of P consists of the ranks s, s + P, s + 2P, …, in this order: neighbouring ranks are in different groups.
/// Throws Error{"invalid_argument"} unless the rank is in the world and P divides the world size.
inline GroupMember group_member(int rank, int world_size, int num_groups) {
  require(rank >= 0 && rank < world_size, "invalid_argument",
          "rank " + std::to_string(rank) + " is outside a world of " + std::to_string(world_size));
  require(num_groups >= 1 && world_size % num_groups == 0, "invalid_argument",
          std::to_string(world_size) + " ranks cannot be cut into " + std::to_string(num_groups) + " equal groups");
  return {rank % num_groups, rank / num_groups, world_size / num_groups};
}

/// Group g consists of the P neighbouring ranks gP, gP + 1, …, gP + P - 1, in this order. Throws
/// Error{"invalid_argument"} unless the rank is in the world and P divides the world size.
inline GroupMember neighbour_member(int rank, int world_size, int group_size) {
  group_member(rank, world_size, group_size);  // with the same checks
  return {rank / group_size, rank % group_size, group_size};
}

}  // namespace zerofleet
