# Several sources of a module are compiled as one file, so that headers are read and templates instantiated once for all
# of them. Names in unnamed namespaces are therefore unique within a module, as zf_module_of() says.
option(ZF_UNITY "compile several sources of a module at a time" ON)

# Returns the module of a source: its top folder (core, zero, test/zero). In kernels/ the device is part of the module:
# sources in the folders `cpu` of all families are one module, and so are those in `simd` and `cuda`.
function(zf_module_of result source)
  get_filename_component(folder ${source} ABSOLUTE)
  get_filename_component(folder ${folder} DIRECTORY)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${folder})
  string(REGEX MATCH "^(test/)?[^/]+" module "${folder}")
  if(folder MATCHES "^kernels/[^/]+/([^/]+)$")
    string(APPEND module "_${CMAKE_MATCH_1}")
  endif()
  string(MAKE_C_IDENTIFIER "${module}" module)
  set(${result} ${module} PARENT_SCOPE)
endfunction()

# Groups the sources of a target: at most `per_unit` of one module in each unit. More save compile time; fewer keep the
# build short after a change of one source.
function(zf_unite target per_unit)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${ZF_UNITY} UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.(cc|cu)$")
  foreach(source IN LISTS sources)
    zf_module_of(module ${source})
    if(NOT DEFINED count_${module})
      set(count_${module} 0)
    endif()
    math(EXPR unit "${count_${module}} / ${per_unit}")
    math(EXPR count_${module} "${count_${module}} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${module}_${unit})
  endforeach()
endfunction()

# The same for the CUDA sources of a list, which CMake before 3.31 does not unite. It saves time because nvcc reads the
# headers of a source for the host and again for each architecture. Sources that take long to compile stay alone.
function(zf_unite_cuda list per_unit)
  set(sources ${${list}})
  list(FILTER sources INCLUDE REGEX "\\.cu$")
  list(FILTER sources EXCLUDE REGEX "/(attention_[a-z_]*|tile_gemm)\\.cu$")
  list(REMOVE_ITEM ${list} ${sources})
  set(number 0)
  while(sources)
    list(SUBLIST sources 0 ${per_unit} unit)
    list(REMOVE_ITEM sources ${unit})
    list(TRANSFORM unit REPLACE "(.+)" "#include \"\\1\"\n")
    list(JOIN unit "" text)
    set(file ${CMAKE_BINARY_DIR}/unity/cuda_${number}.cu)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
    list(APPEND ${list} ${file})
    math(EXPR number "${number} + 1")
  endwhile()
  set(alone ${${list}})
  list(FILTER alone INCLUDE REGEX "\\.cu$")
  set_source_files_properties(${alone} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set(${list} ${${list}} PARENT_SCOPE)
endfunction()
