#include "etcd/curl_library.hpp"

#include "base/loaded_library.hpp"

namespace drun::etcd {
namespace {

Result<CurlLibrary> load() {
  CurlLibrary curl;
  LoadedLibrary file({"libcurl.so.4", "a rendezvous at etcd", "7.68", "libcurl4"});
  file.need("curl_global_init", curl.global_init);
  file.need("curl_easy_init", curl.easy_init);
  file.need("curl_easy_setopt", curl.easy_setopt);
  file.need("curl_easy_getinfo", curl.easy_getinfo);
  file.need("curl_easy_strerror", curl.easy_strerror);
  file.need("curl_easy_cleanup", curl.easy_cleanup);
  file.need("curl_multi_init", curl.multi_init);
  file.need("curl_multi_cleanup", curl.multi_cleanup);
  file.need("curl_multi_add_handle", curl.multi_add_handle);
  file.need("curl_multi_remove_handle", curl.multi_remove_handle);
  file.need("curl_multi_perform", curl.multi_perform);
  file.need("curl_multi_poll", curl.multi_poll);
  file.need("curl_multi_info_read", curl.multi_info_read);
  file.need("curl_slist_append", curl.slist_append);
  file.need("curl_slist_free_all", curl.slist_free_all);
  if (const Status status = file.status(); !status) return status.error();
  if (curl.global_init(CURL_GLOBAL_ALL) != CURLE_OK) return file.too_old();
  return curl;
}

}  // namespace

const Result<CurlLibrary>& curl_library() {
  static const Result<CurlLibrary> kLibrary = load();
  return kLibrary;
}

}  // namespace drun::etcd
