drun_add_test(devices_test LABEL unit
  SOURCES unit/usable_cpus_test.cpp unit/device_masks_test.cpp unit/devices_test.cpp unit/device_inventory_test.cpp
  DEPENDS drun::devices)
drun_add_test(binding_test LABEL unit SOURCES unit/binding_test.cpp unit/placement_test.cpp DEPENDS drun::binding)

# A stand-in for NVIDIA's management library, found where the real one would be.
add_library(drun_fake_nvml SHARED support/fake_nvml.cpp)
target_link_libraries(drun_fake_nvml PRIVATE drun::options)
set(fake_nvml_folder "${CMAKE_CURRENT_BINARY_DIR}/fake_nvml")
set_target_properties(drun_fake_nvml PROPERTIES OUTPUT_NAME nvidia-ml SOVERSION 1
  LIBRARY_OUTPUT_DIRECTORY "${fake_nvml_folder}")
drun_add_test(nvml_test LABEL integration SOURCES integration/nvml_test.cpp DEPENDS drun::binding
  ENVIRONMENT "LD_LIBRARY_PATH=${fake_nvml_folder}")
add_dependencies(nvml_test drun_fake_nvml)
add_test(NAME e2e.devices COMMAND Python3::Interpreter "${CMAKE_CURRENT_SOURCE_DIR}/e2e/devices.py"
  "${PROJECT_BINARY_DIR}/bin" "${fake_nvml_folder}")
set_tests_properties(e2e.devices PROPERTIES LABELS e2e TIMEOUT 600)
