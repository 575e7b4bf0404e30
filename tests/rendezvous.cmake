add_library(drun_rendezvous_support STATIC
  support/cluster.cpp support/fake_store.cpp
  simulation/checker.cpp simulation/network.cpp simulation/plan.cpp simulation/world.cpp)
target_include_directories(drun_rendezvous_support PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}")
target_link_libraries(drun_rendezvous_support PUBLIC drun::rendezvous drun::options)

drun_add_test(rendezvous_test LABEL unit
  SOURCES unit/documents_test.cpp unit/failures_test.cpp unit/leader_test.cpp unit/member_test.cpp unit/membership_test.cpp
          unit/participant_test.cpp unit/rank_placement_test.cpp
  DEPENDS drun_rendezvous_support nlohmann_json::nlohmann_json)

drun_add_test(simulation_test LABEL simulation TIMEOUT 900
  SOURCES simulation/simulation_test.cpp
  DEPENDS drun_rendezvous_support)

# simulate [first seed] [how many] [most nodes] [trace]
add_executable(simulate simulation/simulate.cpp)
target_link_libraries(simulate PRIVATE drun_rendezvous_support)
# The same for millions of seeds: twice as fast, without JSON.
add_executable(simulate_fast EXCLUDE_FROM_ALL simulation/simulate.cpp simulation/kept_documents.cpp)
target_compile_definitions(simulate_fast PRIVATE DRUN_KEPT_DOCUMENTS)
target_link_libraries(simulate_fast PRIVATE drun_rendezvous_support)

# The simulation can fail: each of these breaks one line of the rendezvous, and must be noticed.
function(drun_add_mutant name source before after)
  set(mutated "${CMAKE_CURRENT_BINARY_DIR}/mutant_${name}.cpp")
  set(original "${PROJECT_SOURCE_DIR}/src/rendezvous/${source}")
  set(mutate "${CMAKE_CURRENT_SOURCE_DIR}/simulation/mutate.py")
  add_custom_command(OUTPUT "${mutated}" DEPENDS "${original}" "${mutate}" VERBATIM
    COMMAND "${Python3_EXECUTABLE}" "${mutate}" "${original}" "${mutated}" "${before}" "${after}")
  add_executable(mutant_${name} simulation/mutant.cpp "${mutated}")
  target_link_libraries(mutant_${name} PRIVATE drun_rendezvous_support)
  add_test(NAME simulation.mutant.${name} COMMAND mutant_${name})
  set_tests_properties(simulation.mutant.${name} PROPERTIES LABELS simulation TIMEOUT 900)
endfunction()
drun_add_mutant(starts_before_all_have_left decide.cpp "if (s.unleft > 0) {" "if (s.unleft > 1000) {")
drun_add_mutant(old_leader_may_write leader.cpp "transaction.guards.push_back({state_->keys.leader, value_});" "")
drun_add_mutant(survivors_change_rank placement.cpp
  "slots.emplace(*c.last_rank, c)" "slots.emplace(*c.last_rank + 1, c)")
drun_add_mutant(one_success_is_enough decide.cpp "s.succeeded == c.round().nodes" "s.succeeded > 0")
drun_add_mutant(death_goes_unnoticed membership.cpp "if (!in_order) lose(state, *place);" "(void)in_order;")
drun_add_mutant(silence_counts_from_its_notice member.cpp
  "out_of_touch_since_ = now - silent;" "out_of_touch_since_ = now - silent * 0;")
drun_add_mutant(old_workers_stay member.cpp
  "if (round->phase == Phase::Running && round->number == held_) return;" "if (round->phase == Phase::Running) return;")
