drun_add_test(store_test LABEL unit SOURCES unit/control_protocol_test.cpp DEPENDS drun::store)
