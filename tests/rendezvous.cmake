add_library(drun_rendezvous_support STATIC support/cluster.cpp support/fake_store.cpp)
target_include_directories(drun_rendezvous_support PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}")
target_link_libraries(drun_rendezvous_support PUBLIC drun::rendezvous PRIVATE drun::options)

drun_add_test(rendezvous_test LABEL unit
  SOURCES unit/participant_test.cpp
  DEPENDS drun_rendezvous_support)
