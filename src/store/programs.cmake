# The programs over the store.
drun_add_program(drun-store SOURCES main.cpp arguments.cpp DEPENDS drun::store)
drun_add_program(drunctl
  SOURCES arguments.cpp control_query.cpp drunctl.cpp drunctl_commands.cpp drunctl_options.cpp drunctl_output.cpp
  DEPENDS drun::store)
foreach(program drun-store drunctl)
  target_compile_definitions(${program} PRIVATE DRUN_VERSION="${PROJECT_VERSION}")
endforeach()
