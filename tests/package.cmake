# What is installed and packed must work for somebody who has only that.
set(package "${CMAKE_CURRENT_SOURCE_DIR}/package")
if(DRUN_INSTALL AND NOT DRUN_SANITIZE)
  add_test(NAME package.consumer
    COMMAND "${package}/check_install.sh" "${PROJECT_BINARY_DIR}" "${CMAKE_CXX_COMPILER}")
  add_test(NAME package.deb COMMAND "${package}/check_deb.sh" "${PROJECT_BINARY_DIR}")
  set_tests_properties(package.consumer package.deb PROPERTIES
    LABELS package SKIP_RETURN_CODE 77 TIMEOUT 900 RUN_SERIAL ON)
endif()
