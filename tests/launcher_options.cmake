drun_add_test(command_line_test LABEL unit
  SOURCES unit/addresses_test.cpp unit/devices_test.cpp unit/dry_run_test.cpp unit/environment_test.cpp
          unit/options_command_test.cpp unit/options_help_test.cpp unit/options_rendezvous_test.cpp
          unit/options_scan_test.cpp unit/options_test.cpp unit/options_values_test.cpp
  DEPENDS drun::command_line)
drun_add_test(completion_test LABEL integration TIMEOUT 120 SOURCES integration/completion_test.cpp DEPENDS drun::command_line)

# A driver library of our own, found before any real one.
add_library(fake_nvml SHARED support/fake_nvml.cpp)
target_link_libraries(fake_nvml PRIVATE drun::options)
set_target_properties(fake_nvml PROPERTIES OUTPUT_NAME nvidia-ml SOVERSION 1
  LIBRARY_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/fake_nvml")
drun_add_test(nvml_test LABEL integration SOURCES integration/nvml_test.cpp DEPENDS drun::command_line
  ENVIRONMENT "LD_LIBRARY_PATH=${CMAKE_CURRENT_BINARY_DIR}/fake_nvml")
add_dependencies(nvml_test fake_nvml)
