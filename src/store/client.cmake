# The client half of drun::store.
set(DRUN_STORE_CLIENT_SOURCES
  async_client.cpp
  client.cpp
  client_calls.cpp
  client_connection.cpp
  client_machine.cpp
  connecting.cpp
  control_client.cpp
  control_machine.cpp
  dialer.cpp
  resolve.cpp
  socket.cpp
  tcpstore_call.cpp)
set(DRUN_STORE_CLIENT_HEADERS
  drun/store/async_client.hpp
  drun/store/client.hpp
  drun/store/control_client.hpp)
