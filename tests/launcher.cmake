include(${CMAKE_CURRENT_LIST_DIR}/launcher_output.cmake OPTIONAL)
include(${CMAKE_CURRENT_LIST_DIR}/launcher_options.cmake OPTIONAL)
include(${CMAKE_CURRENT_LIST_DIR}/launcher_agent.cmake OPTIONAL)
include(${CMAKE_CURRENT_LIST_DIR}/launcher_binding.cmake OPTIONAL)
