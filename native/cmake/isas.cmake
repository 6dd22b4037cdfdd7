# The instruction-set paths of this build besides the portable one. Sets ZF_PATHS, in rising order, and defines
# zf_isa_options().
option(ZF_ALL_ISAS "build every instruction-set path, for machines of other kinds too; default: the environment's ZF_ALL_ISAS" $ENV{ZF_ALL_ISAS})
set(ZF_ISAS "" CACHE STRING "build these instruction-set paths, e.g. avx2;avx512; empty: those of this machine, or all with ZF_ALL_ISAS")

# What a path needs, by the names in /proc/cpuinfo. core/system/cpu_isa.cc asks the same of the machine at run time.
set(ZF_NEEDS_avx2 avx2 fma f16c)
set(ZF_NEEDS_avx512 ${ZF_NEEDS_avx2} avx512f avx512bw avx512dq avx512vl)
set(ZF_NEEDS_avx512bf16 ${ZF_NEEDS_avx512} avx512_bf16)
set(ZF_KNOWN_ISAS avx2 avx512 avx512bf16)

# The paths that this machine can run.
function(zf_find_isas result)
  file(STRINGS /proc/cpuinfo flags REGEX "^flags" LIMIT_COUNT 1)
  string(REPLACE " " ";" flags "${flags}")
  set(found "")
  foreach(isa IN LISTS ZF_KNOWN_ISAS)
    set(missing ${ZF_NEEDS_${isa}})
    list(REMOVE_ITEM missing ${flags})
    if(NOT missing)
      list(APPEND found ${isa})
    endif()
  endforeach()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# The compiler's options for a path.
function(zf_isa_options result isa)
  list(TRANSFORM ZF_NEEDS_${isa} REPLACE "_" "" OUTPUT_VARIABLE options)
  list(TRANSFORM options PREPEND -m)
  if(isa MATCHES "^avx512")
    list(APPEND options -mprefer-vector-width=512)
  endif()
  set(${result} ${options} PARENT_SCOPE)
endfunction()

if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(ZF_PATHS "")
elseif(ZF_ISAS)
  set(ZF_PATHS ${ZF_ISAS})
elseif(ZF_ALL_ISAS AND NOT ZF_SANITIZE)
  set(ZF_PATHS ${ZF_KNOWN_ISAS})
else()
  zf_find_isas(ZF_PATHS)
  # Threads share work in the same way on every path: ThreadSanitizer sees the best one. Paths of one width read and
  # write the same elements: AddressSanitizer sees one of each width.
  if(ZF_SANITIZE STREQUAL "thread")
    string(REGEX REPLACE ".*;" "" ZF_PATHS "${ZF_PATHS}")
  elseif(ZF_SANITIZE AND "avx512bf16" IN_LIST ZF_PATHS)
    list(REMOVE_ITEM ZF_PATHS avx512)
  endif()
endif()
