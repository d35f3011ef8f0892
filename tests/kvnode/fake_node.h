#pragma once

// A server of RESP as small as can be, with all the bad manners that a real one doesn't show when asked.
// Every connection has a thread of its own, so that one that hangs holds nobody else up.

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "kv/resp_request_reader.h"
#include "kv/resp_writer.h"
#include "tests/net/support.h"

namespace sluice::kvnode::testing {

class FakeNode {
public:
    enum class Fault {
        kNone,
        kFlip,      ///< One bit of each value is another.
        kCut,       ///< A value's connection ends in the middle of it.
        kHang,      ///< A value begins and never ends.
        kSilent,    ///< Nothing is answered, not even the greeting.
        kOtherKey,  ///< GET brings another value, if there is one.
        kGarbage,   ///< GET brings what is no RESP.
        kLoading,   ///< Every GET is an error.
        kFull,      ///< Every SET is refused.
    };

    explicit FakeNode(std::string password = {}) : password_(std::move(password)) {
        acceptor_ = std::thread([this] { accept_all(); });
    }
    ~FakeNode() { stop(); }
    FakeNode(const FakeNode&) = delete;
    FakeNode& operator=(const FakeNode&) = delete;

    /// From now on nobody answers at this address.
    void stop() {
        if (stopping_.exchange(true)) return;
        ::shutdown(listener_.fd(), SHUT_RDWR);
        acceptor_.join();
        listener_.close();
        {
            const std::lock_guard lock(mutex_);
            for (const int fd : connections_) ::shutdown(fd, SHUT_RDWR);
        }
        for (std::thread& thread : threads_) thread.join();
    }

    [[nodiscard]] std::string url() const {
        return "redis://127.0.0.1:" + std::to_string(listener_.port());
    }
    [[nodiscard]] std::uint16_t port() const { return listener_.port(); }

    std::atomic<Fault> fault = Fault::kNone;

    [[nodiscard]] std::map<std::string, std::string> data() {
        const std::lock_guard lock(mutex_);
        return data_;
    }
    void put(const std::string& name, const std::string& value) {
        const std::lock_guard lock(mutex_);
        data_[name] = value;
    }
    void clear() {
        const std::lock_guard lock(mutex_);
        data_.clear();
    }
    /// The words of every request so far, values left out.
    [[nodiscard]] std::vector<std::vector<std::string>> requests() {
        const std::lock_guard lock(mutex_);
        return requests_;
    }
    [[nodiscard]] std::size_t count(const std::string& command) {
        const std::lock_guard lock(mutex_);
        return static_cast<std::size_t>(std::ranges::count_if(
            requests_, [&](const auto& words) { return words.front() == command; }));
    }
    [[nodiscard]] std::size_t connections() const { return accepted_; }
    /// Says of every slot that it is there.
    void redirect_to(std::uint16_t port) { redirect_to_ = port; }

private:
    class Listener {
    public:
        Listener() : port_(listener_.port()), fd_(listener_.release()) {}
        ~Listener() { close(); }
        [[nodiscard]] int fd() const { return fd_; }
        [[nodiscard]] std::uint16_t port() const { return port_; }
        void close() {
            if (fd_ >= 0) ::close(std::exchange(fd_, -1));
        }

    private:
        net::testing::RawListener listener_;
        std::uint16_t port_;
        int fd_;
    };

    void accept_all() {
        for (;;) {
            const int fd = ::accept(listener_.fd(), nullptr, nullptr);
            if (fd < 0) return;
            const std::lock_guard lock(mutex_);
            ++accepted_;
            connections_.insert(fd);
            threads_.emplace_back([this, fd] {
                serve(fd);
                const std::lock_guard ended(mutex_);
                connections_.erase(fd);
                ::close(fd);
            });
        }
    }

