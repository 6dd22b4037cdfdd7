# Warnings are errors with the compilers that the project is developed with. Other compilers have warnings that are
# untested here; these must not fail the build.
set(ZF_KNOWN_COMPILER OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  set(ZF_KNOWN_COMPILER ON)
endif()
option(ZF_WARNINGS_ARE_ERRORS "end the build at a warning; on with compilers that the project is developed with" ${ZF_KNOWN_COMPILER})

set(ZF_CXX_WERROR "")
if(ZF_WARNINGS_ARE_ERRORS)
  set(ZF_CXX_WERROR -Werror)
endif()
