# Several sources of a folder are compiled as one file, so that headers are read and templates instantiated once for all of
# them. Names in unnamed namespaces are therefore unique within a folder.
option(ZF_UNITY "compile several sources of a folder at a time" ON)

# Groups the sources of a target: at most `per_unit` of one folder in each unit. More save compile time; fewer keep the build short
# after a change of one source.
function(zf_unite target per_unit)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${ZF_UNITY} UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.(cc|cu)$")
  foreach(source IN LISTS sources)
    get_filename_component(folder ${source} ABSOLUTE)
    get_filename_component(folder ${folder} DIRECTORY)
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${folder})
    string(MAKE_C_IDENTIFIER "${folder}" folder)
    if(NOT DEFINED count_${folder})
      set(count_${folder} 0)
    endif()
    math(EXPR unit "${count_${folder}} / ${per_unit}")
    math(EXPR count_${folder} "${count_${folder}} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${unit})
  endforeach()
endfunction()
