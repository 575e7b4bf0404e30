#include "launcher/hosts/host_list.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "base/printable.hpp"
#include "base/split.hpp"
#include "base/trimmed.hpp"
#include "base/whole_number.hpp"
#include "launcher/cluster/hostlist.hpp"

namespace drun::launcher::hosts {
namespace {

constexpr int kMostSlots = 10'000;
constexpr std::size_t kMostMentions = 10 * cluster::kMostHosts;  // a host may come once a slot
constexpr std::string_view kScopeCharacters =
    "%0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._-";
constexpr std::string_view kBlanks = " \t\r";

Error unreadable(const std::string& what) {
  return Error(std::make_error_code(std::errc::invalid_argument), what);
}

// As text behind a colon or an equals sign.
Result<int> slots_of(std::string_view text) {
  const auto number = whole_number<int>(text);
  if (number && *number >= 1 && *number <= kMostSlots) return *number;
  return unreadable(in_quotes(text) + " is no number of slots");
}

// Names that ssh takes for options, or that a shell would read, are none.
bool is_user(std::string_view text) {
  return !text.empty() && text.front() != '-' &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return c > ' ' && c < 0x7f &&
                  std::string_view("\"'`$\\;&|<>(){}*?[]!#~,:").find(static_cast<char>(c)) ==
                      std::string_view::npos;
         });
}

bool is_ipv6(std::string_view text) {
  const auto percent = std::min(text.find('%'), text.size());  // an interface stands behind it
  const std::string_view address = text.substr(0, percent);
  const std::string_view scope = text.substr(percent);
  return std::count(address.begin(), address.end(), ':') > 1 && scope != "%" &&
         address.find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos &&
         scope.find_first_not_of(kScopeCharacters) == std::string_view::npos;
}

// "fd00::1:4" is an address, and may be meant as fd00::1 with four workers.
bool is_ambiguous(std::string_view address) {
  const auto colon = address.rfind(':');
  const auto slots = whole_number<int>(address.substr(colon + 1));
  in6_addr parsed{};
  return slots && *slots >= 1 && *slots <= kMostSlots &&
         ::inet_pton(AF_INET6, std::string(address.substr(0, colon)).c_str(), &parsed) == 1;
}

// "user@" in front of all that a list in brackets stands for.
Result<std::vector<std::string>> names_of(std::string_view text) {
  std::string_view rest = text;
  std::string user;
  if (const auto at = rest.find('@'); at != std::string_view::npos) {
    if (!is_user(rest.substr(0, at))) return unreadable(in_quotes(text) + " is no name of a host");
    user = rest.substr(0, at + 1);
    rest.remove_prefix(at + 1);
  }
  std::vector<std::string> names;
  if (is_ipv6(rest)) {
    names.emplace_back(rest);
  } else {
    auto expanded = cluster::expand_hostlist(rest);
    if (!expanded) return expanded.error();
    names = std::move(*expanded);
  }
  for (std::string& name : names) {
    if (name.front() == '-') return unreadable(in_quotes(name) + " is no name of a host");
    name.insert(0, user);
  }
  return names;
}

// "node[1-2]:4", "[fd00::1]:4", "fd00::1", "node1".
Result<std::vector<Host>> hosts_of(std::string_view word) {
  Host host;
  std::string_view names = word;
  const auto user = word.find('@') == std::string_view::npos ? 0 : word.find('@') + 1;
  const auto close = word.rfind(']');
  const bool bracketed = word.substr(user).starts_with('[') && close != std::string_view::npos &&
                         is_ipv6(word.substr(user + 1, close - user - 1));
  const auto colon = word.find(':', bracketed ? close : 0);
  if (colon != std::string_view::npos && (bracketed || !is_ipv6(word.substr(user)))) {
    const auto slots = slots_of(word.substr(colon + 1));
    if (!slots) return unreadable(in_quotes(word) + ": " + slots.error().what());
    host.slots = *slots;
    names = word.substr(0, colon);
  }
  std::string plain(names);
  if (bracketed)
    plain =
        std::string(word.substr(0, user)) + std::string(word.substr(user + 1, close - user - 1));
  if (!bracketed && is_ipv6(plain) && is_ambiguous(plain))
    return unreadable(in_quotes(word) + " may be an address or one with a number: write [" + plain +
                      "] or [" + plain.substr(0, plain.rfind(':')) + "]" +
                      plain.substr(plain.rfind(':')));
  auto all = names_of(plain);
  if (!all) return all.error();
  std::vector<Host> hosts;
  for (std::string& name : *all) {
    host.name = std::move(name);
    hosts.push_back(host);
  }
  return hosts;
}

// The comma that ends a word; those between brackets do not.
std::size_t end_of_word(std::string_view text) {
  int depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '[') ++depth;
    if (text[at] == ']') --depth;
    if (text[at] == ',' && depth <= 0) return at;
  }
  return text.size();
}

Status take_user(std::string_view name, std::vector<Host>& hosts) {
  if (!is_user(name) || name.find('@') != std::string_view::npos)
    return unreadable(in_quotes(name) + " is no name of a user");
  for (Host& host : hosts) {
    if (host.name.find('@') != std::string::npos)
      return unreadable(in_quotes(host.name) + " says already who logs in");
    host.name.insert(0, std::string(name) + "@");
  }
  return Done{};
}

