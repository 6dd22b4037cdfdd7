# Versions of nvcc: the oldest that can compile the CUDA backend, and those whose warnings are errors.
set(ZF_OLDEST_NVCC 12.4)

function(zf_require_nvcc version)
  if(version VERSION_LESS ZF_OLDEST_NVCC)
    message(FATAL_ERROR "nvcc ${version} is too old for the CUDA backend, which needs ${ZF_OLDEST_NVCC} or later: name another one in "
                        "CUDACXX, or build without CUDA (-DZF_CUDA=off)")
  endif()
endfunction()

# The project is developed with 13.0; what earlier releases warn about must not fail the build.
function(zf_is_known_nvcc result version)
  if(version VERSION_GREATER_EQUAL 13.0)
    set(${result} ON PARENT_SCOPE)
  else()
    set(${result} OFF PARENT_SCOPE)
  endif()
endfunction()
