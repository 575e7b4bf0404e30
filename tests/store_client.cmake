# The store's clients and programs.
drun_add_test(store_client_unit_test LABEL unit SOURCES unit/control_machine_test.cpp unit/tcpstore_call_test.cpp DEPENDS drun::store)
drun_add_test(store_client_test LABEL integration TIMEOUT 60
  SOURCES integration/store_client_test.cpp support/scripted_peer.cpp DEPENDS drun::store drun_test_support)
