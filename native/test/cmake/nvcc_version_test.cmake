# Run by ctest: which versions of nvcc are refused, and whose warnings are errors.
cmake_minimum_required(VERSION 3.22)
include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/nvcc_version.cmake)

if(DEFINED ZF_NVCC_OF_CALL)  # called by itself below: a refusal ends a run of CMake
  zf_require_nvcc(${ZF_NVCC_OF_CALL})
  return()
endif()

# Leaves the message of the refusal in `message`; empty: the version is accepted.
function(try_nvcc version)
  execute_process(COMMAND ${CMAKE_COMMAND} -DZF_NVCC_OF_CALL=${version} -P ${CMAKE_CURRENT_LIST_FILE} ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  set(message "${output}" PARENT_SCOPE)
endfunction()

try_nvcc(12.3.107)
if(NOT message MATCHES "nvcc 12\\.3\\.107 is too old for the CUDA backend, which needs 12\\.4 or later")
  message(SEND_ERROR "nvcc 12.3.107 was not refused clearly: ${message}")
endif()
foreach(version 12.4.0 12.4.131 13.0.48)
  try_nvcc(${version})
  if(message)
    message(SEND_ERROR "nvcc ${version} was refused: ${message}")
  endif()
endforeach()

foreach(case "12.4.131 OFF" "12.9.86 OFF" "13.0.48 ON" "13.1.0 ON")
  separate_arguments(case)
  list(GET case 0 version)
  list(GET case 1 expected)
  zf_is_known_nvcc(is_known ${version})
  if(NOT is_known STREQUAL expected)
    message(SEND_ERROR "warnings of nvcc ${version} as errors: ${is_known}, not ${expected}")
  endif()
endforeach()
