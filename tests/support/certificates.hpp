// An authority of a test's own, and one certificate that it has signed: for 127.0.0.1, good for
// both ends of a connection. Made by the program openssl.
#pragma once

#include <cstdlib>
#include <string>

#include "support/drun_process.hpp"

namespace drun::test {

class Certificates {
 public:
  Certificates() {
    const std::string config = folder_.write("names",
                                             "subjectAltName=IP:127.0.0.1\n"
                                             "extendedKeyUsage=serverAuth,clientAuth\n");
    const std::string fresh = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes ";
    const std::string signing = "-CA ca.pem -CAkey ca.key -CAcreateserial -days 30 ";
    made_ = run("req -x509 " + fresh + "-keyout ca.key -out ca.pem -days 30 -subj /CN=authority") &&
            run("req " + fresh + "-keyout own.key -out own.csr -subj /CN=own") &&
            run("x509 -req -in own.csr " + signing + "-out own.pem -extfile '" + config + "'") &&
            run("pkey -in own.key -aes256 -passout pass:secret -out locked.key");
  }

  // False: the machine has no openssl.
  [[nodiscard]] bool made() const { return made_; }
  [[nodiscard]] std::string authority() const { return folder_.path() / "ca.pem"; }
  [[nodiscard]] std::string certificate() const { return folder_.path() / "own.pem"; }
  [[nodiscard]] std::string key() const { return folder_.path() / "own.key"; }
  // The same behind a pass phrase.
  [[nodiscard]] std::string locked_key() const { return folder_.path() / "locked.key"; }

 private:
  [[nodiscard]] bool run(const std::string& words) const {
    const std::string line =
        "cd '" + folder_.path().string() + "' && openssl " + words + " </dev/null >/dev/null 2>&1";
    return std::system(line.c_str()) == 0;
  }

  TempDir folder_;
  bool made_ = false;
};

}  // namespace drun::test
