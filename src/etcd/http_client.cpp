#include "etcd/http_client.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <system_error>
#include <utility>

#include "base/file_descriptor.hpp"
#include "base/poll_until.hpp"
#include "base/signal_block.hpp"
#include "etcd/curl_library.hpp"

namespace drun::etcd {
namespace {

constexpr std::size_t kLongestBody = 512UL << 20U;
constexpr int kLongestSleep = 1'000;  // milliseconds; libcurl wakes sooner if it must
// Its own limit is five minutes.
constexpr long kLongestConnect = 5'000;  // milliseconds
// A stream on which nothing comes may have lost its other end: found within 5 + 3 * 2 seconds.
constexpr long kQuiet = 5;
constexpr long kProbeInterval = 2;
constexpr int kProbes = 3;
constexpr std::chrono::milliseconds kLongestQuit{2'000};
// Orders that a thread may be behind with. A mailbox has room for 8,000.
constexpr std::uint64_t kMostOrders = 4'000;

// libcurl's words for what no further attempt will mend.
bool is_final(CURLcode code, const std::string& text) {
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_ENGINE_NOTFOUND:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_NOT_BUILT_IN:
      return true;
    default:  // an alert of the other side, or one that does not speak TLS
      return text.find("SSL routines") != std::string::npos;
  }
}

// What libcurl has no option for.
int set_probes(void* /*user*/, curl_socket_t socket, curlsocktype /*purpose*/) {
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &kProbes, sizeof kProbes);
  return CURL_SOCKOPT_OK;
}

// "[fe80::1%25eth0]:2379": in a URL the scope's percent sign is escaped.
std::string place_in_url(const Endpoint& endpoint) {
  std::string place = to_string(endpoint);
  const auto scope = place.find('%');
  if (scope != std::string::npos) place.insert(scope + 1, "25");
  return place;
}

}  // namespace

// What runs in the thread.
class HttpClient::Worker {
 public:
  Worker(std::shared_ptr<Desk> desk, Tls tls)
      : curl_(*curl_library()), desk_(std::move(desk)), tls_(std::move(tls)) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() { drop(); }

  void run() {
    while (take_orders()) {
      perform();
      curl_waitfd wake{desk_->orders.fd(), CURL_WAIT_POLLIN, 0};
      // Without a server there is no handle, and poll() does the same.
      if (multi_ != nullptr) {
        curl_.multi_poll(multi_, &wake, 1, kLongestSleep, nullptr);
      } else {
        await_ready(desk_->orders.fd(), POLLIN, kNoDeadline);
      }
    }
    drop();
    say(Ended{});
  }

 private:
  struct Transfer {
    Worker* worker = nullptr;
    std::uint64_t call = 0;
    bool streams = false;
    CURL* handle = nullptr;
    curl_slist* headers = nullptr;
    curl_slist* addresses = nullptr;
    std::string body;
    std::array<char, CURL_ERROR_SIZE> error{};
  };

  void say(News news) { desk_->news.post(std::make_unique<News>(std::move(news))); }
  void say_failed(std::uint64_t call) {
    Answer answer;
    answer.call = call;
    answer.reply.error = "libcurl cannot begin";
    say(std::move(answer));
  }

  // False: told to quit.
  bool take_orders() {
    while (const auto order = desk_->orders.receive()) {
      ++desk_->taken;
      if (std::holds_alternative<Quit>(*order)) return false;
      if (std::holds_alternative<Drop>(*order)) drop();
      if (const auto* cancel = std::get_if<Cancel>(order.get())) end(cancel->call);
      if (const auto* post = std::get_if<Post>(order.get())) begin(*post);
    }
    return true;
  }

  void begin(const Post& post) {
    if (multi_ == nullptr) multi_ = curl_.multi_init();
    auto transfer = std::make_unique<Transfer>();
    transfer->worker = this;
    transfer->call = post.call.id;
    transfer->streams = post.call.streams;
    transfer->handle = curl_.easy_init();
    if (multi_ == nullptr || transfer->handle == nullptr) return say_failed(post.call.id);
    set_up(*transfer, post);
    const CURLMcode added = curl_.multi_add_handle(multi_, transfer->handle);
    transfers_[post.call.id] = std::move(transfer);
    if (added == CURLM_OK) return;
    end(post.call.id);
    say_failed(post.call.id);
  }

  template <typename Value>
  void set(const Transfer& transfer, CURLoption option, Value value) {
    curl_.easy_setopt(transfer.handle, option, value);
  }

