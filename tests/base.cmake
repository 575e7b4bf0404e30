drun_add_test(base_test LABEL unit SOURCES unit/endpoint_test.cpp DEPENDS drun::base)
