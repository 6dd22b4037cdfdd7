# Uses ccache where it is installed, so that one checkout reuses what another compiled. Must be set before the
# languages, which inherit their launchers. Paths below the checkout count as relative, so that its own path is not part
# of the cache key.
set(ZF_CCACHE auto CACHE STRING "compile through ccache: auto (where it is found), off")
set_property(CACHE ZF_CCACHE PROPERTY STRINGS auto off)
set(ZF_HAS_CCACHE OFF)
if(DEFINED CMAKE_CXX_COMPILER_LAUNCHER OR DEFINED ENV{CMAKE_CXX_COMPILER_LAUNCHER})
  set(ZF_HAS_CCACHE ON)  # a launcher that the user chose takes precedence
elseif(NOT ZF_CCACHE STREQUAL "off")
  find_program(ZF_CCACHE_PROGRAM ccache)
  if(ZF_CCACHE_PROGRAM)
    set(ZF_HAS_CCACHE ON)
    get_filename_component(ZF_CHECKOUT ${CMAKE_CURRENT_SOURCE_DIR}/.. ABSOLUTE)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${ZF_CHECKOUT} CCACHE_NOHASHDIR=1 ${ZF_CCACHE_PROGRAM})
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()
endif()
