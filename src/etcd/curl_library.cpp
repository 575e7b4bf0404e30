#include "etcd/curl_library.hpp"

#include <dlfcn.h>

#include <system_error>

#include "base/library_function.hpp"

namespace drun::etcd {
namespace {

Result<CurlLibrary> load() {
  // Never closed: it is loaded once.
  void* const file = ::dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (file == nullptr)
    return Error(std::make_error_code(std::errc::no_such_file_or_directory),
                 "a rendezvous at etcd needs the library libcurl.so.4, which is not there: install "
                 "the Debian package libcurl4");
  CurlLibrary curl;
  const bool complete = find_function(file, "curl_global_init", curl.global_init) &&
                        find_function(file, "curl_easy_init", curl.easy_init) &&
                        find_function(file, "curl_easy_setopt", curl.easy_setopt) &&
                        find_function(file, "curl_easy_getinfo", curl.easy_getinfo) &&
                        find_function(file, "curl_easy_strerror", curl.easy_strerror) &&
                        find_function(file, "curl_easy_cleanup", curl.easy_cleanup) &&
                        find_function(file, "curl_multi_init", curl.multi_init) &&
                        find_function(file, "curl_multi_cleanup", curl.multi_cleanup) &&
                        find_function(file, "curl_multi_add_handle", curl.multi_add_handle) &&
                        find_function(file, "curl_multi_remove_handle", curl.multi_remove_handle) &&
                        find_function(file, "curl_multi_perform", curl.multi_perform) &&
                        find_function(file, "curl_multi_poll", curl.multi_poll) &&
                        find_function(file, "curl_multi_info_read", curl.multi_info_read) &&
                        find_function(file, "curl_slist_append", curl.slist_append) &&
                        find_function(file, "curl_slist_free_all", curl.slist_free_all);
  if (!complete || curl.global_init(CURL_GLOBAL_ALL) != CURLE_OK)
    return Error(std::make_error_code(std::errc::not_supported),
                 "a rendezvous at etcd needs the library libcurl.so.4 in version 7.68 or later: "
                 "install the Debian package libcurl4");
  return curl;
}

}  // namespace

const Result<CurlLibrary>& curl_library() {
  static const Result<CurlLibrary> kLibrary = load();
  return kLibrary;
}

}  // namespace drun::etcd
