include(${CMAKE_CURRENT_LIST_DIR}/store_client.cmake OPTIONAL) # clients and programs
# The server: codecs, table, sessions, sockets.
drun_add_test(store_test LABEL unit
  SOURCES
    unit/connection_test.cpp
    unit/control_protocol_test.cpp
    unit/control_requests_test.cpp
    unit/key_hash_test.cpp
    unit/sessions_test.cpp
    unit/snapshot_test.cpp
    unit/snapshot_writer_test.cpp
    unit/tcpstore_opcodes_test.cpp
    unit/tcpstore_protocol_test.cpp
    unit/tcpstore_requests_test.cpp
  DEPENDS drun::store)
drun_add_test(store_golden_test LABEL golden TIMEOUT 600
  SOURCES golden/tcpstore_golden_test.cpp
  DEPENDS drun::store nlohmann_json::nlohmann_json)
drun_add_test(store_property_test LABEL property TIMEOUT 600
  SOURCES property/control_watch_test.cpp property/store_model_test.cpp support/store_model.cpp
  DEPENDS drun::store)
drun_add_test(store_server_test LABEL integration
  SOURCES
    integration/server_test.cpp
    integration/server_limits_test.cpp
    integration/server_session_test.cpp
  DEPENDS drun::store)
