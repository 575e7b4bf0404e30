set(drun_embed_script "${CMAKE_CURRENT_LIST_DIR}/embed.cmake")

# drun_embed(<file> HEADER h FUNCTION ns::name OUTPUT variable): `variable` becomes a source that defines
# std::string_view ns::name(), declared in h: the file's bytes.
function(drun_embed file)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "HEADER;FUNCTION;OUTPUT" "")
  get_filename_component(name "${file}" NAME_WE)
  set(source "${CMAKE_CURRENT_BINARY_DIR}/${name}_embedded.cpp")
  # At configuration: clang-tidy reads the sources of a tree that nobody has built.
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -D "INPUT=${CMAKE_CURRENT_SOURCE_DIR}/${file}" -D "OUTPUT=${source}"
            -D "HEADER=${arg_HEADER}" -D "FUNCTION=${arg_FUNCTION}" -P "${drun_embed_script}"
    COMMAND_ERROR_IS_FATAL ANY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}" "${drun_embed_script}")
  set(${arg_OUTPUT} "${source}" PARENT_SCOPE)
endfunction()