    void serve(int fd) {
        kv::RespRequestReader reader;
        bool let_in = password_.empty();
        std::vector<char> buffer(64 * 1024);
        for (;;) {
            const ssize_t count = ::recv(fd, buffer.data(), buffer.size(), 0);
            if (count <= 0) return;
            std::string_view data(buffer.data(), static_cast<std::size_t>(count));
            std::string out;
            bool go_on = true;
            while (go_on && reader.read(data) == kv::RespRequestReader::Status::kRequest) {
                std::vector<std::string> words;
                for (const kv::RespText& word : reader.take()) words.emplace_back(word.view());
                if (fault == Fault::kSilent) continue;
                go_on = answer(words, let_in, out);
            }
            if (!out.empty()) static_cast<void>(::send(fd, out.data(), out.size(), MSG_NOSIGNAL));
            if (go_on) continue;
            if (fault != Fault::kHang) return;
            // The value has begun; whatever comes is read, nothing is answered.
            while (::recv(fd, buffer.data(), buffer.size(), 0) > 0) {
            }
            return;
        }
    }

    /// False if the connection answers nothing more.
    bool answer(const std::vector<std::string>& words, bool& let_in, std::string& out) {
        const std::lock_guard lock(mutex_);
        requests_.push_back(words);
        if (words[0] == "SET") requests_.back()[2].clear();
        if (words[0] == "AUTH") {
            let_in = words.back() == password_;
            out += let_in ? "+OK\r\n" : "-WRONGPASS invalid password\r\n";
            return true;
        }
        if (!let_in) {
            out += "-NOAUTH Authentication required.\r\n";
            return true;
        }
        if (words[0] == "HELLO") {
            out += "*2\r\n$6\r\nserver\r\n$4\r\nfake\r\n";
            return true;
        }
        if (redirect_to_ != 0) {
            out += "-MOVED 1 127.0.0.1:" + std::to_string(redirect_to_) + "\r\n";
            return true;
        }
        const auto found = words.size() > 1 ? data_.find(words[1]) : data_.end();
        const bool there = found != data_.end();
        if (words[0] == "GET") return get(found, out);
        if (words[0] == "EXISTS" || words[0] == "DEL" || words[0] == "EXPIRE") {
            out += there ? ":1\r\n" : ":0\r\n";
            if (there && words[0] == "DEL") data_.erase(found);
        } else if (words[0] == "SET") {
            if (fault == Fault::kFull) {
                out += "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
                return true;
            }
            out += there ? "$-1\r\n" : "+OK\r\n";
            if (!there) data_[words[1]] = words[2];
        } else if (words[0] == "GETRANGE") {
            const std::string part = there ? found->second.substr(0, std::stoul(words[3]) + 1) : "";
            out += bulk(part);
        } else {
            out += "-ERR unknown command\r\n";
        }
        return true;
    }

    bool get(std::map<std::string, std::string>::iterator found, std::string& out) {
        if (fault == Fault::kGarbage) {
            out += "HTTP/1.1 200 OK\r\n\r\n";
            return true;
        }
        if (fault == Fault::kLoading) {
            out += "-LOADING Redis is loading the dataset in memory\r\n";
            return true;
        }
        if (found == data_.end()) {
            out += "$-1\r\n";
            return true;
        }
        std::string value = found->second;
        if (fault == Fault::kFlip) value[value.size() / 2] ^= 4;
        if (fault == Fault::kOtherKey) {
            const auto other = std::ranges::find_if(
                data_, [&](const auto& entry) { return entry.first != found->first; });
            if (other != data_.end()) value = other->second;
        }
        std::string reply = bulk(value);
        const bool broken = fault == Fault::kCut || fault == Fault::kHang;
        if (broken) reply.resize(reply.size() / 2);
        out += reply;
        return !broken;
    }

    static std::string bulk(const std::string& value) {
        return "$" + std::to_string(value.size()) + "\r\n" + value + "\r\n";
    }

    const std::string password_;
    Listener listener_;
    std::atomic<bool> stopping_ = false;
    std::atomic<std::size_t> accepted_ = 0;
    std::atomic<std::uint16_t> redirect_to_ = 0;
    std::mutex mutex_;
    std::map<std::string, std::string> data_;
    std::vector<std::vector<std::string>> requests_;
    std::set<int> connections_;
    std::vector<std::thread> threads_;
    std::thread acceptor_;
};

}  // namespace sluice::kvnode::testing
