# Gloo, the transport between ranks of several processes and hosts. Sets ZF_GLOO_LIBRARIES, and leaves in
# ZF_SOURCES one definition of comm/gloo_comm.h's declarations: the communicator, or a stub that reports its
# absence.
if(ZF_GLOO MATCHES "/")
  unset(ZF_GLOO CACHE)  # the path of its library, which build folders of before this option have in its place
endif()
set(ZF_GLOO auto CACHE STRING "ranks over TCP with Gloo: auto (where it is found), on, off")
set_property(CACHE ZF_GLOO PROPERTY STRINGS auto on off)
if(NOT ZF_GLOO MATCHES "^(auto|on|off)$")
  message(FATAL_ERROR "ZF_GLOO is '${ZF_GLOO}': it must be auto, on or off")
endif()

set(ZF_GLOO_LIBRARIES "")
if(NOT ZF_GLOO STREQUAL "off")
  find_library(ZF_GLOO_LIBRARY gloo)
  find_path(ZF_GLOO_INCLUDE gloo/rendezvous/context.h)
  if(ZF_GLOO_LIBRARY AND ZF_GLOO_INCLUDE)
    set(ZF_GLOO_LIBRARIES ${ZF_GLOO_LIBRARY})
  elseif(ZF_GLOO STREQUAL "on" OR ZF_BUILD_ADDON)
    message(FATAL_ERROR "Gloo was not found, without which ranks cannot meet: install libgloo-dev. (Tests alone are built without it: "
                        "-DZF_BUILD_ADDON=OFF)")
  endif()
endif()
if(ZF_GLOO_LIBRARIES)
  list(FILTER ZF_SOURCES EXCLUDE REGEX "/gloo_absent\\.cc$")
else()
  list(FILTER ZF_SOURCES EXCLUDE REGEX "/gloo_comm\\.cc$")
  message(STATUS "Gloo is left out: ranks of several processes cannot meet in this build")
endif()