Status take_key(std::string_view word, std::vector<Host>& hosts) {
  const auto equals = word.find('=');
  const std::string_view key = word.substr(0, equals);
  const bool most = key == "max_slots" || key == "max-slots";
  if (equals != std::string_view::npos) {
    // Hydra's.
    if (key == "user") return take_user(word.substr(equals + 1), hosts);
    if (key == "binding")
      return unreadable(in_quotes(word) +
                        ": a host has no binding of its own; --numa-binding is "
                        "for all");
    if (key == "ifname")
      return unreadable(in_quotes(word) +
                        ": a host has no interface of its own; --local-addr is "
                        "for all");
  }
  if (equals == std::string_view::npos || (key != "slots" && !most))
    return unreadable(in_quotes(word) + " is not slots=N, max_slots=N or user=NAME");
  const auto number = slots_of(word.substr(equals + 1));
  if (!number) return number.error();
  for (Host& host : hosts) {
    auto& slots = most ? host.max_slots : host.slots;
    if (slots && *slots != *number)
      return unreadable(in_quotes(host.name) + " has two numbers of " +
                        (most ? "max_slots" : "slots"));
    slots = *number;
  }
  return Done{};
}

// Open MPI reads "slots = 4", too.
std::string without_blanks_around_equals(std::string_view line) {
  std::string result;
  for (std::string_view rest = trimmed(line); !rest.empty();) {
    const auto equals = rest.find('=');
    result += trimmed(rest.substr(0, equals));
    if (equals == std::string_view::npos) break;
    result += '=';
    rest = trimmed(rest.substr(equals + 1));
  }
  return result;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (line = trimmed(line); !line.empty(); line = trimmed(line)) {
    const auto end = std::min(line.find_first_of(kBlanks), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return words;
}

// SGE's PE_HOSTFILE: "node1 8 all.q@node1 UNDEFINED", the host, its slots, the queue, processors.
Result<std::vector<Host>> hosts_of_sge(const std::vector<std::string_view>& words) {
  auto hosts = hosts_of(words[0]);
  const auto slots = slots_of(words[1]);
  if (!hosts || !slots) return hosts ? slots.error() : hosts.error();
  for (Host& host : *hosts)
    host.slots = *slots;
  return hosts;
}

Result<std::vector<Host>> hosts_of_line(std::string_view text) {
  const std::string plain = without_blanks_around_equals(text.substr(0, text.find('#')));
  std::string_view line = plain;
  const auto words = words_of(line);
  if (words.size() == 4 && whole_number<int>(words[1]) && line.find('=') == std::string_view::npos)
    return hosts_of_sge(words);
  std::vector<Host> hosts;
  while (!line.empty()) {
    const auto end = std::min(line.find_first_of(kBlanks), line.size());
    const std::string_view word = line.substr(0, end);
    if (hosts.empty()) {
      auto named = hosts_of(word);
      if (!named) return named.error();
      hosts = std::move(*named);
    } else if (const Status taken = take_key(word, hosts); !taken) {
      return taken.error();
    }
    line = trimmed(line.substr(end));
  }
  return hosts;
}

// Names of hosts have no case; those of users have.
std::string as_one(std::string name) {
  const auto at = name.find('@');
  for (std::size_t i = at == std::string::npos ? 0 : at; i < name.size(); ++i)
    name[i] = static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  return name;
}

Result<std::vector<Host>> merged(const std::vector<Host>& hosts) {
  std::vector<Host> result;
  std::map<std::string, std::size_t> places;
  for (const Host& host : hosts) {
    const auto [place, fresh] = places.emplace(as_one(host.name), result.size());
    if (fresh) {
      result.push_back(host);
      continue;
    }
    Host& known = result[place->second];
    known.slots = known.slots.value_or(1) + host.slots.value_or(1);
    if (host.max_slots) known.max_slots = host.max_slots;
  }
  if (result.empty()) return unreadable("it names no host");
  if (result.size() > cluster::kMostHosts)
    return unreadable("more than " + std::to_string(cluster::kMostHosts) + " hosts");
  return result;
}

// A few words stand for many hosts: of a list without sense no more is kept than this.
Status add(std::vector<Host>& hosts, const std::vector<Host>& more) {
  hosts.insert(hosts.end(), more.begin(), more.end());
  if (hosts.size() <= kMostMentions) return Done{};
  return unreadable("hosts are named more than " + std::to_string(kMostMentions) + " times");
}

}  // namespace

Result<std::vector<Host>> parse_host_list(std::string_view text) {
  std::vector<Host> hosts;
  while (!text.empty()) {
    const auto end = end_of_word(text);
    const std::string_view word = trimmed(text.substr(0, end));
    if (word.empty()) return unreadable("it has an empty name");
    auto more = hosts_of(word);
    if (!more) return more.error();
    if (const Status added = add(hosts, *more); !added) return added.error();
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return merged(hosts);
}

Result<std::vector<Host>> parse_hostfile(std::string_view text) {
  std::vector<Host> hosts;
  for (int line = 1; !text.empty(); ++line) {
    auto more = hosts_of_line(take_until(text, '\n'));
    if (!more) return unreadable("line " + std::to_string(line) + ": " + more.error().what());
    if (const Status added = add(hosts, *more); !added) return added.error();
  }
  return merged(hosts);
}

}  // namespace drun::launcher::hosts
