#pragma once

// The events of a cache that a test writes, answered as a worker does.

#include <charconv>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/http_server.h"
#include "net/query.h"
#include "port/kv_events.h"

namespace sluice::gateway {

class FakeKvEvents {
public:
    /// Answers whoever waits.
    void push(port::KvEvent event) {
        log.push_back(std::move(event));
        for (auto& [from, exchange] : std::exchange(waiting_, {}))
            exchange->respond(net::HttpResponse::json(200, to_json(page(from, false))));
    }

    void answer(const std::shared_ptr<net::HttpExchange>& exchange) {
        const auto fields = net::parse_query(exchange->request().query).value();
        ++questions;
        if (!broken.empty())
            return exchange->respond(
                net::HttpResponse::json(200, std::exchange(broken, std::string())));
        std::uint64_t from = 0;
        if (const auto field = fields.find("from"); field != fields.end())
            std::from_chars(field->second.data(), field->second.data() + field->second.size(),
                            from);
        const auto asked = fields.find("epoch");
        const bool anew = asked == fields.end() || asked->second != epoch || from > log.size();
        if (!anew && from == log.size()) {
            waiting_.emplace_back(from, exchange);
            return;
        }
        resets += anew ? 1 : 0;
        exchange->respond(net::HttpResponse::json(200, to_json(page(anew ? 0 : from, anew))));
    }

    /// Another process: nobody who waits hears of it but by a broken connection.
    void restart(std::string new_epoch) {
        epoch = std::move(new_epoch);
        log.clear();
        for (auto& [from, exchange] : std::exchange(waiting_, {})) exchange->abort();
    }

    std::string epoch = "aa";
    std::vector<port::KvEvent> log;
    std::string broken;  ///< Answered once instead.
    std::size_t questions = 0;
    std::size_t resets = 0;

private:
    [[nodiscard]] port::KvEventPage page(std::uint64_t from, bool reset) const {
        return {.epoch = epoch,
                .next = log.size(),
                .page = {},
                .reset = reset,
                .events = {log.begin() + static_cast<std::ptrdiff_t>(from), log.end()}};
    }

    std::vector<std::pair<std::uint64_t, std::shared_ptr<net::HttpExchange>>> waiting_;
};

}  // namespace sluice::gateway