  void set_up(Transfer& transfer, const Post& post) {
    const Endpoint& endpoint = post.server.endpoint;
    const std::string place = place_in_url(endpoint);
    const std::string url = (tls_.used ? "https://" : "http://") + place + post.call.path;
    set(transfer, CURLOPT_URL, url.c_str());
    set(transfer, CURLOPT_POST, 1L);
    set(transfer, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(post.call.body.size()));
    set(transfer, CURLOPT_COPYPOSTFIELDS, post.call.body.c_str());
    transfer.headers = curl_.slist_append(transfer.headers, "Content-Type: application/json");
    transfer.headers = curl_.slist_append(transfer.headers, "Expect:");  // it would cost a turn
    if (!post.token.empty())
      transfer.headers =
          curl_.slist_append(transfer.headers, ("Authorization: " + post.token).c_str());
    set(transfer, CURLOPT_HTTPHEADER, transfer.headers);
    if (!post.server.addresses.empty()) {
      std::string known = place + ":";
      for (const auto& address : post.server.addresses)
        known += (known.ends_with(':') ? "" : ",") + address;
      transfer.addresses = curl_.slist_append(transfer.addresses, known.c_str());
      set(transfer, CURLOPT_RESOLVE, transfer.addresses);
    }
    set(transfer, CURLOPT_WRITEFUNCTION, &Worker::on_bytes);
    set(transfer, CURLOPT_WRITEDATA, &transfer);
    set(transfer, CURLOPT_PRIVATE, &transfer);
    set(transfer, CURLOPT_ERRORBUFFER, transfer.error.data());
    set(transfer, CURLOPT_NOSIGNAL, 1L);
    set(transfer, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    // The job's traffic goes to where it was told to, whatever the environment says of proxies.
    set(transfer, CURLOPT_PROXY, "");
    set(transfer, CURLOPT_CONNECTTIMEOUT_MS, kLongestConnect);
    set(transfer, CURLOPT_TCP_KEEPALIVE, 1L);
    set(transfer, CURLOPT_TCP_KEEPIDLE, kQuiet);
    set(transfer, CURLOPT_TCP_KEEPINTVL, kProbeInterval);
    set(transfer, CURLOPT_SOCKOPTFUNCTION, &set_probes);
    // When a connection that was used before breaks ahead of the first byte of an answer, libcurl
    // sends the request once more, although the first one may have been carried out.
    set(transfer, CURLOPT_FRESH_CONNECT, post.call.once ? 1L : 0L);
    set(transfer, CURLOPT_FORBID_REUSE, post.call.once ? 1L : 0L);
    if (!tls_.ca_file.empty()) {
      set(transfer, CURLOPT_CAINFO, tls_.ca_file.c_str());
      set(transfer, CURLOPT_CAPATH, static_cast<const char*>(nullptr));
    }
    if (!tls_.certificate_file.empty())
      set(transfer, CURLOPT_SSLCERT, tls_.certificate_file.c_str());
    if (!tls_.key_file.empty()) set(transfer, CURLOPT_SSLKEY, tls_.key_file.c_str());
    // Nobody is asked at the terminal for the pass phrase of a key: one that needs one is refused.
    set(transfer, CURLOPT_KEYPASSWD, "");
  }

  static std::size_t on_bytes(char* bytes, std::size_t size, std::size_t count, void* user) {
    Transfer& transfer = *static_cast<Transfer*>(user);
    const std::size_t length = size * count;
    long status = 0;
    transfer.worker->curl_.easy_getinfo(transfer.handle, CURLINFO_RESPONSE_CODE, &status);
    if (transfer.streams && status == 200) {
      transfer.worker->say(Piece{transfer.call, std::string(bytes, length)});
    } else {
      if (transfer.body.size() + length > kLongestBody) return 0;  // an error, for libcurl
      transfer.body.append(bytes, length);
    }
    return length;
  }

  void perform() {
    if (multi_ == nullptr) return;
    int running = 0;
    curl_.multi_perform(multi_, &running);
    int left = 0;
    while (const CURLMsg* message = curl_.multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      char* user = nullptr;
      curl_.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &user);
      const CURLcode code = message->data.result;
      finish(*static_cast<Transfer*>(static_cast<void*>(user)), code);
    }
  }

