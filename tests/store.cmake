include(${CMAKE_CURRENT_LIST_DIR}/store_client.cmake OPTIONAL) # clients and programs
drun_add_test(store_test LABEL unit SOURCES unit/control_protocol_test.cpp DEPENDS drun::store)
