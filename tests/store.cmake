include(${CMAKE_CURRENT_LIST_DIR}/store_client.cmake OPTIONAL) # clients and programs
# The server: codecs, table, sessions, sockets.
drun_add_test(store_test LABEL unit
  SOURCES unit/control_protocol_test.cpp
  DEPENDS drun::store)
drun_add_test(store_server_test LABEL integration
  SOURCES integration/server_test.cpp
  DEPENDS drun::store)