  void finish(Transfer& transfer, CURLcode code) {
    Answer answer;
    answer.call = transfer.call;
    EtcdReply& reply = answer.reply;
    if (code == CURLE_OK) {
      long status = 0;
      curl_.easy_getinfo(transfer.handle, CURLINFO_RESPONSE_CODE, &status);
      reply.status = static_cast<int>(status);
      reply.body = std::move(transfer.body);
      if (transfer.streams && status == 200) {
        reply.status = 0;
        reply.error = "it ended a watch";
      }
    } else {
      reply.error = transfer.error.data();
      if (reply.error.empty()) reply.error = curl_.easy_strerror(code);
      long os_error = 0;
      curl_.easy_getinfo(transfer.handle, CURLINFO_OS_ERRNO, &os_error);
      if (code == CURLE_COULDNT_CONNECT && os_error != 0)
        reply.error = std::generic_category().message(static_cast<int>(os_error));
      reply.final = is_final(code, reply.error);
      const bool got_nothing = code == CURLE_GOT_NOTHING;
      reply.closed = !reply.final && (got_nothing || code == CURLE_SSL_CONNECT_ERROR);
      if (reply.closed)
        reply.error =
            got_nothing && !tls_.used
                ? "it closes the connection when it is asked; if it speaks TLS, say "
                  "protocol=https in --rdzv-conf"
                : "it closes the connection when it is greeted in TLS; if it speaks none, "
                  "say protocol=http in --rdzv-conf";
    }
    answer.ends.local = end_of(transfer, CURLINFO_LOCAL_IP, CURLINFO_LOCAL_PORT);
    answer.ends.remote = end_of(transfer, CURLINFO_PRIMARY_IP, CURLINFO_PRIMARY_PORT);
    end(transfer.call);
    say(std::move(answer));
  }

  Endpoint end_of(const Transfer& transfer, CURLINFO address, CURLINFO port) {
    const char* text = nullptr;
    long number = 0;
    curl_.easy_getinfo(transfer.handle, address, &text);
    curl_.easy_getinfo(transfer.handle, port, &number);
    return {text == nullptr ? "" : text, static_cast<std::uint16_t>(number)};
  }

  void end(std::uint64_t call) {
    const auto found = transfers_.find(call);
    if (found == transfers_.end()) return;
    const Transfer& transfer = *found->second;
    curl_.multi_remove_handle(multi_, transfer.handle);
    curl_.easy_cleanup(transfer.handle);
    curl_.slist_free_all(transfer.headers);
    curl_.slist_free_all(transfer.addresses);
    transfers_.erase(found);
  }

  void drop() {
    while (!transfers_.empty())
      end(transfers_.begin()->first);
    if (multi_ != nullptr) curl_.multi_cleanup(std::exchange(multi_, nullptr));
  }

  const CurlLibrary curl_;
  const std::shared_ptr<Desk> desk_;
  const Tls tls_;
  CURLM* multi_ = nullptr;
  std::map<std::uint64_t, std::unique_ptr<Transfer>> transfers_;
};

HttpClient::HttpClient(asio::io_context& io, const Tls& tls, Calls calls)
    : calls_(std::move(calls)),
      desk_(std::make_shared<Desk>()),
      readable_(io, duplicate(desk_->news.fd(), "hear of etcd").release()),
      self_(std::make_shared<HttpClient*>(this)) {
  await_news();
  const SignalBlock no_signals;  // they are the other threads' business
  thread_ = std::thread([desk = desk_, tls] { Worker(desk, tls).run(); });
}

// The thread may be waiting for room for its news.
HttpClient::~HttpClient() {
  *self_ = nullptr;
  desk_->orders.post(std::make_unique<Order>(Quit{}));
  const auto deadline = std::chrono::steady_clock::now() + kLongestQuit;
  for (bool late = false; !late;) {
    late = !await_ready(desk_->news.fd(), POLLIN, deadline);
    while (const auto news = desk_->news.receive()) {
      if (!std::holds_alternative<Ended>(*news)) continue;
      thread_.join();
      return;
    }
  }
  thread_.detach();
}

void HttpClient::post(const HttpServer& server, const EtcdCall& call, const std::string& token) {
  posted_ = call.id;
  order(Post{server, call, token});
}

void HttpClient::cancel(std::uint64_t call) {
  order(Cancel{call});
}

void HttpClient::drop() {
  dropped_ = posted_;
  order(Drop{});
}

// A thread that hangs is given no more: the caller must not hang, too. What was asked for is not
// answered then, and the caller has a limit for that.
void HttpClient::order(Order order) {
  if (ordered_ - desk_->taken >= kMostOrders) return;
  ++ordered_;
  desk_->orders.post(std::make_unique<Order>(std::move(order)));
}

void HttpClient::await_news() {
  readable_.async_wait(asio::posix::descriptor_base::wait_read,
                       [self = self_](std::error_code error) {
                         if (!error && *self != nullptr) (*self)->read_news();
                       });
}

// What is called may end this, or throw: the rest of the news is heard all the same.
void HttpClient::read_news() {
  const auto self = self_;
  try {
    while (const auto news = desk_->news.receive()) {
      const auto* answer = std::get_if<Answer>(news.get());
      const auto* piece = std::get_if<Piece>(news.get());
      if (answer != nullptr && answer->call > dropped_)
        calls_.replied(answer->call, answer->reply, answer->ends);
      if (piece != nullptr && piece->call > dropped_) calls_.streamed(piece->call, piece->bytes);
      if (*self == nullptr) return;
    }
  } catch (...) {
    if (*self != nullptr) await_news();
    throw;
  }
  await_news();
}

}  // namespace drun::etcd
