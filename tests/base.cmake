drun_add_test(base_test LABEL unit SOURCES unit/cgroup_mounts_test.cpp unit/endpoint_test.cpp DEPENDS drun::base)
