# The CUDA backend: sources, architectures and flags. Sets ZF_HAS_CUDA and ZF_CUDA_SOURCES, which always hold one
# definition of everything that core/cuda and kernels/*/cuda declare: the backend, or stubs that report its
# absence.
include(nvcc_version)  # zf_require_nvcc(), zf_is_known_nvcc()
set(ZF_CUDA_DEFAULT auto)
if(NOT "$ENV{ZF_CUDA}" STREQUAL "")
  set(ZF_CUDA_DEFAULT $ENV{ZF_CUDA})  # read by the first configuration of a build folder, as CUDACXX is
endif()
set(ZF_CUDA ${ZF_CUDA_DEFAULT} CACHE STRING "CUDA backend: auto (where nvcc and a GPU are found), on, off")
set_property(CACHE ZF_CUDA PROPERTY STRINGS auto on off)
if(NOT ZF_CUDA MATCHES "^(auto|on|off)$")
  message(FATAL_ERROR "ZF_CUDA is '${ZF_CUDA}': it must be auto, on or off")
endif()

# The architectures of this machine's GPUs, e.g. "90"; empty where the driver is missing or shows none from sm_80 on.
function(zf_find_gpus result)
  find_program(ZF_NVIDIA_SMI nvidia-smi)
  set(found "")
  if(ZF_NVIDIA_SMI)
    execute_process(COMMAND ${ZF_NVIDIA_SMI} --query-gpu=compute_cap --format=csv,noheader OUTPUT_VARIABLE output ERROR_QUIET)
    string(REGEX MATCHALL "[0-9]+\\.[0-9]" found "${output}")
    list(TRANSFORM found REPLACE "\\." "")
    list(REMOVE_DUPLICATES found)
    list(FILTER found EXCLUDE REGEX "^[1-7][0-9]$")  # these cannot run the kernels
  endif()
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

# Without a GPU nothing could run the kernels, which nvcc takes minutes to compile. Sanitizers do not cover
# device code.
set(ZF_HAS_CUDA OFF)
set(ZF_GPUS_HERE "")
if(ZF_CUDA STREQUAL "auto" AND NOT ZF_SANITIZE)
  zf_find_gpus(ZF_GPUS_HERE)
endif()
if(ZF_CUDA STREQUAL "on" OR ZF_GPUS_HERE)
  include(CheckLanguage)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    if(ZF_GPUS_HERE)
      set(CMAKE_CUDA_ARCHITECTURES ${ZF_GPUS_HERE})
    else()
      # Machine code for the A100 and H100 families, and PTX from which the driver makes that of later ones.
      set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
    endif()
  endif()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    zf_require_nvcc(${CMAKE_CUDA_COMPILER_VERSION})
    set(ZF_HAS_CUDA ON)
  elseif(ZF_CUDA STREQUAL "on")
    message(FATAL_ERROR "ZF_CUDA is on, and no nvcc was found: put it on PATH or name it in CUDACXX")
  endif()
endif()

if(NOT ZF_HAS_CUDA)
  set(ZF_CUDA_SOURCES core/cuda/absent.cc core/cuda/absent_traits.cc kernels/backends/cuda/absent_table.cc)
  return()
endif()

file(GLOB ZF_CUDA_SOURCES CONFIGURE_DEPENDS core/cuda/*.cc kernels/*/cuda/*.cc kernels/*/cuda/*.cu)
list(FILTER ZF_CUDA_SOURCES EXCLUDE REGEX "/absent[a-z_]*\\.cc$")
if(ZF_UNITY)
  zf_unite_cuda(ZF_CUDA_SOURCES 4)
endif()
find_package(CUDAToolkit REQUIRED)
set(CMAKE_CUDA_RUNTIME_LIBRARY None)      # linked by name below, and statically: the addon must load on machines
set(ZF_CUDA_LIBRARIES CUDA::cudart_static)  # without any CUDA library
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
set(CMAKE_CUDA_STANDARD 20)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  # CMake before 3.26 does not know that this nvcc can.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
set(CMAKE_CUDA_FLAGS_RELEASE "-O3")
set_source_files_properties(core/cuda/runtime.cc core/cuda/traits.cc PROPERTIES INCLUDE_DIRECTORIES "${CUDAToolkit_INCLUDE_DIRS}")
set(ZF_CUDA_WERROR "")
set(ZF_CUDA_HOST_WERROR "")
zf_is_known_nvcc(ZF_KNOWN_NVCC ${CMAKE_CUDA_COMPILER_VERSION})
if(ZF_WARNINGS_ARE_ERRORS AND ZF_KNOWN_NVCC)
  set(ZF_CUDA_WERROR -Werror=all-warnings)
  set(ZF_CUDA_HOST_WERROR -Werror,)
endif()
# Correctly rounded operations only, none fused, subnormals kept: device results are then the CPU's, bit for bit.
target_compile_options(zf_flags INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr
                       -fmad=false -prec-div=true -prec-sqrt=true -ftz=false ${ZF_CUDA_WERROR}
                       -Xcompiler=-Wall,-Wextra,-Wshadow,${ZF_CUDA_HOST_WERROR}-Wno-psabi,-ffp-contract=off,-fno-math-errno>)

# Figures of each kernel beside its object, for tools/gpu/kernel_resources.py.
option(ZF_PTXAS_LOGS "keep what ptxas reports of each kernel" OFF)
if(ZF_PTXAS_LOGS)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  list(PREPEND CMAKE_CUDA_COMPILER_LAUNCHER ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/ptxas_log.py)
  target_compile_options(zf_flags INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:-Xptxas=-v>)
endif()
