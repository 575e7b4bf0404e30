#include "launcher/starter/name_lookup.hpp"

#include <netdb.h>
#include <sys/socket.h>

#include <memory>

#include "base/addresses.hpp"

namespace drun::launcher {

bool leads_others(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (::getaddrinfo(name.c_str(), nullptr, &hints, &list) != 0) return false;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, ::freeaddrinfo);
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(each->ai_addr, each->ai_addrlen, text, sizeof text, nullptr, 0,
                      NI_NUMERICHOST) == 0 &&
        !is_loopback_address(text))
      return true;
  }
  return false;
}

}  // namespace drun::launcher
