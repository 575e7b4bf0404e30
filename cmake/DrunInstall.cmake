# What is installed, as two components that are also two Debian packages:
#   runtime      the programs and their documents          -> drun_*.deb
#   development  headers, static libraries, CMake package  -> libdrun-dev_*.deb
include(CMakePackageConfigHelpers)
set(drun_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/drun")

foreach(program drun drun-store drunctl)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME COMPONENT runtime)
  endif()
endforeach()
if(TARGET drun)
  # Called by this name, drun keeps the contract of torch.distributed.launch.
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  file(CREATE_LINK drun "${PROJECT_BINARY_DIR}/bin/drun-launch" SYMBOLIC)
  install(FILES "${PROJECT_BINARY_DIR}/bin/drun-launch" TYPE BIN COMPONENT runtime)
endif()
# What the programs can print: their manual pages and the completions of three shells.
set(printed "${PROJECT_BINARY_DIR}/printed")
file(MAKE_DIRECTORY "${printed}")
foreach(program drun drun-launch drun-store drunctl)
  set(target ${program})
  set(command ${program})
  if(program STREQUAL "drun-launch")
    set(target drun)
    set(command "${PROJECT_BINARY_DIR}/bin/drun-launch")
  endif()
  if(NOT TARGET ${target})
    continue()
  endif()
  add_custom_command(
    OUTPUT "${printed}/${program}" "${printed}/_${program}" "${printed}/${program}.fish"
    COMMAND ${command} --print-completion bash > ${program}
    COMMAND ${command} --print-completion zsh > _${program}
    COMMAND ${command} --print-completion fish > ${program}.fish
    WORKING_DIRECTORY "${printed}" DEPENDS ${target} VERBATIM)
  list(APPEND drun_printed_files "${printed}/${program}")
  install(FILES "${printed}/${program}"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" COMPONENT runtime)
  install(FILES "${printed}/_${program}" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions" COMPONENT runtime)
  install(FILES "${printed}/${program}.fish"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d" COMPONENT runtime)
  if(TARGET ${program}) # a link has no page of its own
    add_custom_command(OUTPUT "${printed}/${program}.1" COMMAND ${program} --print-man > ${program}.1
      WORKING_DIRECTORY "${printed}" DEPENDS ${program} VERBATIM)
    list(APPEND drun_printed_files "${printed}/${program}.1")
    install(FILES "${printed}/${program}.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT runtime)
  endif()
endforeach()
add_custom_target(drun_printed ALL DEPENDS ${drun_printed_files})
install(FILES "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/LICENSE"
  TYPE DOC COMPONENT runtime)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" TYPE DOC COMPONENT runtime FILES_MATCHING PATTERN "*.md" PATTERN "*.png" PATTERN "*.svg")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/examples" TYPE DOC COMPONENT runtime
  USE_SOURCE_PERMISSIONS PATTERN "examples/CMakeLists.txt" EXCLUDE PATTERN __pycache__ EXCLUDE)

install(TARGETS drun_base drun_events drun_secure drun_status drun_store drun_store_client drun_store_protocol drun_store_server drun_store_table EXPORT drunTargets
  ARCHIVE COMPONENT development FILE_SET HEADERS COMPONENT development)
install(EXPORT drunTargets NAMESPACE drun:: DESTINATION "${drun_cmake_dir}" COMPONENT development)
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/drunConfig.cmake.in" drunConfig.cmake
  INSTALL_DESTINATION "${drun_cmake_dir}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(drunConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/drunConfig.cmake" "${CMAKE_CURRENT_BINARY_DIR}/drunConfigVersion.cmake"
  DESTINATION "${drun_cmake_dir}" COMPONENT development)

# For those who build without CMake: pkg-config finds the rest from where the file itself lies.
file(RELATIVE_PATH drun_prefix_from_pc "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
configure_file("${PROJECT_SOURCE_DIR}/cmake/drun.pc.in" drun.pc @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/drun.pc"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT development)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME drun)
set(CPACK_PACKAGE_VENDOR "The drun authors")
set(CPACK_PACKAGE_CONTACT "The drun authors <drun@drun.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}/packages")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME drun)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION net)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS "libhwloc15 (>= 2.1), libcurl4, libssl3") # loaded for --numa-binding, for etcd, for a token
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libdrun-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_RECOMMENDS "libasio-dev (>= 1:1.22)") # for the asynchronous clients
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION
  "Starts a distributed job the way torchrun does\n Native launcher with an elastic rendezvous and a TCPStore-compatible key-value store.")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
  "Client of drun's key-value store\n Headers, static libraries and the CMake package.")
include(CPack)
