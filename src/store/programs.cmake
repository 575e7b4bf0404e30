# The programs over the store.
drun_add_program(drun-store
  SOURCES arguments.cpp command_line_arguments.cpp command_line_options.cpp main.cpp store_options.cpp
  DEPENDS drun::store CLI11::CLI11)
drun_add_program(drunctl
  SOURCES
    arguments.cpp
    command_line_arguments.cpp
    command_line_options.cpp
    control_query.cpp
    drunctl.cpp
    drunctl_commands.cpp
    drunctl_options.cpp
    drunctl_output.cpp
  DEPENDS drun::store CLI11::CLI11)
foreach(program drun-store drunctl)
  target_compile_definitions(${program} PRIVATE DRUN_VERSION="${PROJECT_VERSION}")
endforeach()
